/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c - looks after tasks that run. One loop starts tasks when they are
 * due, and waits for signals, which come as data (signalfd), for what the tasks
 * write, and for the script that says how many workers may run.
 *
 * A terminal sends its signals to all processes in the foreground, so that the
 * tasks have them already, unless they are on other hosts; only what was sent
 * to this process alone is passed on. Once the job has failed, or a signal has
 * asked for the end, patience is limited: then SIGTERM, and then SIGKILL.
 */
#include "launch/parts.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* A task may take so long to end. */
#define ENDING_NS INT64_C(5000000000)

/* A job without a single worker that may run waits so long for one. */
#define IDLE_NS INT64_C(600000000000)

struct loop {
    struct launch__watch watch;
    struct launch__discovery discovery;
    struct pollfd *polled; /* owned: signals, the script, two streams of each
                              task */
    int signals;
    int64_t idle_ns; /* no task runs since then; 0: one does */
};

void launch__enter(struct launch__watch *w, enum launch__stage stage,
                   int64_t patience_ns)
{
    w->stage = stage;
    w->deadline_ns = launch__now_ns() + patience_ns;
    for (int i = 0; i < w->tasks->count; i++)
        w->tasks->tasks[i].start_ns = 0;
}

/* Begins to end all tasks, because one cannot be started. */
static void give_up(struct launch__watch *w)
{
    if (w->status == 0)
        w->status = 1;
    launch__enter(w, LAUNCH__NOTICES, 0);
}

/* ------------------------------------------------------------------ endings */

static void note_stop(struct launch__task *task, bool is_stopped)
{
    task->is_stopped = is_stopped;
    task->was_stopped = true;
}

static void reap(struct loop *l)
{
    struct launch__tasks *tasks = l->watch.tasks;
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
        if (pid == l->discovery.pid && !WIFSTOPPED(status) &&
            !WIFCONTINUED(status) &&
            launch__discovery_end(&l->discovery, tasks, status) < 0 &&
            l->watch.stage == LAUNCH__RUNS)
            give_up(&l->watch);
        for (int i = 0; i < tasks->count; i++) {
            if (tasks->tasks[i].pid != pid)
                continue;
            if (WIFSTOPPED(status) || WIFCONTINUED(status))
                note_stop(&tasks->tasks[i], WIFSTOPPED(status));
            else
                launch__note_end(&l->watch, &tasks->tasks[i], status);
        }
    }
}

/* Goes on to the next stage when the patience of this one is over. */
static void press(struct launch__watch *w)
{
    if (w->stage == LAUNCH__RUNS || w->stage == LAUNCH__KILLED ||
        launch__now_ns() < w->deadline_ns)
        return;
    if (w->stage == LAUNCH__NOTICES) {
        launch__tasks_signal(w->tasks, SIGTERM);
        launch__tasks_signal(w->tasks, SIGCONT);
        launch__enter(w, LAUNCH__TERMINATED, ENDING_NS);
    } else {
        launch__tasks_signal(w->tasks, SIGKILL);
        launch__enter(w, LAUNCH__KILLED, 0);
    }
}

/* ------------------------------------------------------------------ signals */

static void take_signal(struct loop *l, const struct signalfd_siginfo *info)
{
    struct launch__watch *w = &l->watch;
    int number = (int)info->ssi_signo;

    if (number == SIGCHLD) {
        reap(l);
        return;
    }
    if (info->ssi_code != SI_KERNEL || w->tasks->launch->rsh)
        launch__tasks_signal(w->tasks, number);
    if (number != SIGUSR1 && number != SIGUSR2 && !w->interrupted) {
        w->interrupted = number;
        if (w->stage < LAUNCH__TERMINATED)
            launch__enter(w, LAUNCH__TERMINATED, 2 * ENDING_NS);
    }
}

static void take_signals(struct loop *l)
{
    struct signalfd_siginfo info;

    while (read(l->signals, &info, sizeof info) == (ssize_t)sizeof info)
        take_signal(l, &info);
}

/* ----------------------------------------------------------------- starting */

static bool may_run(const struct launch__tasks *tasks, int i)
{
    if (tasks->launch->rsh)
        return tasks->tasks[i].host >= 0;
    return i >= tasks->launch->workers || i < tasks->available;
}

/* Ends workers that may no longer run, and has those that may be started. */
static void follow_available(struct launch__watch *w)
{
    for (int i = 0; i < w->tasks->launch->workers; i++) {
        struct launch__task *task = &w->tasks->tasks[i];

        if (may_run(w->tasks, i)) {
            if (task->pid == 0 && task->start_ns == 0 &&
                task->end == LAUNCH__NO_END && w->nwell == 0)
                task->start_ns = 1;
            continue;
        }
        task->start_ns = 0;
        if (task->pid == 0 || task->taken_away)
            continue;
        task->taken_away = true;
        launch__say(w->tasks->launch, "%s may no longer run: it is ended",
                    task->name);
        launch__task_signal(task, SIGTERM);
    }
}

static void start_due(struct launch__watch *w)
{
    int64_t now_ns = launch__now_ns();

    for (int i = 0; i < w->tasks->count; i++) {
        struct launch__task *task = &w->tasks->tasks[i];

        if (task->start_ns == 0 || task->start_ns > now_ns ||
            !may_run(w->tasks, i))
            continue;
        if (launch__task_start(w->tasks, task) < 0) {
            give_up(w);
            return;
        }
    }
}

/* --------------------------------------------------------------------- loop */

static struct launch__stream *stream_of(const struct launch__watch *w, int i)
{
    return &w->tasks->tasks[i / 2].streams[i % 2];
}

/* Returns the earlier one of two times, of which 0 is never. */
static int64_t earlier(int64_t a, int64_t b)
{
    return a == 0 || (b > 0 && b < a) ? b : a;
}

/* Does the script still matter? */
static bool asks(const struct loop *l)
{
    return l->watch.tasks->launch->script && l->watch.stage == LAUNCH__RUNS &&
           l->watch.nwell == 0;
}

static int timeout_ms(const struct loop *l)
{
    const struct launch__watch *w = &l->watch;
    int64_t next_ns = 0, left_ns;

    if (w->stage == LAUNCH__KILLED)
        return -1;
    if (w->stage != LAUNCH__RUNS)
        next_ns = w->deadline_ns;
    else if (w->remains_ns > 0)
        next_ns = launch__now_ns() + 500000000;
    for (int i = 0; i < w->tasks->count; i++)
        if (may_run(w->tasks, i))
            next_ns = earlier(next_ns, w->tasks->tasks[i].start_ns);
    if (asks(l))
        next_ns = earlier(next_ns, l->discovery.next_ns);
    left_ns = next_ns - launch__now_ns();
    if (next_ns == 0)
        return -1;
    return left_ns > 0 ? (int)(left_ns / 1000000) + 1 : 0;
}

static void wait_once(struct loop *l)
{
    struct launch__watch *w = &l->watch;
    int n = 2 * w->tasks->count;

    l->polled[0] = (struct pollfd){.fd = l->signals, .events = POLLIN};
    l->polled[1] = (struct pollfd){.fd = l->discovery.from, .events = POLLIN};
    for (int i = 0; i < n; i++)
        l->polled[2 + i] =
            (struct pollfd){.fd = stream_of(w, i)->from, .events = POLLIN};
    if (poll(l->polled, (nfds_t)(2 + n), timeout_ms(l)) < 0)
        return;
    for (int i = 0; i < n; i++)
        if (l->polled[2 + i].revents)
            launch__stream_pump(stream_of(w, i));
    if (l->polled[1].revents)
        launch__discovery_pump(&l->discovery);
    if (l->polled[0].revents)
        take_signals(l);
}

/* Does a task run, or will one? */
static bool goes_on(struct loop *l)
{
    const struct launch__tasks *tasks = l->watch.tasks;
    bool any = false, may = false;

    for (int i = 0; i < tasks->count; i++) {
        any |= tasks->tasks[i].pid > 0 || tasks->tasks[i].start_ns > 0;
        may |= tasks->tasks[i].end == LAUNCH__NO_END;
    }
    if (any || !may || !asks(l)) {
        l->idle_ns = 0;
        return any;
    }
    if (l->idle_ns == 0)
        l->idle_ns = launch__now_ns();
    if (launch__now_ns() < l->idle_ns + IDLE_NS)
        return true;
    launch__say(tasks->launch, "no worker was allowed to run for %d s",
                (int)(IDLE_NS / 1000000000));
    l->watch.status = 1;
    return false;
}

static void run_loop(struct loop *l)
{
    struct launch__watch *w = &l->watch;

    while (goes_on(l)) {
        if (asks(l)) {
            if (launch__discovery_run(&l->discovery, w->tasks) < 0)
                give_up(w);
            else if (w->tasks->launch->rsh)
                launch__hosts_follow(w);
            else
                follow_available(w);
        }
        start_due(w);
        wait_once(l);
        launch__end_remains(w);
        press(w);
    }
}

int launch__watch(struct launch__tasks *tasks, int signals)
{
    struct loop l = {.watch = {.tasks = tasks},
                     .signals = signals,
                     .discovery = {.from = -1}};

    l.polled = calloc(2 + 2 * (size_t)tasks->count, sizeof *l.polled);
    if (!l.polled)
        return launch__say(tasks->launch, "out of memory"), 1;
    for (int i = 0; i < tasks->count && !tasks->launch->rsh; i++)
        tasks->tasks[i].start_ns = 1; /* now */
    run_loop(&l);
    launch__judge(&l.watch);
    launch__kill_orphans();
    for (int i = 0; i < 2 * tasks->count; i++)
        launch__stream_close(stream_of(&l.watch, i));
    if (l.discovery.from >= 0)
        close(l.discovery.from);
    free(l.polled);
    return l.watch.status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c - looks after tasks that run. One loop waits for signals, which come
 * as data (signalfd), and for what the tasks write.
 *
 * A terminal sends its signals to all processes in the foreground, so that the
 * tasks have them already; only what was sent to this process alone is passed
 * on. Once a task has failed, or a signal has asked for the end, patience is
 * limited: then SIGTERM, and then SIGKILL.
 */
#include "launch/parts.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The others may take so long to notice a failure by themselves, and a task so
 * long to end. */
#define NOTICE_NS INT64_C(5000000000)
#define ENDING_NS INT64_C(5000000000)

/* The stage says what has been done to end the tasks. */
enum stage { RUNS, NOTICES, TERMINATED, KILLED };

struct watch {
    struct launch__tasks *tasks;
    struct pollfd *polled; /* owned: signals, then two streams of each task */
    int left;              /* tasks that have not ended */
    int status;            /* of the first failure; 0: none */
    bool interrupted;      /* a signal has asked for the end */
    enum stage stage;
    int64_t deadline_ns; /* of the stage */
};

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void enter(struct watch *w, enum stage stage, int64_t patience_ns)
{
    w->stage = stage;
    w->deadline_ns = now_ns() + patience_ns;
}

/* ------------------------------------------------------------------ endings
 */

static void say_end(const struct watch *w, const struct launch__task *task,
                    int status)
{
    const char *others = w->left > 0 ? "; the others are ended" : "";

    if (WIFSIGNALED(status))
        launch__say(w->tasks->launch,
                    "%s (process %d) was ended by signal %d (%s)%s", task->name,
                    (int)task->pid, WTERMSIG(status),
                    strsignal(WTERMSIG(status)), others);
    else
        launch__say(w->tasks->launch, "%s (process %d) failed with status %d%s",
                    task->name, (int)task->pid, WEXITSTATUS(status), others);
}

static void note_end(struct watch *w, struct launch__task *task, int status)
{
    int code =
        WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);

    w->left--;
    if (code != 0 && w->status == 0) {
        w->status = code;
        if (!w->interrupted)
            say_end(w, task, status);
        if (w->stage == RUNS)
            enter(w, NOTICES, NOTICE_NS);
    }
    task->pid = 0;
}

static void reap(struct watch *w)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (int i = 0; i < w->tasks->started; i++)
            if (w->tasks->tasks[i].pid == pid)
                note_end(w, &w->tasks->tasks[i], status);
}

/* Goes on to the next stage when the patience of this one is over. */
static void press(struct watch *w)
{
    if (w->stage == RUNS || w->stage == KILLED || now_ns() < w->deadline_ns)
        return;
    if (w->stage == NOTICES) {
        launch__tasks_signal(w->tasks, SIGTERM);
        launch__tasks_signal(w->tasks, SIGCONT);
        enter(w, TERMINATED, ENDING_NS);
    } else {
        launch__tasks_signal(w->tasks, SIGKILL);
        enter(w, KILLED, 0);
    }
}

/* ------------------------------------------------------------------ signals
 */

static void take_signal(struct watch *w, const struct signalfd_siginfo *info)
{
    int number = (int)info->ssi_signo;

    if (number == SIGCHLD) {
        reap(w);
        return;
    }
    if (info->ssi_code != SI_KERNEL)
        launch__tasks_signal(w->tasks, number);
    if (number != SIGUSR1 && number != SIGUSR2 && !w->interrupted) {
        w->interrupted = true;
        if (w->stage < TERMINATED)
            enter(w, TERMINATED, 2 * ENDING_NS);
    }
}

static void take_signals(struct watch *w, int signals)
{
    struct signalfd_siginfo info;

    while (read(signals, &info, sizeof info) == (ssize_t)sizeof info)
        take_signal(w, &info);
}

/* --------------------------------------------------------------------- loop
 */

static struct launch__stream *stream_of(const struct watch *w, int i)
{
    return &w->tasks->tasks[i / 2].streams[i % 2];
}

static int timeout_ms(const struct watch *w)
{
    int64_t left_ns = w->deadline_ns - now_ns();

    if (w->stage == RUNS || w->stage == KILLED)
        return -1;
    return left_ns > 0 ? (int)(left_ns / 1000000) + 1 : 0;
}

static void wait_once(struct watch *w, int signals)
{
    int n = 2 * w->tasks->count;

    w->polled[0] = (struct pollfd){.fd = signals, .events = POLLIN};
    for (int i = 0; i < n; i++)
        w->polled[1 + i] =
            (struct pollfd){.fd = stream_of(w, i)->from, .events = POLLIN};
    if (poll(w->polled, (nfds_t)(1 + n), timeout_ms(w)) < 0)
        return;
    for (int i = 0; i < n; i++)
        if (w->polled[1 + i].revents)
            launch__stream_pump(stream_of(w, i));
    if (w->polled[0].revents)
        take_signals(w, signals);
}

int launch__watch(struct launch__tasks *tasks, int signals)
{
    struct watch w = {.tasks = tasks, .left = tasks->started};

    w.polled = calloc(1 + 2 * (size_t)tasks->count, sizeof *w.polled);
    if (!w.polled) {
        launch__tasks_signal(tasks, SIGKILL);
        return launch__say(tasks->launch, "out of memory"), 1;
    }
    if (tasks->started < tasks->count) { /* the next one could not start */
        w.status = 1;
        enter(&w, NOTICES, 0);
    }
    while (w.left > 0) {
        wait_once(&w, signals);
        press(&w);
    }
    launch__kill_orphans();
    for (int i = 0; i < 2 * tasks->count; i++)
        launch__stream_close(stream_of(&w, i));
    free(w.polled);
    return w.status;
}

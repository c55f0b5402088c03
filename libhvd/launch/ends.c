/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ends.c - what the end of a task means for the job.
 *
 * A worker that fails while the job runs is started again, as long as it may
 * be, after a delay that doubles each time. Else it is lost if the job is
 * elastic and enough workers are left, and else the job has failed. Once a task
 * has ended well, the job is about to end: nothing is started any more, and a
 * failure has been survived by nobody, with exceptions. A signal may end a
 * worker a moment after the others have done without it; a worker that was
 * stopped was given up, however late it fails; one that was started again may
 * have come back too late to join; and a spare may not have been needed.
 */
#include "launch/parts.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>

/* The others may take so long to notice a failure by themselves. */
#define NOTICE_NS INT64_C(5000000000)

/* Stopped tasks are ended when they are alone for so long, and so are those
 * that came back too late. A worker may be killed so long after others have
 * ended well. */
#define STOPPED_NS INT64_C(10000000000)
#define REMAINS_NS INT64_C(30000000000)
#define LATE_NS INT64_C(1000000000)

static void say_end(const struct launch__watch *w,
                    const struct launch__task *task, int status,
                    const char *what_now)
{
    if (WIFSIGNALED(status))
        launch__say(w->tasks->launch,
                    "%s (process %d) was ended by signal %d (%s)%s", task->name,
                    (int)task->pid, WTERMSIG(status),
                    strsignal(WTERMSIG(status)), what_now);
    else
        launch__say(w->tasks->launch, "%s (process %d) failed with status %d%s",
                    task->name, (int)task->pid, WEXITSTATUS(status), what_now);
}

/* Counts other tasks that run or will be started. */
static int count_others(const struct launch__watch *w,
                        const struct launch__task *task, bool workers_only)
{
    int n = 0;

    for (int i = 0; i < w->tasks->count; i++) {
        const struct launch__task *other = &w->tasks->tasks[i];

        n += other != task && (other->pid > 0 || other->start_ns > 0) &&
             (!workers_only || other->role == HVD_ROLE_WORKER);
    }
    return n;
}

/* Returns whether another start would only end in the same way: the command
 * line is wrong (EX_USAGE), or the program cannot be run or found. */
static bool is_hopeless(int code)
{
    return code == EX_USAGE || code == 126 || code == 127;
}

/* Has the worker wait for a host, if there is one, or others go on meanwhile.
 */
static bool wait_for_host(struct launch__watch *w, struct launch__task *task,
                          int status)
{
    const struct launch *l = w->tasks->launch;
    char text[384];
    const bool waits =
        launch__hosts_fail(w->tasks, task, is_hopeless(task->code), text,
                           sizeof text) ||
        count_others(w, task, true) >= l->least;

    if (!waits)
        return false;
    task->nrestarts++;
    say_end(w, task, status, text);
    return true;
}

/* Starts the worker again, if it may be. */
static bool start_again(struct launch__watch *w, struct launch__task *task,
                        int status)
{
    const struct launch *l = w->tasks->launch;
    const int seconds = launch__delay(task->nrestarts);
    char text[96];

    if (l->rsh && w->nwell == 0)
        return wait_for_host(w, task, status);
    if (task->role != HVD_ROLE_WORKER || w->nwell > 0 ||
        task->nrestarts >= l->restarts || is_hopeless(task->code))
        return false;
    task->nrestarts++;
    task->start_ns = launch__now_ns() + seconds * INT64_C(1000000000);
    snprintf(text, sizeof text,
             "; it is started again in %d s: restart %d of "
             "%d",
             seconds, task->nrestarts, l->restarts);
    say_end(w, task, status, text);
    return true;
}

/* Returns whether a worker has only waited: there were enough before it that
 * were not lost. */
static bool is_unneeded(const struct launch__watch *w,
                        const struct launch__task *task)
{
    const struct launch *l = w->tasks->launch;
    int nbefore = 0;

    for (int i = 0; i < w->tasks->count; i++) {
        const struct launch__task *other = &w->tasks->tasks[i];

        nbefore += other->role == HVD_ROLE_WORKER &&
                   other->index < task->index && other->code == 0;
    }
    return nbefore >= l->workers - l->spares;
}

/* Does without the worker, if the job can. */
static bool do_without(struct launch__watch *w, struct launch__task *task,
                       int status)
{
    const struct launch *l = w->tasks->launch;
    int left = count_others(w, task, true) + w->nwell;
    bool is_late =
        w->nwell > 0 && !task->was_stopped && task->nrestarts == 0 &&
        !(WIFSIGNALED(status) && launch__now_ns() < w->well_ns + LATE_NS);

    if (l->least == 0 || task->role != HVD_ROLE_WORKER || left < l->least)
        return false;
    if (w->nwell > 0 && !WIFSIGNALED(status) && is_unneeded(w, task)) {
        task->end = LAUNCH__SPARED;
        return true;
    }
    if (is_late)
        return false;
    task->end = LAUNCH__LOST;
    if (w->first_code == 0)
        w->first_code = task->code;
    say_end(w, task, status, "; the others go on");
    return true;
}

static void fail_job(struct launch__watch *w, struct launch__task *task,
                     int status)
{
    task->end = LAUNCH__FAILED;
    if (w->status != 0)
        return;
    w->status = task->code;
    if (!w->interrupted)
        say_end(w, task, status,
                count_others(w, task, false) > 0 ? "; the others are ended"
                                                 : "");
    if (w->stage == LAUNCH__RUNS)
        launch__enter(w, LAUNCH__NOTICES, NOTICE_NS);
}

/* Nothing is started again when a task has ended well. */
static void note_well(struct launch__watch *w, struct launch__task *task)
{
    task->end = LAUNCH__WELL;
    if (w->nwell++ == 0)
        w->well_ns = launch__now_ns();
    for (int i = 0; i < w->tasks->count; i++)
        w->tasks->tasks[i].start_ns = 0;
}

void launch__note_end(struct launch__watch *w, struct launch__task *task,
                      int status)
{
    bool may_go_on = w->stage == LAUNCH__RUNS && !w->interrupted;

    task->code =
        WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (task->taken_away && w->stage == LAUNCH__RUNS)
        ; /* it may be started again later */
    else if (task->code == 0)
        note_well(w, task);
    else if (!(may_go_on &&
               (start_again(w, task, status) || do_without(w, task, status))))
        fail_job(w, task, status);
    task->pid = 0;
    if (task->host >= 0)
        launch__hosts_leave(w->tasks, task);
}

/* Returns the time that the remaining tasks may take to end, if others have
 * ended well and do not wait for them; 0: any time. */
static int64_t patience_with_remains(const struct launch__watch *w)
{
    int nrunning = 0, nstopped = 0, nlate = 0;

    for (int i = 0; i < w->tasks->count; i++) {
        const struct launch__task *task = &w->tasks->tasks[i];

        nrunning += task->pid > 0;
        nstopped += task->pid > 0 && task->is_stopped;
        nlate += task->pid > 0 && (task->is_stopped || task->nrestarts > 0);
    }
    if (w->tasks->launch->least == 0 || w->stage != LAUNCH__RUNS ||
        w->nwell == 0 || nlate == 0 || nlate < nrunning)
        return 0;
    return nstopped == nrunning ? STOPPED_NS : REMAINS_NS;
}

void launch__end_remains(struct launch__watch *w)
{
    int64_t patience_ns = patience_with_remains(w);

    if (patience_ns == 0)
        w->remains_ns = 0;
    else if (w->remains_ns == 0)
        w->remains_ns = launch__now_ns();
    if (patience_ns == 0 || launch__now_ns() < w->remains_ns + patience_ns)
        return;
    for (int i = 0; i < w->tasks->count; i++)
        if (w->tasks->tasks[i].pid > 0)
            launch__say(w->tasks->launch,
                        "the others have ended, and %s %s: it is ended",
                        w->tasks->tasks[i].name,
                        w->tasks->tasks[i].is_stopped ? "is stopped"
                                                      : "came back too late");
    launch__tasks_signal(w->tasks, SIGKILL);
    w->remains_ns = 0;
}

void launch__judge(struct launch__watch *w)
{
    const struct launch *l = w->tasks->launch;
    char lost[256] = "";
    int nlost = 0;

    if (w->status == 0 && w->nwell == 0 && w->interrupted)
        w->status = 128 + w->interrupted;
    if (w->status != 0 || l->least == 0)
        return;
    for (int i = 0; i < w->tasks->count; i++) {
        const struct launch__task *task = &w->tasks->tasks[i];
        size_t used = strlen(lost);

        if (task->end != LAUNCH__LOST)
            continue;
        snprintf(lost + used, sizeof lost - used, "%s%s", nlost++ ? ", " : "",
                 task->name);
    }
    if (w->nwell < l->least) {
        w->status = w->first_code ? w->first_code : 1;
        launch__say(l, "%d workers ended well, and %d had to", w->nwell,
                    l->least);
    } else if (nlost > 0) {
        launch__say(l, "survived: %d of %d workers%s ended well without %s",
                    w->nwell, l->workers, l->spares > 0 ? " and spares" : "",
                    lost);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hosts.c - which worker runs on which host, if the script names several.
 *
 * A worker is a place in the cluster, not a process: it may run on one host,
 * and after its loss on another one. A host on which a worker has failed is not
 * used for a while, which doubles with each failure, and after the last of
 * --restarts not at all, until the script leaves it out and names it again.
 */
#include "launch/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A worker may take so long to end when its host is gone. */
#define ENDING_NS INT64_C(10000000000)

/* A process that was there for so long may have begun the job. */
#define LASTING_NS INT64_C(2000000000)

#define FOR_GOOD INT64_MAX

/* ------------------------------------------------------------------ answers */

static struct launch__host *find_host(struct launch__tasks *tasks,
                                      const char *name)
{
    struct launch__host *grown;

    for (int i = 0; i < tasks->nhosts; i++)
        if (strcmp(tasks->hosts[i].name, name) == 0)
            return &tasks->hosts[i];
    grown = realloc(tasks->hosts,
                    ((size_t)tasks->nhosts + 1) * sizeof *tasks->hosts);
    if (!grown)
        return NULL;
    tasks->hosts = grown;
    grown += tasks->nhosts++;
    *grown = (struct launch__host){.places = 0};
    snprintf(grown->name, sizeof grown->name, "%s", name);
    return grown;
}

void launch__hosts_begin(struct launch__tasks *tasks)
{
    for (int i = 0; i < tasks->nhosts; i++)
        tasks->hosts[i].named = 0;
}

int launch__hosts_name(struct launch__tasks *tasks, const char *name,
                       const char *address, int places)
{
    struct launch__host *host = find_host(tasks, name);

    if (!host)
        return launch__say(tasks->launch, "out of memory");
    host->named += places;
    snprintf(host->address, sizeof host->address, "%s", address);
    return 0;
}

void launch__hosts_end(struct launch__tasks *tasks)
{
    for (int i = 0; i < tasks->nhosts; i++) {
        struct launch__host *host = &tasks->hosts[i];

        if (tasks->has_hosts && host->places == 0 && host->named > 0)
            launch__say(tasks->launch, "%s may be used, for %d", host->name,
                        host->named);
        if (host->places > 0 && host->named == 0) {
            launch__say(tasks->launch, "%s may no longer be used", host->name);
            host->nfailed = 0;
            host->bad_until_ns = 0;
        }
        host->places = host->named;
    }
    tasks->has_hosts = true;
}

/* ------------------------------------------------------------------- places */

/* Counts the workers before this one that are on a host. */
static int count_before(const struct launch__tasks *tasks, int worker, int host)
{
    int n = 0;

    for (int i = 0; i < worker; i++)
        n += tasks->tasks[i].host == host;
    return n;
}

/* Returns a host that takes one more worker, or -1. */
static int find_place(const struct launch__tasks *tasks)
{
    for (int i = 0; i < tasks->nhosts; i++)
        if (launch__now_ns() >= tasks->hosts[i].bad_until_ns &&
            count_before(tasks, tasks->count, i) < tasks->hosts[i].places)
            return i;
    return -1;
}

/* Ends a worker, and says why. If its process is there ten seconds later, that
 * is killed: the agent may not be reached any more. */
static void take_away(struct launch__tasks *tasks, struct launch__task *task,
                      const char *why)
{
    if (task->pid == 0) {
        task->host = -1; /* it is still to be started */
        task->start_ns = 0;
    } else if (!task->taken_away) {
        task->taken_away = true;
        task->taken_ns = launch__now_ns();
        launch__say(tasks->launch, "%s on %s is ended: %s", task->name,
                    tasks->hosts[task->host].name, why);
        launch__task_signal(task, SIGTERM);
    } else if (launch__now_ns() > task->taken_ns + ENDING_NS) {
        launch__task_signal(task, SIGKILL);
    }
}

/* No job begins without worker 0. If it could not be started where it was to
 * be, the last one of the others, which wait for it, gives its place to it. */
static void make_place_for_first(struct launch__tasks *tasks)
{
    int i = tasks->count - 1;

    if (tasks->tasks[0].host >= 0 || tasks->tasks[0].has_lasted ||
        tasks->tasks[0].end != LAUNCH__NO_END)
        return;
    while (i > 0 && tasks->tasks[i].pid == 0)
        i--;
    if (i > 0)
        take_away(tasks, &tasks->tasks[i],
                  "worker 0, which must begin, has no place");
}

void launch__hosts_follow(struct launch__watch *w)
{
    struct launch__tasks *tasks = w->tasks;

    for (int i = 0; i < tasks->count; i++) {
        struct launch__task *task = &tasks->tasks[i];

        if (task->host >= 0 && count_before(tasks, i, task->host) >=
                                   tasks->hosts[task->host].places)
            take_away(tasks, task, "it may no longer run there");
        if (task->host >= 0 || task->end != LAUNCH__NO_END || w->nwell > 0)
            continue;
        task->host = find_place(tasks);
        if (task->host < 0)
            continue;
        task->start_ns = 1;
        launch__remote_tell(tasks, i);
    }
    if (w->nwell == 0)
        make_place_for_first(tasks);
}

void launch__hosts_leave(struct launch__tasks *tasks, struct launch__task *task)
{
    task->has_lasted |= launch__now_ns() > task->began_ns + LASTING_NS;
    task->host = -1;
    launch__remote_close(task);
    launch__remote_tell(tasks, (int)(task - tasks->tasks));
}

/* ----------------------------------------------------------------- failures */

/* Returns whether a host may be used, now or after a while. */
static bool can_be_used(const struct launch__tasks *tasks)
{
    for (int i = 0; i < tasks->nhosts; i++)
        if (tasks->hosts[i].places > 0 &&
            tasks->hosts[i].bad_until_ns != FOR_GOOD)
            return true;
    return false;
}

bool launch__hosts_fail(struct launch__tasks *tasks, struct launch__task *task,
                        bool is_hopeless, char *text, size_t size)
{
    struct launch__host *host = &tasks->hosts[task->host];
    const int seconds = launch__delay(host->nfailed);

    if (++host->nfailed > tasks->launch->restarts || is_hopeless) {
        host->bad_until_ns = FOR_GOOD;
        snprintf(text, size,
                 " on %s, which is not used any more until the script has left "
                 "it out",
                 host->name);
    } else {
        host->bad_until_ns = launch__now_ns() + seconds * INT64_C(1000000000);
        snprintf(text, size,
                 " on %s, which is not used for %d s: failure %d of %d there",
                 host->name, seconds, host->nfailed, tasks->launch->restarts);
    }
    return can_be_used(tasks);
}

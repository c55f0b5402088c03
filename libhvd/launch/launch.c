/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - prepares a launch, and gives everything back afterwards.
 *
 *   say.c      lines for the user, and the clock
 *   ports.c    ports that are free
 *   task.c     the process of a task
 *   stream.c   what it writes
 *   watch.c    signals, and the order to end
 *   ends.c     what the end of a task means
 *   discover.c how many workers may run, and where
 *   hosts.c    which worker is on which host
 *   remote.c   the agent of a worker on another host
 *   agent.c    the same, on that host
 */
#include "launch/parts.h"
#include "launch/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* ----------------------------------------------------------------- checking */

static int check(const struct launch *l)
{
    static const char *const launchers[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                            "PMI_RANK"};
    int count = l->workers + l->servers + l->evaluator;

    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (getenv(launchers[i]))
            return launch__say(l,
                               "a launcher started this process, as one of "
                               "several (%s), and each of them would start "
                               "workers: start it without the launcher",
                               launchers[i]);
    if (getenv("TF_CONFIG"))
        return launch__say(l, "the variable TF_CONFIG describes a cluster "
                              "already: unset it to start workers here");
    if (count > LAUNCH_MOST_TASKS)
        return launch__say(l, "%d tasks are more than %d", count,
                           LAUNCH_MOST_TASKS);
    if (l->least > l->workers)
        return launch__say(l,
                           "%d workers are less than the %d that must be "
                           "left",
                           l->workers, l->least);
    if (l->base_port > LAUNCH_MOST_PORT + 1 - count)
        return launch__say(l,
                           "the port %d leaves none for %d tasks: the last "
                           "one is %d",
                           l->base_port, count, LAUNCH_MOST_PORT);
    return 0;
}

/* ------------------------------------------------------------------ cluster */

static hvd_role role_of(const struct launch *l, int number)
{
    if (number < l->workers)
        return HVD_ROLE_WORKER;
    return number < l->workers + l->servers ? HVD_ROLE_PS : HVD_ROLE_EVALUATOR;
}

static int describe(struct launch__tasks *tasks, hvd_cluster *cluster,
                    const int *ports)
{
    for (int i = 0; i < tasks->count; i++) {
        struct launch__task *task = &tasks->tasks[i];
        char host[32] = "127.0.0.1", address[48];

        if (tasks->launch->rsh)
            snprintf(host, sizeof host, LAUNCH__HOST_NAME, i);
        snprintf(address, sizeof address, "%s:%d", host, ports[i]);
        task->role = role_of(tasks->launch, i);
        task->index = hvd_cluster_add(cluster, task->role, address);
        if (task->index < 0)
            return launch__say(tasks->launch, "%s", hvd_last_error());
        task->first = i == 0 && !tasks->launch->rsh;
        task->host = task->control = -1;
        task->streams[0].from = task->streams[1].from = -1;
        snprintf(task->name, sizeof task->name, "%s %d",
                 hvd_role_name(task->role), (int)task->index);
    }
    return 0;
}

static int choose_ports(const struct launch__tasks *tasks, int *ports)
{
    const struct launch *l = tasks->launch;

    if (!ports)
        return launch__say(l, "out of memory");
    if (l->base_port == 0)
        return launch__free_ports(tasks->count, ports) == 0
                   ? 0
                   : launch__say(l, "%d free ports: %s", tasks->count,
                                 strerror(errno));
    for (int i = 0; i < tasks->count; i++)
        ports[i] = l->base_port + i;
    return 0;
}

static int make_cluster(struct launch__tasks *tasks, hvd_cluster *cluster)
{
    int *ports = malloc((size_t)tasks->count * sizeof *ports);
    int status = choose_ports(tasks, ports);

    if (status == 0)
        status = describe(tasks, cluster, ports);
    free(ports);
    return status;
}

/* ------------------------------------------------------------------ signals */

/* Has signals come as data. Returns the descriptor, or -1. */
static int catch_signals(struct launch__tasks *tasks)
{
    static const int numbers[] = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP,
                                  SIGQUIT, SIGUSR1, SIGUSR2};
    struct sigaction ignored = {.sa_handler = SIG_IGN};
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t caught;
    int fd;

    sigemptyset(&caught);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&caught, numbers[i]);
    sigprocmask(SIG_BLOCK, &caught, &tasks->mask);
    /* A parent that ignores it would have its children vanish unseen. */
    sigaction(SIGCHLD, &usual, NULL);
    sigaction(SIGPIPE, &ignored, &tasks->broken);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    fd = signalfd(-1, &caught, SFD_NONBLOCK | SFD_CLOEXEC);
    return fd >= 0 ? fd
                   : launch__say(tasks->launch, "signals: %s", strerror(errno));
}

/* ------------------------------------------------------------------ the run */

static int run_tasks(struct launch__tasks *tasks)
{
    int signals = catch_signals(tasks), status;

    if (signals < 0)
        return 1;
    status = launch__watch(tasks, signals);
    explicit_bzero(tasks->key, sizeof tasks->key);
    close(signals);
    return status;
}

static int prepare(struct launch__tasks *tasks, hvd_cluster **cluster)
{
    const struct launch *l = tasks->launch;

    if (check(l) < 0)
        return -1;
    tasks->count = l->workers + l->servers + l->evaluator;
    tasks->available = l->script ? 0 : l->workers;
    tasks->tasks = calloc((size_t)tasks->count, sizeof *tasks->tasks);
    if (!tasks->tasks || hvd_cluster_new(cluster) < 0)
        return launch__say(l, "out of memory");
    tasks->cluster = *cluster;
    if (getrandom(tasks->key, sizeof tasks->key, 0) !=
        (ssize_t)sizeof tasks->key)
        return launch__say(l, "a key of the job: %s", strerror(errno));
    return make_cluster(tasks, *cluster);
}

int launch_run(const struct launch *launch)
{
    struct launch__tasks tasks = {.launch = launch};
    hvd_cluster *cluster = NULL;
    int status = prepare(&tasks, &cluster) < 0 ? 1 : run_tasks(&tasks);

    free(tasks.tasks);
    free(tasks.hosts);
    hvd_cluster_free(cluster);
    return status;
}

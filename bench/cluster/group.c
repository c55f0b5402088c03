/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.c - starts the processes of a backend, orders, and ends them.
 *
 * Each process has a socket of its own to this one: an order and its answer
 * are each one record. A process that ends is seen as the end of its socket; a
 * process that hangs is found by a limit of time. All processes end with this
 * one, however it ends.
 */
#include "cluster/group.h"

#include "cluster/worker.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* An answer may take so long. */
enum { ANSWER_MS = 120000, END_MS = 5000 };

static int fail(struct group *group, const char *error)
{
    snprintf(group->error, sizeof group->error, "%s: %.400s",
             group->backend->name, error);
    return -1;
}

/* ---------------------------------------------------------------- directory */

static int make_directory(struct group *group)
{
    const char *parent = getenv("TMPDIR");
    char text[320];

    if (!parent || !*parent)
        parent = "/tmp";
    if (snprintf(group->directory, sizeof group->directory,
                 "%s/hvd-bench.XXXXXXXX",
                 parent) < (int)sizeof group->directory &&
        mkdtemp(group->directory))
        return 0;
    group->directory[0] = '\0';
    snprintf(text, sizeof text, "no directory can be made in %.200s", parent);
    return fail(group, text);
}

static void remove_directory(struct group *group)
{
    DIR *directory = group->directory[0] ? opendir(group->directory) : NULL;
    const struct dirent *entry;

    if (!directory)
        return;
    while ((entry = readdir(directory)))
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
    rmdir(group->directory);
    group->directory[0] = '\0';
}

/* ----------------------------------------------------------------- starting */

/* Writes the addresses of free ports as JSON. All are bound at once, so that
 * they differ. */
static int find_addresses(struct group *group)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int sockets[GROUP_MOST], n = 0;
    size_t used = 0;
    bool well = true;

    for (; n < group->nranks && well; n++) {
        struct sockaddr_in got = {0};
        socklen_t size = sizeof got;

        sockets[n] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        well = sockets[n] >= 0 &&
               bind(sockets[n], (struct sockaddr *)&at, sizeof at) == 0 &&
               getsockname(sockets[n], (struct sockaddr *)&got, &size) == 0;
        if (well)
            used += (size_t)snprintf(
                group->addresses + used, sizeof group->addresses - used,
                "%s\"127.0.0.1:%d\"", n ? "," : "", ntohs(got.sin_port));
    }
    while (n > 0)
        if (sockets[--n] >= 0)
            close(sockets[n]);
    return well ? 0 : fail(group, "there are no free ports");
}

static void describe(struct group *group, int rank)
{
    snprintf(group->tf_config, sizeof group->tf_config,
             "{\"cluster\":{\"worker\":[%s]},"
             "\"task\":{\"type\":\"worker\",\"index\":%d}}",
             group->addresses, rank);
}

/* Starts the next process. */
static int start_one(struct group *group)
{
    const int rank = group->nstarted;
    const pid_t own = getpid();
    int pair[2];
    pid_t pid;

    describe(group, rank);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return fail(group, strerror(errno));
    pid = fork();
    if (pid == 0) {
        const struct backend_place place = {rank, group->nranks,
                                            group->tf_config, group->directory};

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != own)
            _exit(1);
        close(pair[0]);
        /* A process that was forked later has copies of the sockets of earlier
         * ones. They would keep these open after the parent has closed them. */
        for (int i = 0; i < rank; i++)
            close(group->sockets[i]);
        worker_run(group->backend, &place, group->most_bytes, pair[1]);
    }
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return fail(group, "no process can be started");
    }
    group->processes[rank] = pid;
    group->sockets[rank] = pair[0];
    group->nstarted++;
    return 0;
}

/* ------------------------------------------------------------------- orders */

/* Takes the answer of a process. */
static int hear(struct group *group, int rank, struct worker_answer *answer)
{
    struct pollfd one = {.fd = group->sockets[rank], .events = POLLIN};
    char text[320];
    int ready;

    do
        ready = poll(&one, 1, ANSWER_MS);
    while (ready < 0 && errno == EINTR);
    if (ready == 0) {
        snprintf(text, sizeof text, "process %d has hung for %d s", rank,
                 ANSWER_MS / 1000);
        return fail(group, text);
    }
    if (recv(one.fd, answer, sizeof *answer, 0) != (ssize_t)sizeof *answer) {
        snprintf(text, sizeof text, "process %d has ended", rank);
        return fail(group, text);
    }
    if (answer->status == 0)
        return 0;
    snprintf(text, sizeof text, "process %d: %s", rank, answer->error);
    return fail(group, text);
}

/* Takes the answers of all; adds up their times. */
static int hear_all(struct group *group, double *seconds)
{
    struct worker_answer answer;

    *seconds = 0;
    for (int rank = 0; rank < group->nranks; rank++) {
        if (hear(group, rank, &answer) < 0)
            return -1;
        *seconds += answer.seconds;
    }
    return 0;
}

static int order_all(struct group *group, const struct worker_order *order,
                     double *seconds)
{
    for (int rank = 0; rank < group->nranks; rank++)
        if (send(group->sockets[rank], order, sizeof *order, MSG_NOSIGNAL) < 0)
            return fail(group, "a process has ended");
    return hear_all(group, seconds);
}

int group_start(struct group *group, const struct backend *backend, int nranks,
                int64_t most_bytes)
{
    double none;

    *group = (struct group){
        .backend = backend, .nranks = nranks, .most_bytes = most_bytes};
    if (make_directory(group) < 0 || find_addresses(group) < 0)
        return -1;
    while (group->nstarted < nranks)
        if (start_one(group) < 0)
            return -1;
    if (hear_all(group, &none) < 0)
        return -1;
    remove_directory(group);
    return 0;
}

int group_prepare(struct group *group, int64_t count)
{
    const struct worker_order order = {.count = count};
    double none;

    return order_all(group, &order, &none);
}

int group_run(struct group *group, int niters, double *seconds)
{
    const struct worker_order order = {.niters = niters};

    if (order_all(group, &order, seconds) < 0)
        return -1;
    *seconds /= (double)niters * group->nranks;
    return 0;
}

/* ------------------------------------------------------------------- ending */

void group_stop(struct group *group)
{
    for (int rank = 0; rank < group->nstarted; rank++)
        shutdown(group->sockets[rank], SHUT_WR);
    for (int rank = 0; rank < group->nstarted; rank++) {
        /* A process ends by itself, which the end of its socket tells; after a
         * failure it waits for others. */
        struct pollfd one = {.fd = group->sockets[rank], .events = POLLIN};

        if (group->error[0] || poll(&one, 1, END_MS) <= 0)
            kill(group->processes[rank], SIGKILL);
        waitpid(group->processes[rank], NULL, 0);
        close(group->sockets[rank]);
    }
    group->nstarted = 0;
    remove_directory(group);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.h - the processes of one backend, which do what they are told through
 * pipes and are idle in between. So several backends can have turns in one run.
 */
#ifndef BENCH_CLUSTER_GROUP_H
#define BENCH_CLUSTER_GROUP_H

#include "cluster/backend.h"

#include <stdint.h>
#include <sys/types.h>

enum { GROUP_MOST = 16, GROUP_ERROR = 512 };

struct group {
    const struct backend *backend; /* borrowed until group_stop */
    char directory[512];           /* where the processes meet; "": none */
    char tf_config[1024];          /* of the process that is being started */
    char addresses[768];           /* of all, as a JSON list has them */
    int nranks;                    /* how many processes are wanted */
    int nstarted;                  /* and how many there are */
    int64_t most_bytes;            /* of memory a process */
    pid_t processes[GROUP_MOST];
    int sockets[GROUP_MOST]; /* one a process */
    char error[GROUP_ERROR]; /* one line, after a failure */
};

/* Starts the processes of a backend, of which each gets so many bytes of
 * memory. Returns 0, or -1 with error filled; then group_stop is still to be
 * called. */
int group_start(struct group *group, const struct backend *backend, int nranks,
                int64_t most_bytes);

/* Prepares sums of count floats, and checks one with values that depend on the
 * rank. Returns 0 or -1. */
int group_prepare(struct group *group, int64_t count);

/* Runs so many sums. *seconds becomes the time of one, as a mean over sums and
 * ranks. Returns 0 or -1. */
int group_run(struct group *group, int niters, double *seconds);

/* Ends the processes and removes the directory. Accepts a zeroed group. */
void group_stop(struct group *group);

#endif

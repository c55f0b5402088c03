/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - the processes of a command, and which of them are ranks.
 *
 * All descendants of this process belong to the job, also those whose parents
 * have ended: this process adopts them (PR_SET_CHILD_SUBREAPER). A rank is a
 * descendant in whose environment its launcher has put a rank.
 */
#ifndef BENCH_CHAOS_JOB_H
#define BENCH_CHAOS_JOB_H

#include <stdbool.h>
#include <sys/types.h>

/* The kinds of processes, from the least to the most likely to be a rank: a
 * wrapper or a short-lived helper of one, another program, a process that has
 * loaded libhvd, and one in which hvd_init has made shared memory. */
enum { JOB_WRAPPER, JOB_PROGRAM, JOB_LOADED, JOB_STARTED };

struct job_rank {
    char name[24]; /* "3", "worker 1" */
    int order;     /* ranks are sorted by it */
    pid_t pid;
    char program[16];
    int likelihood; /* JOB_... */
    bool is_task;   /* of a cluster (TF_CONFIG), not of MPI */
    char state;     /* as in /proc/PID/stat */
    ino_t network;  /* its network namespace; 0: unknown */
    bool is_remote; /* that is not this process's */
};

struct job_process {
    pid_t pid, parent;
    char program[16];
    char state;
    double age; /* in seconds */
};

struct job_seen {
    int order;
    int likelihood;
};

struct job {
    struct job_rank *ranks; /* owned, [nranks]; sorted */
    int nranks;
    struct job_process *processes; /* owned, [nprocesses]: those alive */
    int nprocesses;
    struct job_seen *seen; /* owned, [nseen]: what was taken for each rank */
    int nseen;
    char **files; /* owned, [nfiles]: of /dev/shm, that the job has mapped */
    int nfiles;
};

/* Looks at all processes. Files are added to those seen before. Returns 0, or
 * -1 if memory or /proc is missing. */
int job_scan(struct job *job);

/* Sends a signal to all processes of the job. */
void job_signal(const struct job *job, int number);

void job_fini(struct job *job);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h - starts the tasks of a cluster as processes of this host, which
 * train together without MPI, and looks after them until the last one has
 * ended. hvd-run does this for any program, and the training programs for
 * themselves (--spawn).
 *
 * Each process finds a TF_CONFIG in its environment, whose addresses are of the
 * loopback interface, and a key of the job that nobody else has
 * (HVD_JOB_KEY_FD). The first worker has the standard input, output and error
 * of the caller. What another task writes comes out line by line, with its name
 * before it: "[worker 1] ...".
 *
 * SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on. As soon
 * as one task fails, the others have a few seconds to notice and say so; then
 * they are ended. Nobody is left behind, not even if the caller is killed.
 *
 * A worker that fails may be started again, and in an elastic job workers may
 * be lost as long as enough are left. A script may say from time to time how
 * many workers may run, or on which hosts: then a remote shell starts an agent
 * there for each worker (remote.h).
 */
#ifndef LAUNCH_LAUNCH_H
#define LAUNCH_LAUNCH_H

#include <stdbool.h>

enum { LAUNCH_MOST_TASKS = 1024 };

/* The least and the greatest first port. */
enum { LAUNCH_LEAST_PORT = 1, LAUNCH_MOST_PORT = 65535 };

struct launch {
    const char *program; /* the caller's name, for messages */
    int workers;         /* 1 or more */
    int servers;         /* tasks of type ps */
    bool evaluator;      /* there is one, too */
    int base_port;       /* port of the first task; the next ones follow. 0:
                            ports that are free */
    int least;           /* workers that must be left or come back; 0: all. If
                            above 0 the tasks find HVD_ELASTIC=1 */
    int spares;          /* so many of the workers are more than the job uses
                            at a time; only if least is above 0 */
    int restarts;        /* a worker is started again so often at most */
    const char *script;  /* prints this host and how many workers may run, is
                            run once a second; NULL: all may */
    const char *rsh;     /* starts agents on the hosts that the script prints;
                            there are only workers then. NULL: no other hosts */
    /* Runs in each new process. Returns its exit status, unless it becomes
     * another program. With rsh, launch_agent runs it there, and context has
     * the words of a command line, which NULL ends. */
    int (*start)(void *context);
    void *context;
};

/*
 * Runs a program for an hvd-run elsewhere, which tells it over standard input
 * what to do (remote.h). start gets the words of the program, which NULL ends.
 * Returns the exit status: that of the program, or 128 + N.
 */
int launch_agent(int (*start)(void *context));

/*
 * Does all of that, and returns an exit status: that of the task that failed
 * first, or 128 + N if signal N ended it; 0 if none failed, or if at least
 * "least" workers ended with 0 and none failed after that; 1, with a line on
 * standard error, if the tasks cannot be started. To be called by a process of
 * one thread that has no child processes. In the new processes the call does
 * not return.
 */
int launch_run(const struct launch *launch);

#endif

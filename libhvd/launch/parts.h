/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - what the files of this room share.
 */
#ifndef LAUNCH_PARTS_H
#define LAUNCH_PARTS_H

#include "launch/launch.h"

#include <hvd_cluster.h>
#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

/* --------------------------------------------------------------- messages */

/* Prints one line on standard error, behind the caller's name. Returns -1. */
__attribute__((format(printf, 2, 3))) int launch__say(
    const struct launch *launch, const char *format, ...);

/* ------------------------------------------------------------------- ports */

/* Finds count ports of the loopback interface that nobody uses, and that the
 * kernel gives to no connection of its own accord. Returns 0, or -1 with errno
 * set. */
int launch__free_ports(int count, int *ports);

/* ------------------------------------------------------------------ output */

/* A stream is what a task writes to one of its outputs. */
struct launch__stream {
    int from; /* -1: closed */
    int to;   /* where its lines go */
    char prefix[32];
    size_t used;
    char line[4096]; /* begins with the prefix */
};

/* Makes a pipe. Returns its end for the task, which the caller closes; -1 with
 * errno set. */
int launch__stream_open(struct launch__stream *stream, const char *name,
                        int to);

/* Passes on all that can be read at once. At the end of the pipe it also passes
 * on a last line without its end, and closes the stream. */
void launch__stream_pump(struct launch__stream *stream);

/* Does the same, and then closes the stream, whoever still has the other end.
 */
void launch__stream_close(struct launch__stream *stream);

/* ------------------------------------------------------------------- tasks */

struct launch__task {
    hvd_role role;
    int32_t index;
    char name[24]; /* "worker 1" */
    pid_t pid;     /* 0: it has ended, or was not started */
    bool first;    /* it has the caller's input and outputs */
    struct launch__stream streams[2];
};

enum { LAUNCH__KEY_BYTES = 32 };

/* All tasks, and what each new process needs. */
struct launch__tasks {
    const struct launch *launch; /* borrowed */
    const hvd_cluster *cluster;  /* borrowed */
    struct launch__task *tasks;  /* owned, [count] */
    int count, started;
    unsigned char key[LAUNCH__KEY_BYTES];
    sigset_t mask;           /* of the caller, for the new processes */
    struct sigaction broken; /* the caller's action for SIGPIPE */
};

/* Starts task number tasks->started. Returns 0 in the caller, or -1 after a
 * line on standard error; does not return in the new process. */
int launch__task_start(struct launch__tasks *tasks);

/* Sends a signal to all tasks that have not ended. */
void launch__tasks_signal(const struct launch__tasks *tasks, int number);

/* Kills what the tasks have left behind: processes that they had started. */
void launch__kill_orphans(void);

/* ------------------------------------------------------------------- watch */

/* Waits until all tasks have ended, as launch.h says. signals is a signalfd.
 * Returns the exit status. */
int launch__watch(struct launch__tasks *tasks, int signals);

#endif

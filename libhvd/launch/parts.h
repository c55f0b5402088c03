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

/* ------------------------------------------------- messages and the clock */

/* Prints one line on standard error, behind the caller's name. Returns -1. */
__attribute__((format(printf, 2, 3))) int launch__say(
    const struct launch *launch, const char *format, ...);

int64_t launch__now_ns(void);

/* Returns for how many seconds something that has failed so often before is not
 * tried again: 1, 2, 4, 8, 16, and then always 30. */
int launch__delay(int nfailures);

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

/* The fate of a task, once its process has ended. */
enum launch__end {
    LAUNCH__NO_END, /* it runs, or will be started */
    LAUNCH__WELL,
    LAUNCH__SPARED, /* it was not needed, and hvd_init failed there */
    LAUNCH__LOST,   /* the others go on */
    LAUNCH__FAILED  /* the job has failed */
};

struct launch__task {
    hvd_role role;
    int32_t index;
    char name[24]; /* "worker 1" */
    pid_t pid;     /* 0: it has ended, or was not started */
    bool first;    /* it has the caller's input and outputs */
    struct launch__stream streams[2];
    enum launch__end end;
    int code;         /* how it last failed: a status, or 128 + signal */
    int nrestarts;    /* how often it was started again */
    int64_t start_ns; /* it is to be started then; 0: it is not */
    bool taken_away;  /* it was ended because it may no longer run */
    int64_t taken_ns; /* since then */
    int64_t began_ns; /* when its process was started */
    bool has_lasted;  /* a process of it was there for some seconds */
    int host;         /* in the list of hosts; -1: none, or there is no list */
    int control;      /* where its agent is written to; -1: there is none */
    bool is_stopped, was_stopped;
};

enum { LAUNCH__KEY_BYTES = 32 };

/* A host that the script has named. */
struct launch__host {
    char name[256];
    char address[64]; /* a number, which other hosts can reach, too */
    int places;       /* workers that may run there; 0: it is not named now */
    int named;        /* the places of the answer that is being read */
    int nfailed;      /* workers that have failed there */
    int64_t bad_until_ns; /* it is not used before */
};

/* All tasks, and what each new process needs. */
struct launch__tasks {
    const struct launch *launch; /* borrowed */
    const hvd_cluster *cluster;  /* borrowed */
    struct launch__task *tasks;  /* owned, [count] */
    int count;
    int available;              /* workers that may run: the first ones */
    struct launch__host *hosts; /* owned, [nhosts]; only with launch->rsh */
    int nhosts;
    bool has_hosts; /* the script has named them at least once */
    unsigned char key[LAUNCH__KEY_BYTES];
    sigset_t mask;           /* of the caller, for the new processes */
    struct sigaction broken; /* the caller's action for SIGPIPE */
};

/* Starts a task. Returns 0 in the caller, or -1 after a line on standard error;
 * does not return in the new process. */
int launch__task_start(struct launch__tasks *tasks, struct launch__task *task);

/* Sends a signal to a task that runs. */
void launch__task_signal(struct launch__task *task, int number);

/* Sends a signal to all tasks that have not ended. */
void launch__tasks_signal(const struct launch__tasks *tasks, int number);

/* Kills what the tasks have left behind: processes that they had started. */
void launch__kill_orphans(void);

/* ------------------------------------------------------------------- watch */

/* The stage says what has been done to end the tasks. */
enum launch__stage {
    LAUNCH__RUNS,
    LAUNCH__NOTICES,
    LAUNCH__TERMINATED,
    LAUNCH__KILLED
};

struct launch__watch {
    struct launch__tasks *tasks;
    enum launch__stage stage;
    int64_t deadline_ns; /* of the stage */
    int status;          /* of the job; 0: it has not failed */
    int interrupted;     /* the signal that has asked for the end; 0: none */
    int nwell;           /* tasks that have ended well */
    int first_code;      /* of the first worker that was lost; 0: none */
    int64_t well_ns;     /* when the first task ended well */
    int64_t remains_ns;  /* nobody waits for those that are left since then; 0:
                            somebody does */
};

/* Begins a stage, which lasts at most so long. No task is started any more. */
void launch__enter(struct launch__watch *watch, enum launch__stage stage,
                   int64_t patience_ns);

/* Waits until all tasks have ended, as launch.h says. signals is a signalfd.
 * Returns the exit status. */
int launch__watch(struct launch__tasks *tasks, int signals);

/* -------------------------------------------------------------------- ends */

/* Decides what the end of a task means: whether it is started again, is lost,
 * or ends the job. status is waitpid's. */
void launch__note_end(struct launch__watch *watch, struct launch__task *task,
                      int status);

/* Ends tasks that are left when all others have ended, and are stopped, or have
 * come back too late to join. */
void launch__end_remains(struct launch__watch *watch);

/* Decides the status of an elastic job whose tasks have all ended, and says who
 * was lost. */
void launch__judge(struct launch__watch *watch);

/* ------------------------------------------------------------------- remote */

/* Makes the pipe to the agent of a worker (remote.h). Returns the agent's end,
 * which the caller closes; -1 with errno set. */
int launch__remote_open(struct launch__task *task);
/* Closes the pipe to the agent, if there is one. The agent then ends its
 * program. */
void launch__remote_close(struct launch__task *task);

/* Becomes the remote shell of a worker's host, whose agent finds its records in
 * its input. Returns -1 with errno set, or not at all. */
int launch__remote_become(const struct launch__tasks *tasks,
                          const struct launch__task *task, int input);

/* Returns whether a name is that of this host, which needs no remote shell. */
bool launch__is_here(const char *host);

/* Has an agent send a signal to its program. */
void launch__remote_signal(struct launch__task *task, int number);
/* Tells all agents where a worker is. */
void launch__remote_tell(struct launch__tasks *tasks, int worker);

/* -------------------------------------------------------------------- hosts */

/* Takes an answer of the script: between begin and end its hosts are named, one
 * perhaps several times. name returns 0, or -1 without memory. */
void launch__hosts_begin(struct launch__tasks *tasks);
int launch__hosts_name(struct launch__tasks *tasks, const char *name,
                       const char *address, int places);
void launch__hosts_end(struct launch__tasks *tasks);

/* Ends workers whose hosts may no longer be used, and gives hosts to workers
 * that have none. */
void launch__hosts_follow(struct launch__watch *watch);
/* The worker's process has ended: it has no host any more. */
void launch__hosts_leave(struct launch__tasks *tasks,
                         struct launch__task *task);
/* A worker has failed on its host, perhaps in a way that would only come again.
 * Writes what becomes of the host. Returns whether there are hosts for it. */
bool launch__hosts_fail(struct launch__tasks *tasks, struct launch__task *task,
                        bool is_hopeless, char *text, size_t size);

/* ---------------------------------------------------------------- discovery */

struct launch__discovery {
    pid_t pid;       /* of the script; 0: it does not run */
    int from;        /* what it writes; -1: closed */
    int64_t next_ns; /* when it is run again, or has taken too long */
    size_t used;
    char text[65536];
    bool has_answered, has_failed, has_left_out;
};

/* Runs the script when it is time. Returns 0, or -1 if the job cannot begin
 * without it. */
int launch__discovery_run(struct launch__discovery *discovery,
                          struct launch__tasks *tasks);

/* Reads what the script has written. */
void launch__discovery_pump(struct launch__discovery *discovery);

/* The script has ended with waitpid's status: sets tasks->available. Returns 0,
 * or -1 if that was the first answer and none. */
int launch__discovery_end(struct launch__discovery *discovery,
                          struct launch__tasks *tasks, int status);

#endif

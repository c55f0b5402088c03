/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - the process that trains for a client: mnist or char_gpt, beside
 * this program, on the graphs and options that the client sent. It is a process
 * of its own, so that whatever becomes of it, the server stays.
 *
 * Functions that return int return 0, or PROBLEM with the text kept.
 */
#ifndef MODELS_REMOTE_WORKER_H
#define MODELS_REMOTE_WORKER_H

#include "remote/description.h"
#include "remote/party.h"

#include <sys/types.h>

struct remote_worker {
    pid_t pid;         /* and its process group; 0: there is none */
    int output[2];     /* owned; what it prints on 1 and 2; -1: ended */
    int64_t killed_ns; /* when it was told to end; 0: it was not */
};

/* Starts it as the task of the party that this process is. The ports of all are
 * in ports, [party_size]; the files are in folder. */
int worker_start(struct remote_worker *worker, const struct remote_party *party,
                 const struct remote_description *description,
                 const char *folder, const uint32_t *ports);

/* Returns whether it has ended, without waiting, and with what exit status: 128
 * + the number of a signal. */
bool worker_has_ended(struct remote_worker *worker, int *status);

/* Has it end soon: by SIGTERM at the first call, and by SIGKILL if it is still
 * there two seconds later. */
void worker_kill(struct remote_worker *worker);

/* Ends it at once and waits for that. */
void worker_fini(struct remote_worker *worker);

#endif

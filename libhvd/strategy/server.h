/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h - the state of a parameter server: what serve.c, which talks to the
 * workers, and rounds.c, which decides when a gradient counts and when a worker
 * goes on, share.
 *
 * Everything below happens in callbacks of requests, one at a time, on the
 * thread that moves the engine. So there is no lock.
 */
#ifndef HVD_STRATEGY_SERVER_H
#define HVD_STRATEGY_SERVER_H

#include <stdatomic.h>

#include "base/status.h"
#include "strategy/changes.h"
#include "strategy/servers.h"

/* What a server knows of one part and one worker. */
enum hvd__slot_state {
    HVD__SLOT_IDLE,   /* the worker makes no step, or has its answer */
    HVD__SLOT_PUSHED, /* its gradient is here, and it waits for an answer */
    HVD__SLOT_REFUSED /* its gradient will not come in this step */
};

struct hvd__slot {
    struct hvd__shelf *shelf;
    struct hvd__client *client;
    float *gradient; /* in the server's arena; also what is sent as answer, if
                        the value may change meanwhile; NULL: sparse */
    enum hvd__slot_state state;
    int64_t version; /* of the value that the worker has */
    int64_t clock;   /* steps of the worker that have come */
    bool is_sending; /* an answer is under way, as far as this server knows: the
                        worker may have it, and have pushed again */
    bool is_due;     /* another answer waits for that */
    /* Of a sparse variable. */
    int64_t announced;       /* how many rows the worker sends */
    struct hvd__rows pushed; /* these */
    struct hvd__rows answer; /* what is under way to it */
    bool brings_all;         /* this has all that the worker lacks */
    bool is_all_due;         /* so must the next */
    struct hvd__rows asked;  /* rows that it reads */
    int64_t known;           /* version of which the worker has all rows */
};

/* A part that this server holds. */
struct hvd__shelf {
    struct hvd__server *server;
    const struct hvd__part *part;
    float *value;                    /* in the variable */
    float *states[HVD__MOST_STATES]; /* owned */
    int64_t updates;                 /* by the optimiser, over all trainings */
    int64_t version;                 /* updates since start; loads, too, if
                                        sparse */
    bool is_sparse;
    int64_t first, nrows, width;   /* rows of a sparse variable, and their
                                      elements */
    struct hvd__changes changes;   /* of these rows */
    struct hvd__slot *slots;       /* [workers] */
    char reason[HVD__MESSAGE_MAX]; /* of the last refused gradient */
};

enum hvd__client_state {
    HVD__CLIENT_ACTIVE,
    HVD__CLIENT_JOINED,
    HVD__CLIENT_ENDED
};

/* A worker, as a server sees it. */
struct hvd__client {
    struct hvd__server *server;
    int rank;
    int32_t pair; /* process set */
    enum hvd__client_state state;
    struct hvd__command command; /* the last */
    int64_t unanswered;          /* parts of the step or load under way */
    int64_t parcels;             /* copies and numbers on the way to it */
    bool is_waiting;             /* the command waits until they are there */
};

struct hvd__server {
    struct hvd_strategy *strategy;
    struct hvd__client *clients; /* owned; [nclients] */
    int nclients, nended;
    struct hvd__shelf *shelves; /* owned; [nshelves] */
    int32_t nshelves;
    struct hvd__slot *slots; /* owned; [nshelves * nclients] */
    float *arena;            /* owned, hvd_malloc; gradients */
    bool keeps_still;        /* a value cannot change while it is under way to a
                                worker: synchronous, without backups */
    atomic_llong in_flight;  /* requests whose callbacks will come; memory of
                           theirs  is not freed before */
    int32_t last;            /* rank of the worker that joined last */
    bool served;
    int status; /* the first failure */
    char reason[HVD__MESSAGE_MAX];
    atomic_bool done; /* published to the thread that serves: all of the above
                         is final */
    int64_t dropped, updates, ahead, gradients, bytes;
};

/* ----------------------------------------------------------------- rounds.c */

/* A gradient has come, or (refused: the reason, else NULL) will not. */
void hvd__round_take(struct hvd__slot *slot, const char *refused);
/* A worker has joined or ended: others may wait for it no longer. */
void hvd__round_leave(struct hvd__server *server);
/* All workers have joined, and start anew together. */
void hvd__round_restart(struct hvd__server *server);

/* ------------------------------------------------------------------ serve.c */

/* Sends the value of a part, as the answer to a push. */
void hvd__answer(struct hvd__slot *slot);
/* Says instead why there is none. */
void hvd__answer_refuse(struct hvd__slot *slot, const char *reason);
/* Counts an answer that needs no message. */
void hvd__answered(struct hvd__client *client);

/* Submits a request about a part, from the worker if push, else to it; only the
 * callback, whose context is the slot, tells the end, and first of all calls
 * hvd__server_note. */
void hvd__server_submit(struct hvd__slot *slot, const char *word, void *data,
                        int64_t count, hvd_dtype dtype, bool push,
                        hvd_callback callback);
void hvd__server_note(struct hvd__server *server, int status);
/* Ends the service with the last error. */
void hvd__server_fail(struct hvd__server *server, int status);

/* ------------------------------------- rows of sparse parts (server_rows.c) */

/* Makes a slot ready for a push. */
void hvd__server_rows_expect(struct hvd__slot *slot);
/* Sends the rows that have changed since the worker was last told; none, unless
 * all, if it reads them itself. */
void hvd__server_rows_send(struct hvd__slot *slot, bool all);
/* Expects a worker to ask for rows, which counts as answered when it has
 * them. */
void hvd__server_rows_lend(struct hvd__slot *slot);
/* Adds up all rows that are here, in the order of ranks, in the first slot that
 * has some, which is returned; the others have none left. NULL: out of memory,
 * and the service ends. */
struct hvd__slot *hvd__server_rows_add_up(struct hvd__shelf *shelf);
/* Makes the update of the rows of a slot, of the number that the part has. */
void hvd__server_rows_update(struct hvd__slot *slot);
/* Notes that a worker has written the whole part. */
void hvd__server_rows_loaded(struct hvd__shelf *shelf);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * servers.h - what a strategy has if its kind is
 * HVD_STRATEGY_PARAMETER_SERVER.
 *
 * A worker and a server talk by broadcasts on a process set of the two, and a
 * set of the workers serves for what they do among themselves. So deaths,
 * stalls, errors, the timeline and the transports are those of all other
 * requests. The words of a worker to a server, the same to all servers:
 *
 *     worker                                server
 *     command STEP, with rate and momentum
 *     push, for each part, when ready       takes the gradient (rounds.c)
 *                                           pull: the new value
 *     of a part of a sparse variable        (worker_rows.c, server_rows.c)
 *     push: how many rows; rows: these      takes them
 *                                           pull: how many rows have changed
 *                                           since the last pull; new: these
 *     command READ, then for each part of
 *     its variable: ask, how many rows;
 *     which                                 got: their values
 *     command VALUES or STATE               pull, for each part; of STATE also
 *                                           the optimiser's state
 *     command LOAD, and all of these        keeps them
 *     command JOIN                          when all workers have joined: who
 *                                           was last, and pull for each part
 *     command END
 *
 * A server listens to a worker's next command when it has answered the one
 * before. A push or pull that will not come is refused (hvd__refuse), by which
 * the other side gets an error instead.
 */
#ifndef HVD_STRATEGY_SERVERS_H
#define HVD_STRATEGY_SERVERS_H

#include <pthread.h>

#include "strategy/parts.h"
#include "strategy/strategy.h"

enum { HVD__PART_NAME = HVD_MAX_NAME + 1 };

enum hvd__command_code {
    HVD__COMMAND_STEP,
    HVD__COMMAND_VALUES,
    HVD__COMMAND_STATE,
    HVD__COMMAND_LOAD,
    HVD__COMMAND_JOIN,
    HVD__COMMAND_END,
    HVD__COMMAND_READ
};

/* A command as it travels, in broadcasts of HVD_UINT8. */
struct hvd__command {
    int32_t code;
    int32_t variable; /* READ; else 0 */
    double learning_rate;
    double momentum; /* 0: the optimiser has none */
};

/* A request of a worker that it waits for later. */
struct hvd__sent {
    hvd_handle handle; /* 0: nothing in flight */
    int status;        /* of the submission */
};

/* The rows of a part of a sparse variable, on their way. */
struct hvd__part_rows {
    struct hvd__rows out;  /* in its own memory, if the variable has several
                              parts */
    struct hvd__sent sent; /* out */
    int64_t n;             /* how many rows the server announces */
};

struct hvd__server;

struct hvd__servers {
    int32_t n;        /* how many servers; ranks nworkers, nworkers + 1 ... */
    int32_t nworkers; /* ranks 0, 1 ... */
    int32_t workers;  /* process set of the workers */
    int32_t *pairs; /* owned; [n * nworkers]: process set of server and worker,
                       worker by worker */
    struct hvd__part *parts; /* owned; those of a variable are neighbours */
    int32_t nparts;
    int32_t *first; /* owned; [nvariables + 1]: first part of each variable */
    /* On workers. */
    pthread_mutex_t lock;        /* held while a step is announced */
    bool announced;              /* the servers know of the step under way */
    struct hvd__command command; /* the last, until the next */
    struct hvd__sent *commands;  /* owned; [n] */
    struct hvd__sent *pushes;    /* owned; [nparts] */
    struct hvd__sent *pulls;     /* owned; [nparts] */
    struct hvd__part_rows *rows; /* owned; [nparts]; NULL: no variable is
                                    sparse */
    /* On servers; NULL elsewhere. */
    struct hvd__server *server;
};

/* Checks the options that are about servers, in a world of so many ranks. */
int hvd__servers_check(const hvd_strategy_options *options, int size);

/* Collective over all ranks: makes strategy->servers, and the process sets,
 * which later strategies use again. */
int hvd__servers_new(struct hvd_strategy *strategy);
/* Accepts a strategy that has none. On a worker it ends the step under way, and
 * sends END. */
void hvd__servers_free(struct hvd_strategy *strategy);

/* ------------------------------------------- their messages (messages.c) */

/* Returns the process set of a worker and a server, both from 0. */
int32_t hvd__servers_pair(const struct hvd__servers *servers, int32_t worker,
                          int32_t server);
/* Returns this rank's number as a server; negative on workers. */
int32_t hvd__servers_rank(const struct hvd__servers *servers);
/* Writes the name of a request about a part; word, of 5 letters at most, says
 * which. */
void hvd__part_name(const struct hvd_strategy *strategy,
                    const struct hvd__part *part, const char *word,
                    char name[HVD__PART_NAME]);
/* Fills a broadcast on a pair's set. count is borrowed. */
void hvd__pair_request(hvd_request *request, int32_t pair, const char *name,
                       void *data, const int64_t *count, hvd_dtype dtype,
                       int root);
/* Returns the first row of a part of a sparse variable, and how many it has. */
int64_t hvd__part_first_row(const struct hvd_strategy *strategy,
                            const struct hvd__part *part);
int64_t hvd__part_nrows(const struct hvd_strategy *strategy,
                        const struct hvd__part *part);

/* Submits a request of this worker. */
int hvd__send(hvd_request *request, struct hvd__sent *sent);
/* Waits for such a request, if there is one. */
int hvd__sent_wait(struct hvd__sent *sent);
/* Submits a request about a part: from its server if pull, else to it. */
int hvd__part_send(struct hvd_strategy *strategy, int32_t part,
                   const char *word, void *data, int64_t count, hvd_dtype dtype,
                   bool pull, struct hvd__sent *sent);

/* ---------------------------------------------- a worker (push.c, state.c) */

/* Sends a command to all servers, and waits until they have it. */
int hvd__command(struct hvd_strategy *strategy, enum hvd__command_code code);
/* Does the same for READ, of this variable. */
int hvd__command_read(struct hvd_strategy *strategy, int32_t variable);
/* The words of requests about the optimiser's state. */
extern const char *const hvd__state_words[HVD__MOST_STATES];

/* Sends the gradient of a variable to its servers. Any thread. */
int hvd__push(struct hvd_strategy *strategy, struct hvd__variable *variable);
/* Tells the servers that the gradient will not come. */
void hvd__push_refuse(struct hvd_strategy *strategy,
                      struct hvd__variable *variable, int status);
/* Asks for the new values of what was pushed. */
void hvd__pull(struct hvd_strategy *strategy);
/* Returns whether the servers have taken a gradient. */
bool hvd__push_done(struct hvd_strategy *strategy,
                    const struct hvd__variable *variable);
/* Waits for the new value of a variable. */
int hvd__pull_wait(struct hvd_strategy *strategy,
                   struct hvd__variable *variable);
/* Ends a step, of which nothing is under way any more. */
int hvd__push_end(struct hvd_strategy *strategy);

/* Do the same for the rows of a sparse variable, part by part (worker_rows.c):
 * copy those of each part; send them; ask how many come back; and, when that
 * has arrived, receive these into the variable. */
int hvd__part_rows_cut(struct hvd_strategy *strategy,
                       const struct hvd__variable *variable);
int hvd__part_rows_push(struct hvd_strategy *strategy, int32_t part);
int hvd__part_rows_pull(struct hvd_strategy *strategy, int32_t part,
                        struct hvd__sent *sent);
int hvd__part_rows_receive(struct hvd_strategy *strategy, int32_t part);
/* Waits for rows that were sent, and frees them. */
int hvd__part_rows_end(struct hvd_strategy *strategy, int32_t part);
/* Gets rows of a variable from its servers. The indices are checked. */
int hvd__servers_read_rows(struct hvd_strategy *strategy, int32_t variable,
                           const int64_t *indices, int64_t n);

/* Get what the servers hold: values; the optimiser's state too, in memory that
 * hvd__state_free frees. Not collective. */
int hvd__fetch_values(struct hvd_strategy *strategy);
int hvd__fetch_state(struct hvd_strategy *strategy);
/* Sends values and state, which this worker has, to the servers. */
int hvd__send_state(struct hvd_strategy *strategy);
/* Makes room for the optimiser's state on a worker, which is all zero. */
int hvd__state_new(struct hvd_strategy *strategy);
void hvd__state_free(struct hvd_strategy *strategy);
/* Does what hvd_strategy_join does. */
int hvd__servers_join(struct hvd_strategy *strategy, int *last);

/* ------------------------------------------------------ a server (serve.c) */

/* Makes room for what this server holds. */
int hvd__server_new(struct hvd_strategy *strategy);
void hvd__server_free(struct hvd_strategy *strategy);

#endif

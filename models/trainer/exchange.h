/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.h - the gradients of one rank, averaged with those of all others
 * while the backward pass still runs.
 *
 * A backend adds its variables, starts the exchange, has its device compute
 * each gradient in the memory that gradient() returns, calls ready() for each
 * as soon as it is there, and wait() before the optimiser reads the averages
 * from the same memory. The functions are in a table, so that backends can be
 * linked without libhvd into programs that have no ranks.
 */
#ifndef MODELS_EXCHANGE_H
#define MODELS_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

struct exchange;

struct servers_settings; /* strategy.h */
struct trainer_state;    /* trainer.h */

struct exchange_settings {
    int compression; /* the hvd_compression of gradients */
    int check_every; /* updates between comparisons of the ranks' variables; 0:
                        none */
    bool serial;     /* reduce only when all gradients are there */
    const struct servers_settings
        *servers;        /* parameter servers, which hold the
                            variables; NULL: there are none */
    bool keeps;          /* gradients come here even if there is one rank */
    bool on_host;        /* libhvd has the optimiser, on each rank */
    int optimizer;       /* an enum optimizer: of the servers, or on the host */
    double weight_decay; /* its */
};

/* Counts on this rank since the start. */
struct exchange_stats {
    int64_t averages; /* averages of a gradient over the ranks */
    int64_t early;    /* averages that had arrived when they were needed */
    double wait;      /* seconds that the rank only waited for averages */
};

/* Statuses are problems (problem.h), but for ready, wait and abandon: these are
 * called in a run of the device, and return a negative number to end it. */
struct exchange_functions {
    /* Adds variable 0, 1, ... in the order in which gradients become ready.
     * value is borrowed until free. */
    int (*add)(struct exchange *exchange, const char *name, float *value,
               int32_t ndim, const int64_t *shape);
    /* Adds a variable that each rank changes by itself. mean becomes its mean
     * over the ranks when it is read. Both are borrowed until free. */
    int (*add_statistic)(struct exchange *exchange, const char *name,
                         float *value, float *mean, int32_t ndim,
                         const int64_t *shape);
    /* Collective: rank 0's values become those of all ranks. Called again after
     * a stop. */
    int (*start)(struct exchange *exchange);
    /* Returns where the gradient of a variable, and later its average, is; the
     * exchange owns it. Call after the start. */
    float *(*gradient)(const struct exchange *exchange, int32_t variable);
    /* Notifies the exchange that a gradient is complete. */
    int (*ready)(struct exchange *exchange, int32_t variable);
    /* Waits until all averages have arrived. */
    int (*wait)(struct exchange *exchange);
    /* Ends this update on all ranks, with a reason that they report. */
    int (*abandon)(struct exchange *exchange, const char *why);
    /* Collective: returns 0 if status is 0 on all ranks (agree.h). */
    int (*agree)(struct exchange *exchange, int status);
    void (*get_stats)(const struct exchange *exchange,
                      struct exchange_stats *stats);
    void (*free)(struct exchange *exchange);
    /* Returns where the average is after a wait or, if the exchange updates,
     * the new value of the variable. NULL: where the gradient was. */
    const float *(*result)(const struct exchange *exchange, int32_t variable);
    /* Collective: gives all ranks the newest variables. NULL: they have them.
     */
    int (*settle)(struct exchange *exchange);
    /* Collective: reads the statistics of all ranks. */
    int (*read_statistics)(struct exchange *exchange);
    /* Ends what other processes than those of the ranks that train do for the
     * exchange, until the next start: parameter servers are free. NULL: there
     * is nothing to end. What the optimiser keeps is there again then. */
    void (*stop)(struct exchange *exchange);
    /* Describes number i = 0, 1, ... of the tensors that the optimiser of an
     * exchange that updates keeps; false: there are not so many. NULL: it has
     * no optimiser, as in the next two. */
    bool (*state)(const struct exchange *exchange, int i,
                  struct trainer_state *state);
    /* Copies all of them to data. The newest values come with them. */
    int (*read_state)(const struct exchange *exchange, void *const *data);
    /* Collective: all ranks go on from rank 0's data, values and statistics. */
    int (*write_state)(const struct exchange *exchange,
                       const void *const *data);
};

struct exchange {
    const struct exchange_functions *functions;
    bool alone;   /* there is one rank, and an average is the gradient itself */
    bool updates; /* what arrives is the new value of a variable */
    double rate;  /* learning rate of the next update, if it updates; set by the
                     backend */
    double momentum; /* likewise, set by the trainer; negative: the optimiser's
                        own */
    int problem;     /* the first failure since a backend cleared it; 0: none */
};

/* Makes an exchange between the ranks of libhvd. Not collective. */
int exchange_new(const struct exchange_settings *settings,
                 struct exchange **exchange);

/* Returns zeros for NULL. */
static inline struct exchange_stats exchange_get_stats(
    const struct exchange *exchange)
{
    struct exchange_stats stats = {0};

    if (exchange)
        exchange->functions->get_stats(exchange, &stats);
    return stats;
}

static inline const float *exchange_result(const struct exchange *exchange,
                                           int32_t variable)
{
    return exchange->functions->result
               ? exchange->functions->result(exchange, variable)
               : exchange->functions->gradient(exchange, variable);
}

static inline void exchange_free(struct exchange *exchange)
{
    if (exchange)
        exchange->functions->free(exchange);
}

#endif

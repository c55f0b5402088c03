/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.h - the units of a problem that have run, and what is alive after them.
 *
 * Bytes alive follow from the set of the units that have run, not from their
 * order. So a unit can be run to try and be undone again.
 */
#ifndef IPU_COMPILER_ORDER_FRONT_H
#define IPU_COMPILER_ORDER_FRONT_H

#include "compiler/order/order.h"

struct ipu__front {
    const struct ipu__order_problem *problem; /* borrowed */
    int32_t *waits;    /* owned, as all: [units]: predecessors that have not
                          run */
    uint64_t *ready;   /* a bit for each unit that can run next */
    int32_t low, high; /* words of ready that may have bits */
    int32_t *left;     /* [storages]: users that have not run */
    bool *done;        /* [units]: taken, or run to try */
    int64_t live;      /* bytes */
    int32_t *taken;    /* [units]: in the order in which they were taken */
    int32_t ntaken;
    int64_t peak; /* peak bytes of the units taken; at least the allowed peak */
};

/* fini also after a failure */
int ipu__front_init(struct ipu__front *front,
                    const struct ipu__order_problem *problem);
void ipu__front_fini(struct ipu__front *front);

/* Begins anew: nothing has run. allowed: the least that the peak is. */
void ipu__front_begin(struct ipu__front *front, int64_t allowed);

/* Units that are not taken. */
int32_t ipu__front_rest(const struct ipu__front *front);

/* The effect of running a unit next: bytes alive while it runs and after. */
struct ipu__effect {
    int64_t during, after;
};

struct ipu__effect ipu__front_effect(const struct ipu__front *front,
                                     int32_t unit);

/* Runs a unit to try; live does not change. Undoes that, if nothing that waited
 * for the unit has run since. */
void ipu__front_run(struct ipu__front *front, int32_t unit);
void ipu__front_undo(struct ipu__front *front, int32_t unit);

/* Takes a unit for good. */
void ipu__front_take(struct ipu__front *front, int32_t unit);

/* Returns whether a unit that has run could be undone; the bytes that would
 * then be alive more. */
bool ipu__front_can_undo(const struct ipu__front *front, int32_t unit);
int64_t ipu__front_without(const struct ipu__front *front, int32_t unit);

/* Adds units that can run to a list, each once, while it has fewer than most:
 * the one that is named, if it can; all, by number. */
void ipu__front_add_if_ready(const struct ipu__front *front, int32_t unit,
                             int32_t most, int32_t *units, int32_t *count);
void ipu__front_add_ready(struct ipu__front *front, int32_t most,
                          int32_t *units, int32_t *count);

/* Bytes that what a unit makes need no memory for, since they take the place of
 * inputs. dying: a bit for each of its first 64 uses that ends with it. */
int64_t ipu__unit_reused(const struct ipu__order_problem *problem,
                         const struct ipu__order_unit *unit, uint64_t dying);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frontier.h - units that are put into an order from both ends, and what is
 * alive there: after the first units, and before the last.
 *
 * What holds for the front going forward holds for the back going backward: a
 * unit can be taken there if all that wait for it have been; the cells that it
 * makes are then gone, those that it uses are alive.
 */
#ifndef IPU_COMPILER_ORDER_FRONTIER_H
#define IPU_COMPILER_ORDER_FRONTIER_H

#include "compiler/order/order.h"

enum ipu__direction { IPU__FORWARD, IPU__BACKWARD };

struct ipu__end {
    int32_t *waits;    /* owned, as all: [units]: neighbours to come before */
    uint64_t *ready;   /* a bit a unit: it can be taken next */
    int32_t low, high; /* words of ready that may have bits */
    int32_t *left;     /* [cells]: users that this end has not passed */
    int64_t live;      /* bytes */
    int32_t *taken;    /* [units]: in this order */
    int32_t ntaken;
};

struct ipu__ends {
    const struct ipu__order *o; /* borrowed */
    struct ipu__end end[2];     /* by direction */
    bool *done;                 /* [units]: taken, or run to try */
    int32_t rest;               /* units that are not taken */
    int64_t peak;               /* so far, bytes; at least what is allowed */
};

/* fini also after a failure */
int ipu__ends_init(struct ipu__ends *ends, const struct ipu__order *order);
void ipu__ends_fini(struct ipu__ends *ends);

/* Nothing is taken; allowed: the least that the peak is. */
void ipu__ends_begin(struct ipu__ends *ends, int64_t allowed);

/* What running a unit next means: bytes alive while it runs, and at its other
 * side. */
struct ipu__effect {
    int64_t during, after;
};

struct ipu__effect ipu__end_effect(const struct ipu__ends *ends,
                                   enum ipu__direction d, int32_t unit);

/* Run it to try, live not touched; undo that, if nothing that waited for it has
 * been run since; take it for good. */
void ipu__end_run(struct ipu__ends *ends, enum ipu__direction d, int32_t unit);
void ipu__end_unrun(struct ipu__ends *ends, enum ipu__direction d,
                    int32_t unit);
void ipu__end_take(struct ipu__ends *ends, enum ipu__direction d, int32_t unit);

/* Whether nothing that waited for a unit that has run, has; bytes that would be
 * alive more if it had not. */
bool ipu__end_is_outermost(const struct ipu__ends *ends, enum ipu__direction d,
                           int32_t unit);
int64_t ipu__end_without(const struct ipu__ends *ends, enum ipu__direction d,
                         int32_t unit);

/* The units that wait for one, seen from an end. */
const int32_t *ipu__end_next(const struct ipu__order *order,
                             enum ipu__direction d, int32_t unit,
                             int32_t *count);

/* Units that can run, each once, as long as there are fewer than most: one, if
 * it can; all, in the order of their numbers seen from the end. */
void ipu__end_candidate(const struct ipu__ends *ends, enum ipu__direction d,
                        int32_t unit, int32_t most, int32_t *units,
                        int32_t *count);
void ipu__end_ready(struct ipu__ends *ends, enum ipu__direction d, int32_t most,
                    int32_t *units, int32_t *count);

/* Bytes that what a unit makes need not have of their own, if so many of its
 * first uses die: a bit each. */
int64_t ipu__unit_reuses(const struct ipu__order *order,
                         const struct ipu__unit *unit, uint64_t dying);

#endif

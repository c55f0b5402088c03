/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spares.h - units of one entry that are over, kept for the next requests: to
 * have them from malloc, and cleared, takes a tenth of the time of a small
 * request, once more than a few are in flight.
 *
 * A step of training asks for what the one before asked for. So a unit whose
 * request may come again is found by the address of its result, and if the
 * request that comes is the same, it is that one again: its name, sizes and
 * addresses were found to be good, its fingerprints are made.
 *
 * The request table has them, and its lock guards them.
 */
#ifndef HVD_CORE_SPARES_H
#define HVD_CORE_SPARES_H

#include <stdatomic.h>

#include "core/request/request.h"

/* As many as a step of training may have in flight at once; places where to
 * look for them, a power of two. */
enum { HVD__SPARES_MOST = 512, HVD__SPARES_PLACES = 2 * HVD__SPARES_MOST };

/* So many requests in a row that none of them was before, and it is no longer
 * looked for but now and then. */
enum { HVD__SPARES_PATIENCE = 4096, HVD__SPARES_NOW_AND_THEN = 16 };

struct hvd__spares {
    struct hvd__unit *plain;  /* owned, by later: those not to be found again */
    struct hvd__unit *oldest; /* owned, by later and earlier: the others, as */
    struct hvd__unit *youngest; /* ... they were given */
    int n;                      /* of all these */
    atomic_int nmissed;         /* in a row; read without the lock */
    /* Borrowed, spare or in use: where they are found again. */
    struct hvd__unit *places[HVD__SPARES_PLACES];
};

/* Zeroed is none. */
void hvd__spares_fini(struct hvd__spares *spares);
/* One that is to be reset; NULL: make another. */
struct hvd__unit *hvd__spares_take(struct hvd__spares *spares);
/* Whether it is worth the time to look for one that was such a request before.
 * number: of the request, in any order. Needs no lock. */
static inline bool hvd__spares_may_recall(const struct hvd__spares *spares,
                                          int64_t number)
{
    return atomic_load_explicit(&spares->nmissed, memory_order_relaxed) <
               HVD__SPARES_PATIENCE ||
           hvd__mix((uint64_t)number) % HVD__SPARES_NOW_AND_THEN == 0;
}

/* One that was such a request before, and is one again, as it was checked
 * then; NULL: there is none. */
struct hvd__unit *hvd__spares_recall(struct hvd__spares *spares,
                                     const hvd_request *request,
                                     const char *name);
/* What the request of this unit was is kept in mind: it may come again. */
void hvd__spares_remember(struct hvd__spares *spares, struct hvd__unit *unit);
/* It is not to be found again. */
void hvd__spares_forget(struct hvd__spares *spares, struct hvd__unit *unit);
/* No request of this set is to be found again. */
void hvd__spares_forget_set(struct hvd__spares *spares,
                            const struct hvd__set *set);
/* A unit that is over, and owns nothing. false: there are enough. */
bool hvd__spares_give(struct hvd__spares *spares, struct hvd__unit *unit);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recycled.h - submissions of one request that are over, kept for the next
 * requests: to have them from malloc, and cleared, takes a tenth of the time of
 * a small request, once more than a few are in flight.
 *
 * A step of training asks for what the one before asked for. So a submission
 * whose request may come again is found by the address of its result, and if
 * the request that comes is the same, it is that one again: its name, sizes and
 * addresses were found to be good, its fingerprints are made.
 *
 * The request table has them, and its lock guards them.
 */
#ifndef HVD_CORE_RECYCLED_H
#define HVD_CORE_RECYCLED_H

#include <stdatomic.h>

#include "core/request/request.h"

/* As many as a step of training may have in flight at once; places where to
 * look for them, a power of two. */
enum {
    HVD__RECYCLED_MOST = 512,
    HVD__RECYCLED_PLACES = 2 * HVD__RECYCLED_MOST
};

/* So many requests in a row that none of them was before, and it is no longer
 * looked for but now and then. */
enum { HVD__RECYCLED_PATIENCE = 4096, HVD__RECYCLED_NOW_AND_THEN = 16 };

struct hvd__recycled {
    struct hvd__submission
        *plain; /* owned, by later: those not to be found again */
    struct hvd__submission
        *oldest; /* owned, by later and earlier: the others, as */
    struct hvd__submission *youngest; /* ... they were given */
    int n;                            /* of all these */
    atomic_int nmissed;               /* in a row; read without the lock */
    /* Borrowed, recycled or in use: where they are found again. */
    struct hvd__submission *places[HVD__RECYCLED_PLACES];
};

/* Zeroed is none. */
void hvd__recycled_fini(struct hvd__recycled *recycled);
/* One that is to be reset; NULL: make another. */
struct hvd__submission *hvd__recycled_take(struct hvd__recycled *recycled);
/* Whether it is worth the time to look for one that was such a request before.
 * number: of the request, in any order. Needs no lock. */
static inline bool hvd__recycled_may_recall(
    const struct hvd__recycled *recycled, int64_t number)
{
    return atomic_load_explicit(&recycled->nmissed, memory_order_relaxed) <
               HVD__RECYCLED_PATIENCE ||
           hvd__mix((uint64_t)number) % HVD__RECYCLED_NOW_AND_THEN == 0;
}

/* One that was such a request before, and is one again, as it was checked
 * then; NULL: there is none. */
struct hvd__submission *hvd__recycled_recall(struct hvd__recycled *recycled,
                                             const hvd_request *given,
                                             const char *name);
/* What the request of this submission was is kept in mind: it may come again.
 */
void hvd__recycled_remember(struct hvd__recycled *recycled,
                            struct hvd__submission *submission);
/* It is not to be found again. */
void hvd__recycled_forget(struct hvd__recycled *recycled,
                          struct hvd__submission *submission);
/* No request of this set is to be found again. */
void hvd__recycled_forget_set(struct hvd__recycled *recycled,
                              const struct hvd__set *set);
/* A submission that is over, and owns nothing. false: there are enough. */
bool hvd__recycled_give(struct hvd__recycled *recycled,
                        struct hvd__submission *submission);

#endif

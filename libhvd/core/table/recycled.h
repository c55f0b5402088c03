/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recycled.h - complete submissions of one request, kept for the next requests:
 * malloc and clearing them would take a tenth of the time of a small request,
 * once more than a few are in flight.
 *
 * A step of training asks for the same as the step before. So a submission
 * whose request may come again is found by the address of its result. If the
 * new request is equal, the submission is used again: its name, sizes and
 * addresses are checked, its fingerprints are made.
 *
 * The request table owns them, and its lock guards them.
 */
#ifndef HVD_CORE_RECYCLED_H
#define HVD_CORE_RECYCLED_H

#include <stdatomic.h>

#include "core/request/request.h"

/* The first is as many as a step of training may have in flight at once; the
 * second, a power of two, the places in which they are found. */
enum {
    HVD__RECYCLED_MOST = 512,
    HVD__RECYCLED_PLACES = 2 * HVD__RECYCLED_MOST
};

/* After so many requests in a row that were not found, only one in some is
 * looked for. */
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

/* A zeroed struct is empty. */
void hvd__recycled_fini(struct hvd__recycled *recycled);
/* Returns a submission that must be reset; NULL: make another. */
struct hvd__submission *hvd__recycled_take(struct hvd__recycled *recycled);
/* Returns true if it is worth the time to look for an equal request. number: of
 * the request, in any order. It needs no lock: nmissed is a hint. */
static inline bool hvd__recycled_may_recall(
    const struct hvd__recycled *recycled, int64_t number)
{
    return atomic_load_explicit(&recycled->nmissed, memory_order_relaxed) <
               HVD__RECYCLED_PATIENCE ||
           hvd__mix((uint64_t)number) % HVD__RECYCLED_NOW_AND_THEN == 0;
}

/* Returns a submission that was such a request before and is one again, as it
 * was checked then; NULL: there is none. */
struct hvd__submission *hvd__recycled_recall(struct hvd__recycled *recycled,
                                             const hvd_request *given,
                                             const char *name);
/* Keeps the request of this submission in mind: it may come again. */
void hvd__recycled_remember(struct hvd__recycled *recycled,
                            struct hvd__submission *submission);
/* Makes sure that the submission is not found again. */
void hvd__recycled_forget(struct hvd__recycled *recycled,
                          struct hvd__submission *submission);
/* Makes sure that no request of this set is found again. */
void hvd__recycled_forget_set(struct hvd__recycled *recycled,
                              const struct hvd__set *set);
/* Takes a submission that is complete and owns nothing. false: there are
 * enough. */
bool hvd__recycled_give(struct hvd__recycled *recycled,
                        struct hvd__submission *submission);

#endif

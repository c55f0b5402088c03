/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recycled.h - keeps complete submissions of one request for reuse: allocating
 * and clearing them would take a tenth of the time of a small request when more
 * than a few are in flight.
 *
 * A training step repeats the requests of the step before. So a submission
 * whose request may recur is found by the address of its result. If the new
 * request is equal, the submission is reused: its name, sizes and addresses are
 * already checked and its fingerprints computed.
 *
 * The request table owns the submissions, and its lock guards them.
 */
#ifndef HVD_CORE_RECYCLED_H
#define HVD_CORE_RECYCLED_H

#include <stdatomic.h>

#include "core/request/request.h"

/* HVD__RECYCLED_MOST is the number of requests that a training step may have in
 * flight at once. HVD__RECYCLED_PLACES, a power of two, is the number of places
 * in the index. */
enum {
    HVD__RECYCLED_MOST = 512,
    HVD__RECYCLED_PLACES = 2 * HVD__RECYCLED_MOST
};

/* After HVD__RECYCLED_PATIENCE misses in a row, only one request in
 * HVD__RECYCLED_NOW_AND_THEN is looked up. */
enum { HVD__RECYCLED_PATIENCE = 4096, HVD__RECYCLED_NOW_AND_THEN = 16 };

struct hvd__recycled {
    struct hvd__submission
        *plain;         /* owned, linked by later: not in the index */
    int n;              /* of these, and of the recycled ones in the index */
    atomic_int nmissed; /* misses in a row; read without the lock */
    uint32_t hand;      /* place of the last one that made room for others */
    /* The index: submissions in use, borrowed, and recycled ones, owned. */
    struct hvd__submission *places[HVD__RECYCLED_PLACES];
};

/* A zeroed struct is empty. */
void hvd__recycled_fini(struct hvd__recycled *recycled);
/* Returns a submission that the caller must reset, or NULL if there is none. */
struct hvd__submission *hvd__recycled_take(struct hvd__recycled *recycled);
/* Returns true if it is worth the time to look for an equal request. number is
 * a number of the request, in any order. No lock is needed, because nmissed is
 * a hint. */
static inline bool hvd__recycled_may_recall(
    const struct hvd__recycled *recycled, int64_t number)
{
    return atomic_load_explicit(&recycled->nmissed, memory_order_relaxed) <
               HVD__RECYCLED_PATIENCE ||
           hvd__mix((uint64_t)number) % HVD__RECYCLED_NOW_AND_THEN == 0;
}

/* Returns a submission that was an equal request before, now renewed without
 * new checks, or NULL if there is none. */
struct hvd__submission *hvd__recycled_recall(struct hvd__recycled *recycled,
                                             const hvd_request *given,
                                             const char *name);
/* Adds the submission to the index, because its request may recur. */
void hvd__recycled_remember(struct hvd__recycled *recycled,
                            struct hvd__submission *submission);
/* Makes sure that the submission is not found again. */
void hvd__recycled_forget(struct hvd__recycled *recycled,
                          struct hvd__submission *submission);
/* Makes sure that no request of this set is found again. */
void hvd__recycled_forget_set(struct hvd__recycled *recycled,
                              const struct hvd__set *set);
/* Takes a submission that is complete and owns nothing. Returns false if there
 * are enough. */
bool hvd__recycled_give(struct hvd__recycled *recycled,
                        struct hvd__submission *submission);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/table/recycled.h"

#include <stdlib.h>

/* The number of neighbouring places that are searched. */
enum { NEAR = 4 };

void hvd__recycled_fini(struct hvd__recycled *recycled)
{
    for (uint32_t i = 0; i < HVD__RECYCLED_PLACES; i++)
        if (recycled->places[i] && recycled->places[i]->is_recycled)
            hvd__recycled_forget(recycled, recycled->places[i]);
    while (recycled->plain) {
        struct hvd__submission *next = recycled->plain->later;

        free(recycled->plain);
        recycled->plain = next;
    }
    recycled->n = 0;
}

/* --------------------------------------------------------------- the places */

static void enlist_plain(struct hvd__recycled *recycled,
                         struct hvd__submission *submission)
{
    submission->later = recycled->plain;
    recycled->plain = submission;
}

/* Returns the first place for a request. The golden ratio spreads addresses
 * that lie close together evenly (Knuth, vol. 3, 6.4). */
_Static_assert(HVD__RECYCLED_PLACES == 1 << 10, "ten bits of 64");

static uint32_t first_place(const hvd_request *given)
{
    uint64_t spread =
        (uint64_t)(uintptr_t)given->output * UINT64_C(0x9e3779b97f4a7c15);

    /* The ten upper bits choose one of HVD__RECYCLED_PLACES. */
    return (uint32_t)(spread >> 54);
}

static struct hvd__submission **place_at(struct hvd__recycled *recycled,
                                         uint32_t number)
{
    return &recycled->places[number % HVD__RECYCLED_PLACES];
}

void hvd__recycled_forget(struct hvd__recycled *recycled,
                          struct hvd__submission *submission)
{
    if (submission->place == 0)
        return;
    *place_at(recycled, (uint32_t)submission->place - 1) = NULL;
    submission->place = 0;
    if (submission->is_recycled)
        enlist_plain(recycled, submission);
    submission->is_recycled = false;
}

void hvd__recycled_forget_set(struct hvd__recycled *recycled,
                              const struct hvd__set *set)
{
    for (uint32_t i = 0; i < HVD__RECYCLED_PLACES; i++)
        if (recycled->places[i] && recycled->places[i]->set == set)
            hvd__recycled_forget(recycled, recycled->places[i]);
}

/* --------------------------------------------------------- take, find, give */

/* Forgets the next recycled submission in the order of their places. */
static void forget_next(struct hvd__recycled *recycled)
{
    const struct hvd__submission *submission;

    do
        submission = *place_at(recycled, ++recycled->hand);
    while (!submission || !submission->is_recycled);
    hvd__recycled_forget(recycled, *place_at(recycled, recycled->hand));
}

struct hvd__submission *hvd__recycled_take(struct hvd__recycled *recycled)
{
    struct hvd__submission *submission;

    /* Submissions that may recur are kept until there are enough of them. */
    if (!recycled->plain && recycled->n >= HVD__RECYCLED_MOST)
        forget_next(recycled);
    submission = recycled->plain;
    if (!submission)
        return NULL;
    recycled->plain = submission->later;
    recycled->n--;
    return submission;
}

static void count_missed(struct hvd__recycled *recycled, bool found)
{
    int before = atomic_load_explicit(&recycled->nmissed, memory_order_relaxed);
    int after = found ? 0 : before + (before < HVD__RECYCLED_PATIENCE);

    if (after != before)
        atomic_store_explicit(&recycled->nmissed, after, memory_order_relaxed);
}

struct hvd__submission *hvd__recycled_recall(struct hvd__recycled *recycled,
                                             const hvd_request *given,
                                             const char *name)
{
    uint32_t first = first_place(given);

    for (uint32_t i = first; i < first + NEAR; i++) {
        struct hvd__submission *submission = *place_at(recycled, i);

        if (submission && submission->is_recycled &&
            hvd__submission_is_like(submission, given, name)) {
            submission->is_recycled = false;
            recycled->n--;
            hvd__submission_renew(submission, given);
            count_missed(recycled, true);
            return submission;
        }
    }
    count_missed(recycled, false);
    return NULL;
}

void hvd__recycled_remember(struct hvd__recycled *recycled,
                            struct hvd__submission *submission)
{
    uint32_t first = first_place(&submission->given), at = first;

    while (*place_at(recycled, at) && at < first + NEAR - 1)
        at++;
    /* If no place is free, another submission gives up its place. */
    if (*place_at(recycled, at))
        hvd__recycled_forget(recycled, *place_at(recycled, at));
    *place_at(recycled, at) = submission;
    submission->place = (int32_t)(at % HVD__RECYCLED_PLACES) + 1;
}

bool hvd__recycled_give(struct hvd__recycled *recycled,
                        struct hvd__submission *submission)
{
    if (submission->state.nrequests > 1 || recycled->n >= HVD__RECYCLED_MOST) {
        hvd__recycled_forget(recycled, submission);
        return false;
    }
    submission->is_recycled = submission->place > 0;
    if (!submission->is_recycled)
        enlist_plain(recycled, submission);
    recycled->n++;
    return true;
}

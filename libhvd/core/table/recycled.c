/* SPDX-License-Identifier: Apache-2.0 */
#include "core/table/recycled.h"

#include <stdlib.h>

/* Places next to each other where a unit may be. */
enum { NEAR = 4 };

static void free_list(struct hvd__unit *unit)
{
    while (unit) {
        struct hvd__unit *next = unit->later;

        free(unit);
        unit = next;
    }
}

void hvd__recycled_fini(struct hvd__recycled *recycled)
{
    free_list(recycled->plain);
    free_list(recycled->oldest);
    recycled->plain = recycled->oldest = recycled->youngest = NULL;
    recycled->n = 0;
}

/* ------------------------------------------------ the lists, and the places */

static void enlist_plain(struct hvd__recycled *recycled, struct hvd__unit *unit)
{
    unit->later = recycled->plain;
    recycled->plain = unit;
}

static struct hvd__unit *unlist_plain(struct hvd__recycled *recycled)
{
    struct hvd__unit *unit = recycled->plain;

    recycled->plain = unit->later;
    return unit;
}

static void enlist(struct hvd__recycled *recycled, struct hvd__unit *unit)
{
    unit->is_recycled = true;
    unit->later = NULL;
    unit->earlier = recycled->youngest;
    if (unit->earlier)
        unit->earlier->later = unit;
    else
        recycled->oldest = unit;
    recycled->youngest = unit;
}

static void unlist(struct hvd__recycled *recycled, struct hvd__unit *unit)
{
    unit->is_recycled = false;
    if (unit->earlier)
        unit->earlier->later = unit->later;
    else
        recycled->oldest = unit->later;
    if (unit->later)
        unit->later->earlier = unit->earlier;
    else
        recycled->youngest = unit->earlier;
}

/* The first place for a request. What lies beside each other in memory is
 * spread evenly (Knuth, vol. 3, 6.4: the golden ratio). */
_Static_assert(HVD__RECYCLED_PLACES == 1 << 10, "ten bits of 64");

static uint32_t first_place(const hvd_request *request)
{
    uint64_t spread =
        (uint64_t)(uintptr_t)request->output * UINT64_C(0x9e3779b97f4a7c15);

    /* The upper bits: HVD__RECYCLED_PLACES is that power of two. */
    return (uint32_t)(spread >> 54);
}

static struct hvd__unit **place(struct hvd__recycled *recycled, uint32_t number)
{
    return &recycled->places[number % HVD__RECYCLED_PLACES];
}

void hvd__recycled_forget(struct hvd__recycled *recycled,
                          struct hvd__unit *unit)
{
    if (unit->place == 0)
        return;
    *place(recycled, (uint32_t)unit->place - 1) = NULL;
    unit->place = 0;
    if (unit->is_recycled) {
        unlist(recycled, unit);
        enlist_plain(recycled, unit);
    }
}

void hvd__recycled_forget_set(struct hvd__recycled *recycled,
                              const struct hvd__set *set)
{
    for (uint32_t i = 0; i < HVD__RECYCLED_PLACES; i++)
        if (recycled->places[i] && recycled->places[i]->set == set)
            hvd__recycled_forget(recycled, recycled->places[i]);
}

/* ---------------------------------------------------------- take, find, give
 */

struct hvd__unit *hvd__recycled_take(struct hvd__recycled *recycled)
{
    /* What may recur is not given up before there are enough of them. */
    if (!recycled->plain && recycled->n >= HVD__RECYCLED_MOST)
        hvd__recycled_forget(recycled, recycled->oldest);
    if (!recycled->plain)
        return NULL;
    recycled->n--;
    return unlist_plain(recycled);
}

static void count_missed(struct hvd__recycled *recycled, bool found)
{
    int before = atomic_load_explicit(&recycled->nmissed, memory_order_relaxed);
    int after = found ? 0 : before + (before < HVD__RECYCLED_PATIENCE);

    if (after != before)
        atomic_store_explicit(&recycled->nmissed, after, memory_order_relaxed);
}

struct hvd__unit *hvd__recycled_recall(struct hvd__recycled *recycled,
                                       const hvd_request *request,
                                       const char *name)
{
    uint32_t first = first_place(request);

    for (uint32_t i = first; i < first + NEAR; i++) {
        struct hvd__unit *unit = *place(recycled, i);

        if (unit && unit->is_recycled &&
            hvd__unit_is_like(unit, request, name)) {
            unlist(recycled, unit);
            recycled->n--;
            hvd__unit_renew(unit, request);
            count_missed(recycled, true);
            return unit;
        }
    }
    count_missed(recycled, false);
    return NULL;
}

void hvd__recycled_remember(struct hvd__recycled *recycled,
                            struct hvd__unit *unit)
{
    uint32_t first = first_place(&unit->given), at = first;

    while (*place(recycled, at) && at < first + NEAR - 1)
        at++;
    /* In the worst case somebody else is forgotten. */
    if (*place(recycled, at))
        hvd__recycled_forget(recycled, *place(recycled, at));
    *place(recycled, at) = unit;
    unit->place = (int32_t)(at % HVD__RECYCLED_PLACES) + 1;
}

bool hvd__recycled_give(struct hvd__recycled *recycled, struct hvd__unit *unit)
{
    if (unit->nentries > 1 || recycled->n >= HVD__RECYCLED_MOST) {
        hvd__recycled_forget(recycled, unit);
        return false;
    }
    if (unit->place > 0)
        enlist(recycled, unit);
    else
        enlist_plain(recycled, unit);
    recycled->n++;
    return true;
}

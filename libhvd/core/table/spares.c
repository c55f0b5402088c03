/* SPDX-License-Identifier: Apache-2.0 */
#include "core/table/spares.h"

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

void hvd__spares_fini(struct hvd__spares *spares)
{
    free_list(spares->plain);
    free_list(spares->oldest);
    spares->plain = spares->oldest = spares->youngest = NULL;
    spares->n = 0;
}

/* ------------------------------------------------ the lists, and the places */

static void enlist_plain(struct hvd__spares *spares, struct hvd__unit *unit)
{
    unit->later = spares->plain;
    spares->plain = unit;
}

static struct hvd__unit *unlist_plain(struct hvd__spares *spares)
{
    struct hvd__unit *unit = spares->plain;

    spares->plain = unit->later;
    return unit;
}

static void enlist(struct hvd__spares *spares, struct hvd__unit *unit)
{
    unit->spare = true;
    unit->later = NULL;
    unit->earlier = spares->youngest;
    if (unit->earlier)
        unit->earlier->later = unit;
    else
        spares->oldest = unit;
    spares->youngest = unit;
}

static void unlist(struct hvd__spares *spares, struct hvd__unit *unit)
{
    unit->spare = false;
    if (unit->earlier)
        unit->earlier->later = unit->later;
    else
        spares->oldest = unit->later;
    if (unit->later)
        unit->later->earlier = unit->earlier;
    else
        spares->youngest = unit->earlier;
}

/* The first place for a request. What lies beside each other in memory is
 * spread evenly (Knuth, vol. 3, 6.4: the golden ratio). */
_Static_assert(HVD__SPARES_PLACES == 1 << 10, "ten bits of 64");

static uint32_t first_place(const hvd_request *request)
{
    uint64_t spread =
        (uint64_t)(uintptr_t)request->output * UINT64_C(0x9e3779b97f4a7c15);

    /* The upper bits: HVD__SPARES_PLACES is that power of two. */
    return (uint32_t)(spread >> 54);
}

static struct hvd__unit **place(struct hvd__spares *spares, uint32_t number)
{
    return &spares->places[number % HVD__SPARES_PLACES];
}

void hvd__spares_forget(struct hvd__spares *spares, struct hvd__unit *unit)
{
    if (unit->place == 0)
        return;
    *place(spares, (uint32_t)unit->place - 1) = NULL;
    unit->place = 0;
    if (unit->spare) {
        unlist(spares, unit);
        enlist_plain(spares, unit);
    }
}

void hvd__spares_forget_set(struct hvd__spares *spares,
                            const struct hvd__set *set)
{
    for (uint32_t i = 0; i < HVD__SPARES_PLACES; i++)
        if (spares->places[i] && spares->places[i]->set == set)
            hvd__spares_forget(spares, spares->places[i]);
}

/* ---------------------------------------------------------- take, find, give
 */

struct hvd__unit *hvd__spares_take(struct hvd__spares *spares)
{
    /* What may recur is not given up before there are enough of them. */
    if (!spares->plain && spares->n >= HVD__SPARES_MOST)
        hvd__spares_forget(spares, spares->oldest);
    if (!spares->plain)
        return NULL;
    spares->n--;
    return unlist_plain(spares);
}

static void count_missed(struct hvd__spares *spares, bool found)
{
    int before = atomic_load_explicit(&spares->nmissed, memory_order_relaxed);
    int after = found ? 0 : before + (before < HVD__SPARES_PATIENCE);

    if (after != before)
        atomic_store_explicit(&spares->nmissed, after, memory_order_relaxed);
}

struct hvd__unit *hvd__spares_recall(struct hvd__spares *spares,
                                     const hvd_request *request,
                                     const char *name)
{
    uint32_t first = first_place(request);

    for (uint32_t i = first; i < first + NEAR; i++) {
        struct hvd__unit *unit = *place(spares, i);

        if (unit && unit->spare && hvd__unit_is_like(unit, request, name)) {
            unlist(spares, unit);
            spares->n--;
            hvd__unit_renew(unit, request);
            count_missed(spares, true);
            return unit;
        }
    }
    count_missed(spares, false);
    return NULL;
}

void hvd__spares_remember(struct hvd__spares *spares, struct hvd__unit *unit)
{
    uint32_t first = first_place(&unit->given), at = first;

    while (*place(spares, at) && at < first + NEAR - 1)
        at++;
    /* In the worst case somebody else is forgotten. */
    if (*place(spares, at))
        hvd__spares_forget(spares, *place(spares, at));
    *place(spares, at) = unit;
    unit->place = (int32_t)(at % HVD__SPARES_PLACES) + 1;
}

bool hvd__spares_give(struct hvd__spares *spares, struct hvd__unit *unit)
{
    if (unit->nentries > 1 || spares->n >= HVD__SPARES_MOST) {
        hvd__spares_forget(spares, unit);
        return false;
    }
    if (unit->place > 0)
        enlist(spares, unit);
    else
        enlist_plain(spares, unit);
    spares->n++;
    return true;
}

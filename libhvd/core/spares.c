/* SPDX-License-Identifier: Apache-2.0 */
#include "core/spares.h"

#include <sched.h>
#include <stdlib.h>

/* Places next to each other where a unit may be. */
enum { NEAR = 4 };

static void enter(struct hvd__spares *spares)
{
    while (
        atomic_flag_test_and_set_explicit(&spares->taken, memory_order_acquire))
        sched_yield();
}

static void leave(struct hvd__spares *spares)
{
    atomic_flag_clear_explicit(&spares->taken, memory_order_release);
}

void hvd__spares_fini(struct hvd__spares *spares)
{
    struct hvd__unit *unit;

    while ((unit = spares->list)) {
        spares->list = unit->later;
        free(unit);
    }
    spares->n = 0;
}

/* ------------------------------------------------- the list, and the places */

static void enlist(struct hvd__spares *spares, struct hvd__unit *unit)
{
    unit->earlier = NULL;
    unit->later = spares->list;
    if (unit->later)
        unit->later->earlier = unit;
    spares->list = unit;
    spares->n++;
    unit->spare = true;
}

static void unlist(struct hvd__spares *spares, struct hvd__unit *unit)
{
    if (unit->earlier)
        unit->earlier->later = unit->later;
    else
        spares->list = unit->later;
    if (unit->later)
        unit->later->earlier = unit->earlier;
    spares->n--;
    unit->spare = false;
}

/* The first place for a request. What lies beside each other in memory is
 * spread evenly (Knuth, vol. 3, 6.4: the golden ratio). */
static uint32_t first_place(const hvd_request *request)
{
    uint64_t spread =
        (uint64_t)(uintptr_t)request->output * UINT64_C(0x9e3779b97f4a7c15);

    return (uint32_t)(spread >> 32) % HVD__SPARES_PLACES;
}

static struct hvd__unit **place(struct hvd__spares *spares, uint32_t number)
{
    return &spares->places[number % HVD__SPARES_PLACES];
}

static void lose(struct hvd__spares *spares, struct hvd__unit *unit)
{
    if (unit->place > 0)
        *place(spares, (uint32_t)unit->place - 1) = NULL;
    unit->place = 0;
    unit->known = false;
}

/* ---------------------------------------------------------- take, find, give
 */

struct hvd__unit *hvd__spares_take(struct hvd__spares *spares)
{
    struct hvd__unit *unit;

    enter(spares);
    unit = spares->list;
    if (unit) {
        unlist(spares, unit);
        lose(spares, unit);
    }
    leave(spares);
    if (!unit)
        return hvd__unit_new(1);
    hvd__unit_reset(unit);
    return unit;
}

struct hvd__unit *hvd__spares_recall(struct hvd__spares *spares,
                                     const hvd_request *request,
                                     const char *name)
{
    uint32_t first = first_place(request);
    struct hvd__unit *found = NULL;

    enter(spares);
    for (uint32_t i = first; i < first + NEAR && !found; i++) {
        struct hvd__unit *unit = *place(spares, i);

        if (unit && unit->spare && hvd__unit_is_like(unit, request, name))
            found = unit;
    }
    if (found)
        unlist(spares, found);
    leave(spares);
    if (found)
        hvd__unit_renew(found, request);
    return found;
}

void hvd__spares_remember(struct hvd__spares *spares, struct hvd__unit *unit,
                          const hvd_request *request, size_t bytes)
{
    uint32_t first = first_place(request), at = first;

    if (!hvd__unit_remember(unit, request, bytes))
        return;
    enter(spares);
    while (*place(spares, at) && at < first + NEAR - 1)
        at++;
    /* In the worst case somebody else is forgotten. */
    if (*place(spares, at))
        lose(spares, *place(spares, at));
    *place(spares, at) = unit;
    unit->place = (int32_t)(at % HVD__SPARES_PLACES) + 1;
    leave(spares);
}

void hvd__spares_forget(struct hvd__spares *spares, struct hvd__unit *unit)
{
    enter(spares);
    lose(spares, unit);
    leave(spares);
}

void hvd__spares_give(struct hvd__spares *spares, struct hvd__entry *entry)
{
    struct hvd__unit *unit = hvd__entry_fini(entry);

    if (!unit)
        return;
    enter(spares);
    if (unit->nentries == 1 && spares->n < HVD__SPARES_MOST) {
        enlist(spares, unit);
        unit = NULL;
    } else {
        lose(spares, unit);
    }
    leave(spares);
    free(unit);
}

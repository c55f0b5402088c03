/* SPDX-License-Identifier: Apache-2.0 */
#include "core/spares.h"

#include <stdlib.h>

/* Places next to each other where a unit may be. */
enum { NEAR = 4 };

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
    if (unit->place > 0)
        *place(spares, (uint32_t)unit->place - 1) = NULL;
    unit->place = 0;
}

/* ---------------------------------------------------------- take, find, give
 */

struct hvd__unit *hvd__spares_take(struct hvd__spares *spares)
{
    struct hvd__unit *unit = spares->list;

    if (unit) {
        unlist(spares, unit);
        hvd__spares_forget(spares, unit);
    }
    return unit;
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
            hvd__unit_renew(unit, request);
            return unit;
        }
    }
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
    enlist(spares, unit);
    return true;
}

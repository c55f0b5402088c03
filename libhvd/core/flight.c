/* SPDX-License-Identifier: Apache-2.0 */
#include "core/flight.h"

#include <stdlib.h>

#include "base/status.h"
#include "core/request.h"

enum { FIRST_BERTHS = 64 };

void hvd__flight_fini(struct hvd__flight *flight)
{
    free(flight->berths);
    *flight = (struct hvd__flight){0};
}

/* Where a key is, or would be. */
static struct hvd__berth *berth_of(const struct hvd__flight *flight,
                                   uint64_t key)
{
    uint32_t mask = flight->nberths - 1, i = (uint32_t)key & mask;

    while (flight->berths[i].unit && flight->berths[i].key != key)
        i = (i + 1) & mask;
    return &flight->berths[i];
}

struct hvd__unit *hvd__flight_find(const struct hvd__flight *flight,
                                   uint64_t key)
{
    return flight->n > 0 ? berth_of(flight, key)->unit : NULL;
}

static int grow(struct hvd__flight *flight)
{
    uint32_t nberths = flight->nberths ? 2 * flight->nberths : FIRST_BERTHS;
    struct hvd__berth *berths = calloc(nberths, sizeof *berths);

    if (!berths)
        return hvd__fail_memory(nberths * sizeof *berths);
    free(flight->berths);
    flight->berths = berths;
    flight->nberths = nberths;
    for (struct hvd__unit *u = flight->oldest; u; u = u->later)
        *berth_of(flight, u->key) = (struct hvd__berth){u->key, u};
    return HVD_OK;
}

int hvd__flight_add(struct hvd__flight *flight, struct hvd__unit *unit)
{
    if (2 * (flight->n + 1) > flight->nberths)
        HVD_TRY(grow(flight));
    *berth_of(flight, unit->key) = (struct hvd__berth){unit->key, unit};
    flight->n++;
    unit->later = NULL;
    unit->earlier = flight->youngest;
    if (flight->youngest)
        flight->youngest->later = unit;
    else
        flight->oldest = unit;
    flight->youngest = unit;
    return HVD_OK;
}

/* Those behind a free berth, up to the next, may have wanted it. */
static void move_up(struct hvd__flight *flight, uint32_t hole)
{
    uint32_t mask = flight->nberths - 1;
    struct hvd__berth *berths = flight->berths;

    for (uint32_t i = (hole + 1) & mask; berths[i].unit; i = (i + 1) & mask) {
        uint32_t wanted = (uint32_t)berths[i].key & mask;

        if (((i - wanted) & mask) < ((i - hole) & mask))
            continue; /* it is not beyond what it wanted by so much */
        berths[hole] = berths[i];
        hole = i;
    }
    berths[hole].unit = NULL;
}

void hvd__flight_remove(struct hvd__flight *flight, struct hvd__unit *unit)
{
    move_up(flight, (uint32_t)(berth_of(flight, unit->key) - flight->berths));
    flight->n--;
    if (unit->earlier)
        unit->earlier->later = unit->later;
    else
        flight->oldest = unit->later;
    if (unit->later)
        unit->later->earlier = unit->earlier;
    else
        flight->youngest = unit->earlier;
}

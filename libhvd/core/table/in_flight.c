/* SPDX-License-Identifier: Apache-2.0 */
#include "core/table/in_flight.h"

#include <stdlib.h>

#include "base/status.h"
#include "core/request/request.h"

enum { FIRST_CHAINS = 64 };

void hvd__in_flight_fini(struct hvd__in_flight *flight)
{
    free(flight->chains);
    *flight = (struct hvd__in_flight){0};
}

/* Where the chain begins that a key belongs to. */
static struct hvd__unit **chain_of(const struct hvd__in_flight *flight,
                                   uint64_t key)
{
    return &flight->chains[key & (flight->nchains - 1)];
}

struct hvd__unit *hvd__in_flight_find(const struct hvd__in_flight *flight,
                                      uint64_t key)
{
    struct hvd__unit *unit = flight->n > 0 ? *chain_of(flight, key) : NULL;

    while (unit && unit->key != key)
        unit = unit->chained;
    return unit;
}

static void chain(const struct hvd__in_flight *flight, struct hvd__unit *unit)
{
    struct hvd__unit **first = chain_of(flight, unit->key);

    unit->chained = *first;
    *first = unit;
}

static int grow(struct hvd__in_flight *flight)
{
    uint32_t nchains = flight->nchains ? 2 * flight->nchains : FIRST_CHAINS;
    struct hvd__unit **chains = calloc(nchains, sizeof *chains);

    if (!chains)
        return hvd__fail_memory(nchains * sizeof *chains);
    free(flight->chains);
    flight->chains = chains;
    flight->nchains = nchains;
    for (struct hvd__unit *u = flight->oldest; u; u = u->later)
        chain(flight, u);
    return HVD_OK;
}

int hvd__in_flight_add(struct hvd__in_flight *flight, struct hvd__unit *unit)
{
    if (2 * (flight->n + 1) > flight->nchains)
        HVD_TRY(grow(flight));
    chain(flight, unit);
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

void hvd__in_flight_remove(struct hvd__in_flight *flight,
                           struct hvd__unit *unit)
{
    struct hvd__unit **link = chain_of(flight, unit->key);

    while (*link != unit)
        link = &(*link)->chained;
    *link = unit->chained;
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

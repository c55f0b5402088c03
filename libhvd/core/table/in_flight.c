/* SPDX-License-Identifier: Apache-2.0 */
#include "core/table/in_flight.h"

#include <stdlib.h>

#include "base/status.h"
#include "core/request/request.h"

enum { FIRST_CHAINS = 64 };

void hvd__in_flight_fini(struct hvd__in_flight_table *flight)
{
    free(flight->chains);
    *flight = (struct hvd__in_flight_table){0};
}

/* Returns the head of the chain of a key. */
static struct hvd__submission **chain_of(
    const struct hvd__in_flight_table *flight, uint64_t key)
{
    return &flight->chains[key & (flight->nchains - 1)];
}

struct hvd__submission *hvd__in_flight_find(
    const struct hvd__in_flight_table *flight, uint64_t key)
{
    struct hvd__submission *submission =
        flight->n > 0 ? *chain_of(flight, key) : NULL;

    while (submission && submission->key != key)
        submission = submission->chained;
    return submission;
}

static void add_to_chain(const struct hvd__in_flight_table *flight,
                         struct hvd__submission *submission)
{
    struct hvd__submission **first = chain_of(flight, submission->key);

    submission->chained = *first;
    *first = submission;
}

static int grow_chains(struct hvd__in_flight_table *flight)
{
    uint32_t nchains = flight->nchains ? 2 * flight->nchains : FIRST_CHAINS;
    struct hvd__submission **chains = calloc(nchains, sizeof *chains);

    if (!chains)
        return hvd__fail_memory(nchains * sizeof *chains);
    free(flight->chains);
    flight->chains = chains;
    flight->nchains = nchains;
    for (struct hvd__submission *u = flight->oldest; u; u = u->later)
        add_to_chain(flight, u);
    return HVD_OK;
}

int hvd__in_flight_reserve(struct hvd__in_flight_table *flight)
{
    return 2 * (flight->n + 1) > flight->nchains ? grow_chains(flight) : HVD_OK;
}

void hvd__in_flight_add(struct hvd__in_flight_table *flight,
                        struct hvd__submission *submission)
{
    add_to_chain(flight, submission);
    flight->n++;
    submission->later = NULL;
    submission->earlier = flight->youngest;
    if (flight->youngest)
        flight->youngest->later = submission;
    else
        flight->oldest = submission;
    flight->youngest = submission;
}

void hvd__in_flight_remove(struct hvd__in_flight_table *flight,
                           struct hvd__submission *submission)
{
    struct hvd__submission **link = chain_of(flight, submission->key);

    while (*link != submission)
        link = &(*link)->chained;
    *link = submission->chained;
    flight->n--;
    if (submission->earlier)
        submission->earlier->later = submission->later;
    else
        flight->oldest = submission->later;
    if (submission->later)
        submission->later->earlier = submission->earlier;
    else
        flight->youngest = submission->earlier;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * started.c - the list of the strategies of this process that are started, and
 * their numbers. The simulator, whose process has many ranks, has a list for
 * each in its place (tests/sim/strategies.c).
 */
#include "base/mutex.h"
#include "strategy/strategy.h"

static struct hvd__mutex lock;       /* held while the list changes */
static struct hvd_strategy *started; /* list by id, ascending */

void hvd__strategy_enlist(struct hvd_strategy *strategy)
{
    struct hvd_strategy **place = &started;

    hvd__mutex_lock(&lock);
    while (*place && (*place)->id < strategy->id)
        place = &(*place)->next;
    strategy->next = *place;
    *place = strategy;
    hvd__mutex_unlock(&lock);
}

void hvd__strategy_strike(struct hvd_strategy *strategy)
{
    struct hvd_strategy **place = &started;

    hvd__mutex_lock(&lock);
    while (*place && *place != strategy)
        place = &(*place)->next;
    if (*place)
        *place = strategy->next;
    hvd__mutex_unlock(&lock);
}

int32_t hvd__strategy_number(void)
{
    static atomic_int nstrategies;

    return atomic_fetch_add(&nstrategies, 1);
}

struct hvd_strategy *hvd__strategy_first(void)
{
    return started;
}

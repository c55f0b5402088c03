/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join.c - lets ranks make different numbers of steps and hold the same
 * variables in the end.
 *
 * A rank that has no more data joins, and the others' steps go on without it:
 * its variables stay what they were. Each step needs all ranks that have not
 * joined, so the rank that joined last has made every step that any rank has
 * made. When all have joined, its variables, the optimiser's state and counts
 * go to all others.
 *
 * This is done for every strategy that is started, not only for the one that
 * the program names, since steps of all of them may go on without a rank that
 * joined. A rank that joins by hvd_join gets nothing afterwards; steps do not
 * go on without it (core/agree/coordinator.c).
 *
 * Under parameter servers it is these who know when all workers have joined
 * (serve.c), and each strategy is joined by itself.
 */
#include "base/fingerprint.h"
#include "base/status.h"
#include "core/api/refuse.h"
#include "strategy/optimizer.h"
#include "strategy/servers.h"

static int check_idle(void)
{
    for (const struct hvd_strategy *s = hvd__strategy_first(); s; s = s->next)
        HVD_TRY(hvd__strategy_check_idle(s, "a rank joins"));
    return HVD_OK;
}

/* Sparse gradients are gathered, which needs all ranks. */
static int check_dense(void)
{
    for (const struct hvd_strategy *s = hvd__strategy_first(); s; s = s->next)
        if (hvd__variable_sparse(s))
            return hvd__fail(HVD_ERR_UNSUPPORTED,
                             "variable '%s' is sparse, and its steps need all "
                             "ranks: a rank without data gives no rows instead "
                             "of joining",
                             hvd__variable_sparse(s)->name);
    return HVD_OK;
}

/* Collective. Checks whether all ranks have started the strategies that rank
 * root has, whose variables they are about to get. */
static int compare_lists(int root)
{
    uint64_t mine[2] = {0, 0}, theirs[2]; /* number and ids */

    for (const struct hvd_strategy *s = hvd__strategy_first(); s; s = s->next) {
        mine[0]++;
        mine[1] = hvd__fingerprint(mine[1], &s->id, sizeof s->id);
    }
    theirs[0] = mine[0];
    theirs[1] = mine[1];
    HVD_TRY(hvd_broadcast(theirs, sizeof theirs, HVD_UINT8, root));
    if (mine[0] == theirs[0] && mine[1] == theirs[1])
        return hvd__agree(0, HVD_OK);
    return hvd__agree(
        0,
        hvd__fail(
            HVD_ERR_MISMATCH,
            "the strategies that are started here, %llu, are not those of rank "
            "%d, "
            "%llu: all ranks start and free the same ones before they join",
            (unsigned long long)mine[0], root, (unsigned long long)theirs[0]));
}

/* Collective. Gives all ranks what a strategy of rank root holds. */
static int share(struct hvd_strategy *s, int root)
{
    double *momentum = hvd__optimizer_momentum(&s->options);
    struct {
        double learning_rate, momentum;
        int64_t ncalls;
    } counts = {s->options.learning_rate, momentum ? *momentum : 0, s->ncalls};

    HVD_TRY(hvd_broadcast(&counts, sizeof counts, HVD_UINT8, root));
    s->options.learning_rate = counts.learning_rate;
    if (momentum)
        *momentum = counts.momentum;
    s->ncalls = counts.ncalls;
    HVD_TRY(hvd__broadcast_values(s, root));
    return hvd__broadcast_state(s, root);
}

int hvd_strategy_join(hvd_strategy *strategy, int *last)
{
    int rank;

    HVD_TRY(hvd__strategy_check_worker(strategy));
    if (strategy->servers) {
        HVD_TRY(hvd__strategy_check_idle(strategy, "a rank joins"));
        return hvd__servers_join(strategy, last);
    }
    HVD_TRY(check_idle());
    HVD_TRY(check_dense());
    HVD_TRY(hvd__join_strategies(&rank));
    HVD_TRY(compare_lists(rank));
    for (struct hvd_strategy *s = hvd__strategy_first(); s; s = s->next)
        HVD_TRY(share(s, rank));
    if (last)
        *last = rank;
    return HVD_OK;
}

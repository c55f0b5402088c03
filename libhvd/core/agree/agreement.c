/* SPDX-License-Identifier: Apache-2.0 */
#include "core/agree/agreement.h"

#include <stdlib.h>

#include "base/status.h"
#include "core/agree/agree.h"
#include "core/settings/settings.h"

int hvd__agreement_new(struct hvd__set *set,
                       const struct hvd__settings *settings)
{
    size_t n = (size_t)set->team.size;
    struct hvd__agreement *a = calloc(1, sizeof *a);

    if (!a)
        return hvd__fail_memory(sizeof *a);
    set->agreement = a;
    a->tune.now.fusion_threshold = settings->fusion_threshold;
    a->scratch = calloc(n, sizeof *a->scratch);
    if (!a->scratch)
        return hvd__fail_memory(n * sizeof *a->scratch);
    HVD_TRY(hvd__relay_init(&a->relay, set));
    HVD_TRY(hvd__ordered_init(&a->ordered, set));
    if (set->team.rank > 0)
        return HVD_OK;
    a->coordinator = hvd__coordinator_new(set->ranks, set->team.size);
    return a->coordinator ? HVD_OK : hvd__fail_memory(n);
}

bool hvd__agree_is_over(const struct hvd__set *set)
{
    const struct hvd__ordered *x = &set->agreement->ordered;

    /* A rank that has left refuses an epoch in a round, which may take longer
     * here than on the coordinator; and the others may still have to do their
     * shares of what this rank left without waiting for it. */
    return set->agreement->heard_close && !x->unfinished.first &&
           (!x->round || !hvd__round_is_under_way(x->round));
}

void hvd__agree_drop(struct hvd__set *set)
{
    hvd__ordered_drop(&set->agreement->ordered);
}

void hvd__agreement_free(struct hvd__set *set)
{
    struct hvd__agreement *a = set->agreement;

    if (!a)
        return;
    hvd__coordinator_free(a->coordinator);
    hvd__ordered_fini(&a->ordered);
    hvd__relay_fini(&a->relay);
    hvd__tune_fini(&a->tune);
    free(a->scratch);
    free(a);
    set->agreement = NULL;
}

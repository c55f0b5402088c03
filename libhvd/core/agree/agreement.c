/* SPDX-License-Identifier: Apache-2.0 */
#include "core/agree/agreement.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "core/agree/agree.h"

int hvd__agreement_new(struct hvd__set *set)
{
    struct hvd__agreement *a;

    HVD_TRY(hvd__allocate(&a, 1, sizeof *a));
    set->agreement = a;
    a->tune.now.fusion_threshold = set->engine->settings.fusion_threshold;
    HVD_TRY(
        hvd__allocate(&a->scratch, (size_t)set->team.size, sizeof *a->scratch));
    HVD_TRY(hvd__relay_init(&a->relay, set));
    HVD_TRY(hvd__ordered_init(&a->ordered, set));
    if (set->team.rank == 0)
        HVD_TRY(
            hvd__coordinator_new(set->ranks, set->team.size, &a->coordinator));
    a->heard = a->coordinator ? &a->coordinator->proposals : &a->relay.held;
    return HVD_OK;
}

bool hvd__agree_is_over(const struct hvd__set *set)
{
    const struct hvd__ordered *x = &set->agreement->ordered;

    /* A rank that has left refuses an epoch in a round, which may take longer
     * here than on the coordinator; and the others may still have to do their
     * shares of what this rank left without waiting for it. */
    return set->agreement->heard_close && !x->unfinished.first &&
           (!x->round || !x->round->is_under_way);
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

/* --------------------------------------------------------------- autotuning */

/* The coordinator measures what the executor has moved, lets the search
 * (tune.c) choose the next sizes, and puts them into force. Only it, and the
 * speaker of its host, use them; what other members must know of them comes
 * with each decision. */

int hvd__agree_tune(struct hvd__set *set)
{
    const struct hvd__settings *s = &set->engine->settings;
    struct hvd__agreement *a = set->agreement;
    struct hvd__knobs knobs = {.fusion_threshold = 1, .direct_max = 8 << 10};
    int found;

    if (!s->autotune || !a->coordinator)
        return HVD_OK;
    while (knobs.fusion_threshold <= s->fusion_threshold / 2)
        knobs.fusion_threshold *= 2;
    found = s->autotune_file[0] ? hvd__knobs_read(&knobs, s->autotune_file) : 0;
    if (found < 0)
        return found;
    HVD_TRY(hvd__tune_start(&a->tune, &knobs, s->fusion_threshold,
                            s->autotune_log));
    a->tune.active = !found;
    return HVD_OK;
}

void hvd__tuning_step(struct hvd__set *set)
{
    struct hvd__agreement *a = set->agreement;
    const char *file = set->engine->settings.autotune_file;
    struct hvd__tune *tune = &a->tune;

    if (!tune->active || a->heard_close ||
        !hvd__tune_step(tune, hvd__executor_take_bytes(set), hvd__now_ns()) ||
        tune->active)
        return;
    hvd__log(HVD__LOG_INFO,
             "autotuning is over: fusion threshold %zu, direct up to %zu bytes",
             tune->best.fusion_threshold, tune->best.direct_max);
    if (file[0] && hvd__knobs_write(&tune->best, file) < 0)
        hvd__log(HVD__LOG_WARNING, "%s", hvd_last_error());
}

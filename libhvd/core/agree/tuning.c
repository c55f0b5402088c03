/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tuning.c - the coordinator's autotuner: it measures what the executor has
 * moved, lets the search (tune.c) choose the next sizes, and puts them into
 * force. Only the coordinator, and the speaker of its host, use them; what
 * other members must know of them comes with each decision.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "core/agree/agree.h"
#include "core/agree/agreement.h"
#include "core/agree/by_name.h"
#include "core/settings/settings.h"

/* Tuning begins at the configured sizes, as powers of two. Sizes that an
 * earlier run found are used unchanged. */
int hvd__agree_tune(struct hvd__set *set, const struct hvd__settings *s)
{
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

void hvd__tuning_step(struct hvd__set *set, const char *file)
{
    struct hvd__agreement *a = set->agreement;
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

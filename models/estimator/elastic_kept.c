/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elastic_kept.c - an elastic training as checkpoints see it: what they keep of
 * it, and how another job takes that up.
 */
#include "estimator/elastic.h"

#include <hvd.h>
#include <string.h>

bool elastic_has_changed(const hvd_estimator *e)
{
    return e->elastic && e->elastic->changed;
}

struct elastic_kept elastic_keep(const hvd_estimator *e)
{
    struct elastic_kept kept = {.rows = -1};

    if (!e->elastic)
        return kept;
    kept.rows = e->elastic->rows;
    kept.counts = e->counts;
    memcpy(kept.own, e->own, sizeof kept.own);
    return kept;
}

/* A job may take up its checkpoint more than once, if it loses ranks before its
 * first commit: its ranks keep the numbers of the first time. */
void elastic_take_up(hvd_estimator *e, const struct elastic_kept *kept)
{
    struct elastic *x = e->elastic;
    const int64_t number = e->counts.number;

    if (!x || kept->rows < 0)
        return;
    x->rows = x->now.rows = kept->rows;
    x->now.step = e->step;
    x->now.position = e->position;
    memcpy(e->own, kept->own, sizeof e->own);
    if (x->resumed)
        return;
    x->resumed = x->changed = true;
    e->counts = kept->counts;
    e->counts.number = number == ELASTIC_NEWCOMER
                           ? ELASTIC_NEWCOMER
                           : kept->counts.numbered + hvd_rank();
    e->counts.restarts++;
    e->counts.restarted += hvd_size();
    for (int32_t i = 0; i < x->size; i++)
        if (x->ranks[i] != ELASTIC_NEWCOMER)
            x->ranks[i] = (int32_t)kept->counts.numbered + i;
}

bool elastic_is_committed(const hvd_estimator *e)
{
    return e->elastic && e->elastic->committed;
}

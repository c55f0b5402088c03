/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - checks whether the ranks build the same model. hvd_strategy_start
 * calls it.
 *
 * Each rank writes a list of what it has, an item a line: the options first,
 * then variables and statistics. Rank 0's list goes to every rank, every rank
 * finds the first item where its own list differs, and the smallest (item,
 * rank) of all is reported: that rank's item goes to every rank too, so that
 * every rank can say what differs and where. A rank that lacks an item has
 * "nothing" there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "strategy/strategy.h"

enum { ITEM_SIZE = 640 };

/* Adds the options that are about parameter servers. */
static void write_servers(const hvd_strategy_options *o, char *text)
{
    size_t used = strlen(text);

    if (o->kind == HVD_STRATEGY_PARAMETER_SERVER)
        snprintf(text + used, ITEM_SIZE - used,
                 ", %d parameter servers, mode %d, %d backups, staleness %d, "
                 "placement %d, parts of %" PRId64 " bytes%s",
                 (int)o->servers, (int)o->mode, (int)o->backups,
                 (int)o->staleness, (int)o->placement, o->part_bytes,
                 o->flags & HVD_ROWS_ON_REQUEST ? ", rows on request" : "");
}

static void write_item(const struct hvd_strategy *s, int64_t item, char *text)
{
    const hvd_strategy_options *o = &s->options;
    const struct hvd__variable *v;
    bool is_statistic = item > s->nvariables;
    int used;

    memset(text, 0, ITEM_SIZE);
    if (item == 0) {
        snprintf(
            text, ITEM_SIZE,
            "gradients by %s%s, optimizer %s, learning rate %.17g, momentum "
            "%.17g, beta1 %.17g, beta2 %.17g, epsilon %.17g, rho %.17g, "
            "centered %d, weight decay %.17g, trust %.17g, a check every %d "
            "steps%s",
            hvd_op_name(o->op),
            o->flags & HVD_AVERAGE_CONTRIBUTORS ? " over contributors" : "",
            hvd_optimizer_name(o->optimizer), o->learning_rate, o->momentum,
            o->beta1, o->beta2, o->epsilon, o->rho, (int)o->centered,
            o->weight_decay, o->trust, (int)o->check_every,
            o->elastic ? ", elastic" : "");
        write_servers(o, text);
        return;
    }
    if (item > s->nvariables + s->nstatistics) {
        snprintf(text, ITEM_SIZE, "nothing");
        return;
    }
    v = is_statistic ? &s->statistics[item - 1 - s->nvariables]
                     : &s->variables[item - 1];
    used = snprintf(text, ITEM_SIZE, "%s'%s' [",
                    is_statistic ? "the statistic " : "", v->name);
    for (int32_t i = 0; i < v->ndim; i++)
        used += snprintf(text + used, ITEM_SIZE - (size_t)used, "%s%" PRId64,
                         i ? "," : "", v->shape[i]);
    snprintf(text + used, ITEM_SIZE - (size_t)used, "]%s",
             v->is_sparse ? ", sparse" : "");
}

/* Collective. Finds the first item that differs from rank 0's on this rank, or
 * nitems. */
static int first_difference(const struct hvd_strategy *s, int64_t nitems,
                            int64_t *first)
{
    char theirs[ITEM_SIZE], mine[ITEM_SIZE];

    *first = nitems;
    for (int64_t item = 0; item < nitems; item++) {
        write_item(s, item, mine);
        memcpy(theirs, mine, sizeof theirs);
        HVD_TRY(hvd_broadcast(theirs, sizeof theirs, HVD_UINT8, 0));
        if (*first == nitems && memcmp(mine, theirs, sizeof mine) != 0)
            *first = item;
    }
    return HVD_OK;
}

int hvd__strategy_compare(const struct hvd_strategy *s)
{
    char theirs[ITEM_SIZE], zeros[ITEM_SIZE];
    int64_t nitems = s->nvariables + s->nstatistics + 1, first, place;
    int64_t size = hvd_size();

    HVD_TRY(hvd_allreduce(&nitems, &nitems, 1, HVD_INT64, HVD_MAX));
    HVD_TRY(first_difference(s, nitems, &first));
    place = first * size + (first < nitems ? hvd_rank() : 0);
    HVD_TRY(hvd_allreduce(&place, &place, 1, HVD_INT64, HVD_MIN));
    first = place / size;
    if (first == nitems)
        return HVD_OK;
    write_item(s, first, zeros);
    memcpy(theirs, zeros, sizeof theirs);
    HVD_TRY(hvd_broadcast(zeros, sizeof zeros, HVD_UINT8, 0));
    HVD_TRY(
        hvd_broadcast(theirs, sizeof theirs, HVD_UINT8, (int)(place % size)));
    if (first == 0)
        return hvd__fail(HVD_ERR_MISMATCH,
                         "the strategies differ: rank 0 has %s; rank %d has %s",
                         zeros, (int)(place % size), theirs);
    return hvd__fail(HVD_ERR_MISMATCH,
                     "the strategies differ in variable %lld: rank 0 added "
                     "%s; rank %d added %s",
                     (long long)(first - 1), zeros, (int)(place % size),
                     theirs);
}

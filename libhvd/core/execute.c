/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute.c - batches, lanes, and the fusion buffer.
 *
 * Each batch becomes one collective over the elements of all its tensors, in
 * the order in which the decision names them. Where a tensor lies does not
 * matter to the others, so each rank chooses by itself how to make one run of
 * elements of several tensors:
 *
 *     one tensor, or neighbours in memory    nothing to do: used in place
 *     anything else                          packed into the lane's fusion
 *                                            buffer, and out of it after
 *
 * Gradients of a strategy are neighbours in memory by design.
 *
 * Batches start in their order, one a free lane, and finish in any. Their
 * number, which all ranks count alike, makes their tags.
 */
#include "core/execute.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "core/complete.h"
#include "core/world.h"

int hvd__executor_init(struct hvd__executor *executor, int nranks,
                       size_t fusion_threshold)
{
    executor->waiting_tail = &executor->waiting;
    for (int i = 0; i < HVD__LANES; i++) {
        struct hvd__lane *lane = &executor->lanes[i];

        HVD_TRY(hvd__workspace_init(&lane->workspace, nranks));
        /* Untouched pages of it cost nothing. */
        lane->fusion = malloc(fusion_threshold ? fusion_threshold : 1);
        if (!lane->fusion)
            return hvd__fail(HVD_ERR_MEMORY,
                             "out of memory for fusion buffers of %zu bytes; "
                             "set HVD_FUSION_THRESHOLD lower",
                             fusion_threshold);
    }
    return HVD_OK;
}

void hvd__executor_fini(struct hvd__executor *executor)
{
    struct hvd__batch *batch;

    while ((batch = executor->waiting)) {
        executor->waiting = batch->next;
        free(batch);
    }
    for (int i = 0; i < HVD__LANES; i++) {
        struct hvd__lane *lane = &executor->lanes[i];

        free(lane->batch);
        free(lane->fusion);
        hvd__workspace_fini(&lane->workspace);
    }
    *executor = (struct hvd__executor){0};
}

int hvd__execute(struct hvd__world *world, struct hvd__entry *entries)
{
    struct hvd__executor *executor = &world->executor;
    struct hvd__batch *batch = calloc(1, sizeof *batch);

    if (!batch)
        return hvd__fail_memory(sizeof *batch);
    batch->entries = entries;
    batch->number = executor->nbatches++;
    *executor->waiting_tail = batch;
    executor->waiting_tail = &batch->next;
    executor->nunfinished++;
    return HVD_OK;
}

/* ------------------------------------------------------------------- fusion */

/* Whether the tensors follow each other in memory, inputs and outputs. */
static bool are_neighbours(const struct hvd__entry *entry)
{
    for (; entry->next; entry = entry->next)
        if ((const char *)entry->input + entry->bytes != entry->next->input ||
            (char *)entry->output + entry->bytes != entry->next->output)
            return false;
    return true;
}

static void pack(unsigned char *fusion, const struct hvd__entry *entry)
{
    for (; entry; entry = entry->next) {
        if (entry->bytes > 0)
            memcpy(fusion, entry->input, entry->bytes);
        fusion += entry->bytes;
    }
}

static void unpack(const unsigned char *fusion, const struct hvd__entry *entry)
{
    for (; entry; entry = entry->next) {
        if (entry->bytes > 0)
            memcpy(entry->output, fusion, entry->bytes);
        fusion += entry->bytes;
    }
}

/* -------------------------------------------------------------------- lanes */

static void start(struct hvd__world *world, struct hvd__lane *lane,
                  struct hvd__batch *batch)
{
    const struct hvd__entry *first = batch->entries;
    const struct hvd__signature *s = &first->signature;
    int64_t count = 0;
    int n = 0;

    /* There is at least one. */
    const struct hvd__entry *e = first;
    do {
        count += e->count;
        n++;
    } while ((e = e->next));
    lane->batch = batch;
    lane->packed = !are_neighbours(first);
    if (lane->packed)
        pack(lane->fusion, first);
    lane->collective = (struct hvd__collective){
        .kind = s->kind,
        .reduction = {.dtype = s->dtype,
                      .op = s->op,
                      .prescale = s->prescale,
                      .postscale = s->postscale},
        .input = lane->packed ? lane->fusion : first->input,
        .output = lane->packed ? lane->fusion : first->output,
        .count = count,
        .root = s->root,
        .tag = (int)(2 * batch->number % HVD__TRANSFER_TAGS),
        .transport = world->transport,
        .workspace = &lane->workspace,
    };
    hvd__collective_start(&lane->collective);
    hvd__log(HVD__LOG_TRACE, "batch %lld: %d of '%s' and on, %lld elements%s",
             (long long)batch->number, n, first->key, (long long)count,
             lane->packed ? ", packed" : "");
}

static void finish(struct hvd__world *world, struct hvd__lane *lane)
{
    struct hvd__entry *entry = lane->batch->entries;

    if (lane->packed)
        unpack(lane->fusion, entry);
    free(lane->batch);
    lane->batch = NULL;
    world->executor.nunfinished--;
    while (entry) {
        struct hvd__entry *next = entry->next;
        hvd__complete(world, entry, HVD_OK, NULL);
        entry = next;
    }
}

static struct hvd__batch *next_waiting(struct hvd__executor *executor)
{
    struct hvd__batch *batch = executor->waiting;

    if (batch) {
        executor->waiting = batch->next;
        if (!executor->waiting)
            executor->waiting_tail = &executor->waiting;
    }
    return batch;
}

int hvd__execute_step(struct hvd__world *world, bool *moved)
{
    struct hvd__executor *executor = &world->executor;

    for (int i = 0; i < HVD__LANES; i++) {
        struct hvd__lane *lane = &executor->lanes[i];
        int done;

        if (!lane->batch) {
            struct hvd__batch *batch = next_waiting(executor);
            if (!batch)
                continue;
            start(world, lane, batch);
            *moved = true;
        }
        done = hvd__collective_step(&lane->collective, moved);
        if (done < 0)
            return done;
        if (done) {
            finish(world, lane);
            *moved = true;
        }
    }
    return HVD_OK;
}

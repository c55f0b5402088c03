/* SPDX-License-Identifier: Apache-2.0 */
/* What is agreed on by its slots: reduced there, in place, or elsewhere. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "core/agree/ordered_parts.h"
#include "core/run/complete.h"
#include "transport/algo/shared.h"

const unsigned char *hvd__ordered_data(struct hvd__area *area, uint64_t number,
                                       size_t bytes)
{
    const struct hvd__log_slot *slot = hvd__slot_at(area, number);

    return bytes > HVD__INLINE_BYTES ? area->payload + slot->offset
                                     : slot->data;
}

struct hvd__reduction hvd__ordered_reduction(const struct hvd__set *set,
                                             const struct hvd__request *request)
{
    const struct hvd__signature *s = &request->signature;

    return (struct hvd__reduction){.dtype = s->dtype,
                                   .op = s->op,
                                   .prescale = s->prescale,
                                   .postscale = s->postscale,
                                   .divisor = set->team.size};
}

/* All contributions are here. */
static void reduce_small(struct hvd__set *set, struct hvd__request *request,
                         uint64_t slot)
{
    const struct hvd__reduction reduction =
        hvd__ordered_reduction(set, request);
    const void **sources = set->ordered.sources;

    for (int rank = 0; rank < set->team.size; rank++)
        sources[rank] = rank == set->team.rank
                            ? request->input
                            : hvd__ordered_data(set->ordered.areas[rank], slot,
                                                request->bytes);
    hvd__reduce(&reduction, request->output, sources, set->team.size,
                request->count);
}

/* The addresses of all inputs and outputs; false: some are out of reach. */
static bool reach(struct hvd__set *set, const struct hvd__request *request,
                  uint64_t number)
{
    struct hvd__ordered *x = &set->ordered;
    const struct hvd__shm *shm = set->shm;

    if (x->log)
        return false;
    for (int rank = 0; rank < set->team.size; rank++) {
        const struct hvd__log_slot *slot = hvd__slot_at(x->areas[rank], number);
        void *input, *output;

        if (slot->flags & HVD__SLOT_DATA)
            return false;
        input = output = hvd__heap_at(shm->heap, shm->world[rank], slot->input,
                                      request->bytes);
        if (slot->output != slot->input)
            output = hvd__heap_at(shm->heap, shm->world[rank], slot->output,
                                  request->bytes);
        if (!input || !output)
            return false;
        x->sources[rank] = rank == set->team.rank ? request->input : input;
        x->targets[rank] = rank == set->team.rank ? request->output : output;
    }
    return true;
}

/* The addresses go on by so many bytes. */
static void advance(struct hvd__set *set, size_t bytes)
{
    struct hvd__ordered *x = &set->ordered;

    for (int rank = 0; rank < set->team.size; rank++) {
        x->sources[rank] = (const char *)x->sources[rank] + bytes;
        x->targets[rank] = (char *)x->targets[rank] + bytes;
    }
}

void hvd__ordered_begin_share(struct hvd__set *set,
                              struct hvd__request *request, uint64_t slot)
{
    struct hvd__slice share =
        hvd__slice_of(request->count, set->team.rank, set->team.size);

    set->ordered.now = (struct hvd__in_place){request, slot, share.count};
    advance(set,
            (size_t)share.start * hvd__dtype_bytes(request->signature.dtype));
}

bool hvd__ordered_reduce_share(struct hvd__set *set)
{
    int64_t computing_ns = 0;
    struct hvd__ordered *x = &set->ordered;
    struct hvd__request *request = x->now.request;
    const struct hvd__reduction reduction =
        hvd__ordered_reduction(set, request);
    size_t element = hvd__dtype_bytes(request->signature.dtype);
    int64_t most = (int64_t)(HVD__CHUNK_BYTES / element);
    int64_t count = x->now.left < most ? x->now.left : most;

    hvd__timed_reduce(&computing_ns, &reduction, x->targets, set->team.size,
                      x->sources, set->team.size, count);
    hvd__count_alone(&set->metrics->computing_ns, computing_ns);
    x->now.left -= count;
    if (x->now.left > 0) {
        advance(set, (size_t)count * element);
        return false;
    }
    request->sequence = hvd__sequence_of(x, x->now.slot);
    atomic_store_explicit(&set->ordered.own->reduced, request->sequence,
                          memory_order_release);
    request->next = NULL;
    *x->unfinished_tail = request;
    x->unfinished_tail = &request->next;
    x->now.request = NULL;
    return true;
}

uint64_t hvd__ordered_least_reduced(const struct hvd__set *set)
{
    uint64_t least = UINT64_MAX;

    for (int rank = 0; rank < set->team.size; rank++) {
        uint64_t reduced = atomic_load_explicit(
            &set->ordered.areas[rank]->reduced, memory_order_acquire);
        if (reduced < least)
            least = reduced;
    }
    return least;
}

static void done(struct hvd__world *world, struct hvd__ordered *x,
                 struct hvd__request *request)
{
    if (!hvd__request_is_own(request)) {
        hvd__count_alone(&world->metrics.batches, 1);
        hvd__count_alone(&world->metrics.batched, 1);
    }
    if (hvd__trace_writer_listens(&world->writer) &&
        request->signature.kind != HVD_BARRIER)
        request->moved_ns = hvd__now_ns();
    request->next = NULL;
    *x->over_tail = request;
    x->over_tail = &request->next;
}

void hvd__ordered_finish(struct hvd__world *world, struct hvd__set *set,
                         bool *moved)
{
    struct hvd__ordered *x = &set->ordered;
    uint64_t least = x->unfinished ? hvd__ordered_least_reduced(set) : 0;
    struct hvd__request *requests;

    while (x->unfinished && x->unfinished->sequence <= least) {
        struct hvd__request *request = x->unfinished;

        x->unfinished = request->next;
        if (!x->unfinished)
            x->unfinished_tail = &x->unfinished;
        *moved = true;
        done(world, x, request);
    }
    requests = x->over;
    x->over = NULL;
    x->over_tail = &x->over;
    if (requests)
        hvd__complete_all(world, requests);
}

/* What ranks carry lies in their slots. */
static int collect_rows(struct hvd__set *set, struct hvd__request *request,
                        uint64_t slot)
{
    size_t bytes = (size_t)set->team.size * sizeof *request->carried;

    if (!hvd__signature_carries(&request->signature))
        return HVD_OK;
    request->carried = malloc(bytes);
    if (!request->carried)
        return hvd__fail_memory(bytes);
    for (int rank = 0; rank < set->team.size; rank++)
        request->carried[rank] =
            hvd__slot_at(set->ordered.areas[rank], slot)->rows;
    return HVD_OK;
}

static bool all_have_data(const struct hvd__set *set, uint64_t slot)
{
    for (int rank = 0; rank < set->team.size; rank++)
        if (!(hvd__slot_at(set->ordered.areas[rank], slot)->flags &
              HVD__SLOT_DATA))
            return false;
    return true;
}

bool hvd__ordered_run_here(struct hvd__world *world, struct hvd__set *set,
                           struct hvd__request *request, uint64_t slot)
{
    const struct hvd__signature *s = &request->signature;
    struct hvd__area *root;

    if (s->kind == HVD_BARRIER)
        return true;
    if (world->settings.consistency_check)
        return false;
    if (s->kind == HVD_BROADCAST) {
        root = set->ordered.areas[hvd__set_find(set, s->root)];
        if (!(hvd__slot_at(root, slot)->flags & HVD__SLOT_DATA))
            return false;
        if (root != set->ordered.own && request->bytes > 0)
            memcpy(request->output,
                   hvd__ordered_data(root, slot, request->bytes),
                   request->bytes);
        return true;
    }
    if (!all_have_data(set, slot))
        return false;
    if (s->kind == HVD_ALLREDUCE)
        reduce_small(set, request, slot);
    else
        hvd__ordered_move(set, request, slot);
    return true;
}

bool hvd__ordered_goes_in_place(const struct hvd__world *world,
                                struct hvd__set *set,
                                const struct hvd__request *request,
                                uint64_t slot)
{
    const struct hvd__signature *s = &request->signature;

    return s->kind == HVD_ALLREDUCE && !world->settings.consistency_check &&
           s->op != HVD_ADASUM && s->compression == HVD_COMPRESSION_NONE &&
           reach(set, request, slot);
}

/* All ranks have submitted it, and this one knows. */
static void decided(struct hvd__ordered *x, struct hvd__submission *submission,
                    int64_t now)
{
    submission->decided_ns = now;
    if (submission->timed)
        x->waited_ns = now - submission->since_ns;
    else
        submission->since_ns = now - x->waited_ns;
    atomic_store_explicit(&submission->decided, true, memory_order_release);
}

int hvd__ordered_run(struct hvd__world *world, struct hvd__set *set,
                     struct hvd__request *request, uint64_t slot, int64_t now)
{
    struct hvd__ordered *x = &set->ordered;

    if (request->submission->decided_ns == 0)
        decided(x, request->submission, now);
    request->started_ns = now;
    request->batched = 1;
    request->shared = !x->log;
    if (x->log)
        HVD_TRY(hvd__replicated_log_read(set, request, slot));
    if (hvd__ordered_run_here(world, set, request, slot)) {
        if (!hvd__trace_writer_listens(&world->writer))
            request->done_ns = now; /* in no time: not worth another look */
        done(world, x, request);
        return HVD_OK;
    }
    if (hvd__ordered_goes_in_place(world, set, request, slot)) {
        hvd__ordered_begin_share(set, request, slot);
        return HVD_OK;
    }
    HVD_TRY(collect_rows(set, request, slot));
    request->next = NULL;
    if (!x->log)
        return hvd__execute(set, request, NULL, set->direct_max);
    hvd__boundaries_agree(&x->log->boundaries, request,
                          hvd__sequence_of(x, slot));
    return HVD_OK;
}

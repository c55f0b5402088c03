/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordered_run.c - runs a request that all ranks have in the same slot. If its
 * data is in the slots, it runs at once; if it lies in heaps, an allreduce is
 * reduced in place, a share on each rank; else it goes to the lanes
 * (run/execute.c). ordered.c and api/quick.c call it. The data is reduced and
 * moved by kernels and transport/algo/visible.c; this file decides which rows
 * and elements are this rank's.
 *
 * After its share of a slot a rank stores the slot's sequence number in the
 * field reduced of its area; hvd__ordered_least_reduced loads those of all.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "core/agree/agreement.h"
#include "core/agree/batch.h"
#include "core/run/complete.h"
#include "core/run/pack.h"

/* ------------------------------------------------------- data in the slots */

/* Points x->sources at what each rank has for all with a slot, from an offset
 * on, or in an exchange for this rank. On several hosts, a round has put it
 * into the speaker's slot. */
static const void **sources_at(struct hvd__ordered *x,
                               const struct hvd__request *request,
                               uint64_t number, size_t offset)
{
    const enum hvd__way way = (enum hvd__way)request->way;
    const size_t n = (size_t)x->set->team.size;
    const unsigned char *all;
    const bool beside = request->bytes > HVD__INLINE_BYTES;
    size_t each;

    for (int rank = 0; !x->hosts && rank < x->nareas; rank++) {
        const struct hvd__log_slot *slot = hvd__slot_at(x->areas[rank], number);

        /* The flags of all slots say the same: their branch would cost more. */
        x->sources[rank] = way == HVD__WAY_ROWS ? (const void *)&slot->rows
                           : beside
                               ? x->areas[rank]->payload + slot->offset + offset
                               : slot->data + offset;
    }
    if (!x->hosts)
        return x->sources;
    if (way == HVD__WAY_STRAIGHT) {
        hvd__straight_sources(&x->round->straight, &x->round->offer,
                              x->sources);
        return x->sources;
    }
    each = hvd__way_bytes(way, request, (int)n) / n;
    if (hvd__way_is_exchange(way)) {
        offset =
            each / n * (size_t)hvd__hosts_local(x->hosts, x->set->team.rank);
        each = each / n * (size_t)hvd__hosts_size(x->hosts, x->hosts->own);
    }
    all = hvd__slot_data(x->areas[0], number) + offset;
    for (size_t place = 0; place < n; place++)
        x->sources[x->hosts->members[place]] = all + place * each;
    return x->sources;
}

/* Reduces count elements of all ranks, from start on, into the output. */
static void reduce(struct hvd__ordered *x, struct hvd__request *request,
                   uint64_t slot, int64_t start, int64_t count)
{
    struct hvd__reduction reduction =
        hvd__reduction_of(&request->signature, x->set->team.size);
    size_t offset = (size_t)start * hvd__dtype_bytes(reduction.dtype);
    const void *sum, **sources = &sum;
    int n = 1;

    if (hvd__way_sums((enum hvd__way)request->way)) {
        /* A round has added it up; of shares, it has those of this host. */
        if (request->way == HVD__WAY_SHARES)
            offset = hvd__way_share_at(
                request, x->hosts,
                hvd__hosts_local(x->hosts, x->set->team.rank));
        sum = hvd__slot_data(x->areas[0], slot) + offset;
        reduction.prescale = 1;
    } else {
        sources = sources_at(x, request, slot, offset);
        n = x->set->team.size;
        /* The input is more likely to be in the cache than its copy in the
         * slot. */
        if (count == request->count)
            sources[x->set->team.rank] = request->input;
    }
    if (count > 0)
        hvd__reduce(&reduction, request->output, sources, n, count);
}

/* Runs a request on the data in the slots of all ranks. Each kind selects the
 * rows and elements that are this rank's. */
static void move(struct hvd__ordered *x, struct hvd__request *request,
                 uint64_t slot)
{
    const struct hvd__signature *s = &request->signature;
    const int n = x->set->team.size, us = x->set->team.rank;
    size_t part = request->bytes / (size_t)n;
    struct hvd__slice rows;
    int64_t row;

    if (request->counts && s->kind != HVD_BROADCAST &&
        !hvd__kind_has(s->kind, HVD__HAS_OP))
        for (int rank = 0; rank < n; rank++)
            request->counts[rank] = hvd__rows_from(request, rank);
    switch (s->kind) {
    case HVD_ALLREDUCE: reduce(x, request, slot, 0, request->count); return;
    case HVD_BROADCAST:
        if (!hvd__set_is_root(x->set, s) && request->bytes > 0)
            memcpy(request->output,
                   hvd__slot_data(
                       x->areas[x->hosts ? 0 : hvd__set_find(x->set, s->root)],
                       slot),
                   request->bytes);
        return;
    case HVD_GATHER:
    case HVD_ALLGATHER:
        if (!hvd__set_gets_result(x->set, s))
            return;
        request->out_rows = request->rows * n;
        hvd__visible_gather(request->output, sources_at(x, request, slot, 0), n,
                            request->bytes);
        return;
    case HVD_ALLTOALL:
        request->out_rows = request->rows;
        hvd__visible_gather(request->output,
                            sources_at(x, request, slot, (size_t)us * part), n,
                            part);
        return;
    case HVD_REDUCESCATTER:
        rows = hvd__slice_of(request->rows, us, n);
        row = request->rows > 0 ? request->count / request->rows : 0;
        request->out_rows = rows.count;
        reduce(x, request, slot, rows.start * row, rows.count * row);
        return;
    default:
        if (hvd__set_gets_result(x->set, s))
            reduce(x, request, slot, 0, request->count);
    }
}

/* ----------------------------------------------------------------- in place */

bool hvd__ordered_begin_share(struct hvd__ordered *x,
                              struct hvd__request *request, uint64_t number)
{
    const struct hvd__set *set = x->set;
    struct hvd__slice share =
        hvd__slice_of(request->count, set->team.rank, set->team.size);

    if (x->hosts || request->signature.kind != HVD_ALLREDUCE ||
        set->engine->settings.consistency_check ||
        !hvd__ordered_may_move(request))
        return false;
    x->now.work = (struct hvd__visible){
        .reduction = hvd__reduction_of(&request->signature, set->team.size),
        .sources = x->sources,
        .targets = x->targets};
    for (int rank = 0; rank < set->team.size; rank++) {
        const struct hvd__log_slot *slot = hvd__slot_at(x->areas[rank], number);

        if (slot->flags & HVD__SLOT_DATA ||
            !hvd__visible_add(&x->now.work, set->shm, rank, slot->input,
                              slot->output, true, request->bytes))
            return false;
    }
    x->now.request = request;
    x->now.slot = number;
    hvd__visible_begin(&x->now.work, share.start, share.count);
    return true;
}

bool hvd__ordered_reduce_share(struct hvd__ordered *x)
{
    int64_t computing_ns = 0;
    struct hvd__request *request = x->now.request;
    bool is_done = hvd__visible_step(&x->now.work, &computing_ns);

    hvd__count_alone(&x->set->engine->metrics.computing_ns, computing_ns);
    if (!is_done)
        return false;
    request->state.sequence = hvd__sequence_of(x, x->now.slot);
    hvd__word_set(&x->own->reduced, request->state.sequence);
    hvd__request_list_add(&x->unfinished, request);
    x->now.request = NULL;
    return true;
}

uint64_t hvd__ordered_least_reduced(const struct hvd__ordered *x)
{
    uint64_t least = UINT64_MAX;

    for (int rank = 0; rank < x->set->team.size; rank++) {
        uint64_t reduced = hvd__word_get(&x->areas[rank]->reduced);
        if (reduced < least)
            least = reduced;
    }
    /* Nothing more is over if a rank's tensors may have changed meanwhile. */
    return hvd__shm_is_given_up(x->set->shm) ? 0 : least;
}

static void add_done(struct hvd__ordered *x, struct hvd__request *request)
{
    struct hvd__engine *engine = x->set->engine;

    if (!hvd__request_is_own(request)) {
        hvd__count_alone(&engine->metrics.batches, 1);
        hvd__count_alone(&engine->metrics.batched, 1);
    }
    if (hvd__trace_writer_listens(&engine->writer) &&
        request->signature.kind != HVD_BARRIER)
        request->state.moved_ns = hvd__now_ns();
    hvd__request_list_add(&x->over, request);
}

void hvd__ordered_finish(struct hvd__ordered *x, bool *moved)
{
    uint64_t least = x->unfinished.first ? hvd__ordered_least_reduced(x) : 0;
    struct hvd__request *requests;

    while ((requests = x->unfinished.first) &&
           requests->state.sequence <= least) {
        x->unfinished.first = requests->state.next;
        *moved = true;
        add_done(x, requests);
    }
    requests = x->over.first;
    x->over.first = NULL;
    if (requests)
        hvd__complete_all(x->set->engine, requests);
}

/* Collects the numbers that the ranks carry, or their splits for this one. */
static int collect_rows(struct hvd__ordered *x, struct hvd__request *request,
                        uint64_t slot)
{
    size_t each = sizeof *request->state.carried;

    if (request->way != HVD__WAY_ROWS && request->way != HVD__WAY_SPLITS)
        return HVD_OK;
    HVD_TRY(hvd__allocate(&request->state.carried, (size_t)x->set->team.size,
                          each));
    hvd__visible_gather(request->state.carried, sources_at(x, request, slot, 0),
                        x->set->team.size, each);
    return HVD_OK;
}

/* Returns true if a slot is the last of those that a round has decided. */
static bool is_boundary(const struct hvd__ordered *x, uint64_t slot)
{
    return hvd__slot_at(x->areas[0], slot)->flags & HVD__SLOT_BOUNDARY;
}

/* Returns the way that the data of a request has gone. */
static enum hvd__way way_gone(struct hvd__ordered *x,
                              const struct hvd__request *request, uint64_t slot)
{
    enum hvd__way way = (enum hvd__way)request->way;

    if (x->hosts) {
        way = hvd__way_in_round(x->hosts, request, &x->broadcast_bytes);
        if (is_boundary(x, slot))
            x->broadcast_bytes = 0;
    }
    return way;
}

bool hvd__ordered_run_here(struct hvd__ordered *x, struct hvd__request *request,
                           uint64_t slot)
{
    switch (way_gone(x, request, slot)) {
    case HVD__WAY_NONE:
    case HVD__WAY_ROWS:
    case HVD__WAY_SPLITS: return request->signature.kind == HVD_BARRIER;
    case HVD__WAY_ALL:
        for (int i = 0; !x->hosts && i < x->nareas; i++)
            if (!(hvd__slot_at(x->areas[i], slot)->flags & HVD__SLOT_DATA))
                return false;
        break;
    default: break;
    }
    move(x, request, slot);
    return true;
}

int hvd__ordered_run(struct hvd__ordered *x, struct hvd__request *request,
                     uint64_t slot, int64_t now)
{
    struct hvd__submission *submission = request->submission;

    if (submission->state.decided_ns == 0) {
        submission->state.decided_ns = now;
        hvd__sampling_decide(&x->sampling, submission, now);
        atomic_store_explicit(&submission->state.decided, true,
                              memory_order_release);
    }
    request->state.started_ns = now;
    request->state.batched = 1;
    request->state.shared = !x->hosts;
    if (hvd__ordered_run_here(x, request, slot)) {
        if (!hvd__trace_writer_listens(&x->set->engine->writer))
            request->state.done_ns =
                now; /* a slot takes too little time to read the clock again */
        add_done(x, request);
        return HVD_OK;
    }
    if (hvd__ordered_begin_share(x, request, slot))
        return HVD_OK;
    HVD_TRY(collect_rows(x, request, slot));
    request->state.next = NULL;
    if (!x->hosts)
        return hvd__execute(x->set, request, NULL, 0);
    hvd__request_list_add(&x->piece, request);
    return HVD_OK;
}

/* ----------------------------------------------------------- several hosts */

/* All ranks agree on the same requests in the same order, but not at the same
 * time. Which of them are fused must not depend on how far a rank has come. All
 * ranks know which slots a round has decided: they fuse the requests of that
 * piece, and none of different pieces, all in the same way. */
static struct hvd__request *take_batch(const struct hvd__ordered *x,
                                       struct hvd__request_list *piece,
                                       size_t threshold)
{
    struct hvd__fusion fusion = {.threshold = threshold};
    struct hvd__request_list batch = {0}, rest = {0};
    const int n = x->set->team.size;
    struct hvd__request *next;

    for (struct hvd__request *r = piece->first; r; r = next) {
        bool carries = hvd__signature_carries(&r->signature), taken;
        int64_t rows = 0;

        for (int rank = 0; carries && rank < n; rank++)
            rows += r->state.carried[rank];
        taken = hvd__fuse(&fusion, &r->signature,
                          hvd__fusion_bytes(&r->signature, n, rows));
        next = r->state.next;
        hvd__request_list_add(taken ? &batch : &rest, r);
    }
    *piece = rest;
    return batch.first;
}

int hvd__ordered_end_piece(struct hvd__ordered *x, uint64_t slot)
{
    const struct hvd__piece_values *values =
        &x->areas[0]->pieces[slot % HVD__LOG_SLOTS];

    if (!is_boundary(x, slot))
        return HVD_OK;
    while (x->piece.first)
        HVD_TRY(hvd__execute(x->set,
                             take_batch(x, &x->piece, values->threshold), NULL,
                             values->direct_max));
    return HVD_OK;
}

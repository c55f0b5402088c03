/* SPDX-License-Identifier: Apache-2.0 */
/* What is agreed on by its cells: reduced there, in place, or elsewhere. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "core/agree/ordered_parts.h"
#include "core/run/complete.h"
#include "transport/algo/shared.h"

const unsigned char *hvd__ordered_data(struct hvd__part *part, uint64_t number,
                                       size_t bytes)
{
    const struct hvd__cell *cell = hvd__cell_at(part, number);

    return bytes > HVD__INLINE_BYTES ? part->payload + cell->offset
                                     : cell->data;
}

struct hvd__reduction hvd__ordered_reduction(const struct hvd__set *set,
                                             const struct hvd__entry *entry)
{
    const struct hvd__signature *s = &entry->signature;

    return (struct hvd__reduction){.dtype = s->dtype,
                                   .op = s->op,
                                   .prescale = s->prescale,
                                   .postscale = s->postscale,
                                   .divisor = set->team.size};
}

/* All contributions are here. */
static void reduce_small(struct hvd__set *set, struct hvd__entry *entry,
                         uint64_t cell)
{
    const struct hvd__reduction reduction = hvd__ordered_reduction(set, entry);
    const void **sources = set->ordered.sources;

    for (int rank = 0; rank < set->team.size; rank++)
        sources[rank] = rank == set->team.rank
                            ? entry->input
                            : hvd__ordered_data(set->ordered.parts[rank], cell,
                                                entry->bytes);
    hvd__reduce(&reduction, entry->output, sources, set->team.size,
                entry->count);
}

/* The addresses of all inputs and outputs; false: some are out of reach. */
static bool reach(struct hvd__set *set, const struct hvd__entry *entry,
                  uint64_t number)
{
    struct hvd__ordered *x = &set->ordered;
    const struct hvd__shm *shm = set->shm;

    if (x->log)
        return false;
    for (int rank = 0; rank < set->team.size; rank++) {
        const struct hvd__cell *cell = hvd__cell_at(x->parts[rank], number);
        void *input, *output;

        if (cell->flags & HVD__CELL_DATA)
            return false;
        input = output = hvd__heap_at(shm->heap, shm->world[rank], cell->input,
                                      entry->bytes);
        if (cell->output != cell->input)
            output = hvd__heap_at(shm->heap, shm->world[rank], cell->output,
                                  entry->bytes);
        if (!input || !output)
            return false;
        x->sources[rank] = rank == set->team.rank ? entry->input : input;
        x->targets[rank] = rank == set->team.rank ? entry->output : output;
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

void hvd__ordered_begin_share(struct hvd__set *set, struct hvd__entry *entry,
                              uint64_t cell)
{
    struct hvd__slice share =
        hvd__slice_of(entry->count, set->team.rank, set->team.size);

    set->ordered.now = (struct hvd__in_place){entry, cell, share.count};
    advance(set,
            (size_t)share.start * hvd__dtype_bytes(entry->signature.dtype));
}

bool hvd__ordered_reduce_share(struct hvd__set *set)
{
    int64_t computing_ns = 0;
    struct hvd__ordered *x = &set->ordered;
    struct hvd__entry *entry = x->now.entry;
    const struct hvd__reduction reduction = hvd__ordered_reduction(set, entry);
    size_t element = hvd__dtype_bytes(entry->signature.dtype);
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
    entry->mark = hvd__mark_of(x, x->now.cell);
    atomic_store_explicit(&set->ordered.own->reduced, entry->mark,
                          memory_order_release);
    entry->next = NULL;
    *x->unfinished_tail = entry;
    x->unfinished_tail = &entry->next;
    x->now.entry = NULL;
    return true;
}

uint64_t hvd__ordered_least_reduced(const struct hvd__set *set)
{
    uint64_t least = UINT64_MAX;

    for (int rank = 0; rank < set->team.size; rank++) {
        uint64_t reduced = atomic_load_explicit(
            &set->ordered.parts[rank]->reduced, memory_order_acquire);
        if (reduced < least)
            least = reduced;
    }
    return least;
}

static void done(struct hvd__world *world, struct hvd__ordered *x,
                 struct hvd__entry *entry)
{
    if (!hvd__entry_is_own(entry)) {
        hvd__count_alone(&world->metrics.batches, 1);
        hvd__count_alone(&world->metrics.batched, 1);
    }
    if (hvd__trace_writer_listens(&world->writer) &&
        entry->signature.kind != HVD_BARRIER)
        entry->moved_ns = hvd__now_ns();
    entry->next = NULL;
    *x->over_tail = entry;
    x->over_tail = &entry->next;
}

void hvd__ordered_finish(struct hvd__world *world, struct hvd__set *set,
                         bool *moved)
{
    struct hvd__ordered *x = &set->ordered;
    uint64_t least = x->unfinished ? hvd__ordered_least_reduced(set) : 0;
    struct hvd__entry *entries;

    while (x->unfinished && x->unfinished->mark <= least) {
        struct hvd__entry *entry = x->unfinished;

        x->unfinished = entry->next;
        if (!x->unfinished)
            x->unfinished_tail = &x->unfinished;
        *moved = true;
        done(world, x, entry);
    }
    entries = x->over;
    x->over = NULL;
    x->over_tail = &x->over;
    if (entries)
        hvd__complete_all(world, entries);
}

/* What ranks carry lies in their cells. */
static int collect_rows(struct hvd__set *set, struct hvd__entry *entry,
                        uint64_t cell)
{
    size_t bytes = (size_t)set->team.size * sizeof *entry->carried;

    if (!hvd__signature_carries(&entry->signature))
        return HVD_OK;
    entry->carried = malloc(bytes);
    if (!entry->carried)
        return hvd__fail_memory(bytes);
    for (int rank = 0; rank < set->team.size; rank++)
        entry->carried[rank] =
            hvd__cell_at(set->ordered.parts[rank], cell)->rows;
    return HVD_OK;
}

static bool all_have_data(const struct hvd__set *set, uint64_t cell)
{
    for (int rank = 0; rank < set->team.size; rank++)
        if (!(hvd__cell_at(set->ordered.parts[rank], cell)->flags &
              HVD__CELL_DATA))
            return false;
    return true;
}

bool hvd__ordered_run_here(struct hvd__world *world, struct hvd__set *set,
                           struct hvd__entry *entry, uint64_t cell)
{
    const struct hvd__signature *s = &entry->signature;
    struct hvd__part *root;

    if (s->kind == HVD_BARRIER)
        return true;
    if (world->settings.consistency_check)
        return false;
    if (s->kind == HVD_BROADCAST) {
        root = set->ordered.parts[hvd__set_find(set, s->root)];
        if (!(hvd__cell_at(root, cell)->flags & HVD__CELL_DATA))
            return false;
        if (root != set->ordered.own && entry->bytes > 0)
            memcpy(entry->output, hvd__ordered_data(root, cell, entry->bytes),
                   entry->bytes);
        return true;
    }
    if (!all_have_data(set, cell))
        return false;
    if (s->kind == HVD_ALLREDUCE)
        reduce_small(set, entry, cell);
    else
        hvd__ordered_move(set, entry, cell);
    return true;
}

bool hvd__ordered_goes_in_place(const struct hvd__world *world,
                                struct hvd__set *set,
                                const struct hvd__entry *entry, uint64_t cell)
{
    const struct hvd__signature *s = &entry->signature;

    return s->kind == HVD_ALLREDUCE && !world->settings.consistency_check &&
           s->op != HVD_ADASUM && s->compression == HVD_COMPRESSION_NONE &&
           reach(set, entry, cell);
}

/* All ranks have submitted it, and this one knows. */
static void decided(struct hvd__ordered *x, struct hvd__unit *unit, int64_t now)
{
    unit->decided_ns = now;
    if (unit->timed)
        x->waited_ns = now - unit->since_ns;
    else
        unit->since_ns = now - x->waited_ns;
    atomic_store_explicit(&unit->decided, true, memory_order_release);
}

int hvd__ordered_run(struct hvd__world *world, struct hvd__set *set,
                     struct hvd__entry *entry, uint64_t cell, int64_t now)
{
    struct hvd__ordered *x = &set->ordered;

    if (entry->unit->decided_ns == 0)
        decided(x, entry->unit, now);
    entry->started_ns = now;
    entry->batched = 1;
    entry->shared = !x->log;
    if (x->log)
        HVD_TRY(hvd__replicated_log_read(set, entry, cell));
    if (hvd__ordered_run_here(world, set, entry, cell)) {
        if (!hvd__trace_writer_listens(&world->writer))
            entry->done_ns = now; /* in no time: not worth another look */
        done(world, x, entry);
        return HVD_OK;
    }
    if (hvd__ordered_goes_in_place(world, set, entry, cell)) {
        hvd__ordered_begin_share(set, entry, cell);
        return HVD_OK;
    }
    HVD_TRY(collect_rows(set, entry, cell));
    entry->next = NULL;
    if (!x->log)
        return hvd__execute(set, entry, NULL, set->direct_max);
    hvd__boundaries_agree(&x->log->boundaries, entry, hvd__mark_of(x, cell));
    return HVD_OK;
}

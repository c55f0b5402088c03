/* SPDX-License-Identifier: Apache-2.0 */
/*
 * express.c - cells: post, decide, run.
 *
 * A mark is the epoch in its upper 24 bits and one more than the number of a
 * cell in this epoch below: the mark of a later cell is greater, in whatever
 * epoch it is.
 */
#include "core/express.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "core/complete.h"
#include "core/negotiate.h"
#include "core/world.h"
#include "transport/algo/shared.h"

enum { EPOCH_SHIFT = 40 };

/* An epoch in which more cells were decided was worth it. */
enum { GOOD_EPOCH = 64, PATIENCE_MAX = 1 << 16 };

static uint64_t mark_of(const struct hvd__express *x, uint64_t cell)
{
    return (uint64_t)x->epoch << EPOCH_SHIFT | (cell + 1);
}

/* How many cells of this epoch a mark says are done with. */
static uint64_t cells_of(const struct hvd__express *x, uint64_t mark)
{
    return mark >> EPOCH_SHIFT == x->epoch
               ? mark & ((UINT64_C(1) << EPOCH_SHIFT) - 1)
               : 0;
}

static struct hvd__cell *cell_at(struct hvd__part *part, uint64_t cell)
{
    return &part->cells[cell % HVD__CELLS];
}

/* ------------------------------------------------------------ life of a set */

int hvd__express_init(struct hvd__express *x, struct hvd__slate *slate,
                      int size)
{
    size_t n = (size_t)size;

    *x = (struct hvd__express){.patience = 1};
    x->waiting_tail = &x->waiting;
    x->unfinished_tail = &x->unfinished;
    if (!slate)
        return HVD_OK;
    x->tickets = calloc(HVD__CELLS, sizeof *x->tickets);
    x->sources = calloc(n, sizeof *x->sources);
    x->targets = calloc(n, sizeof *x->targets);
    x->nheard = calloc(n, sizeof *x->nheard);
    if (!x->tickets || !x->sources || !x->targets || !x->nheard) {
        hvd__express_fini(x);
        return hvd__fail_memory(HVD__CELLS * sizeof *x->tickets);
    }
    x->state = HVD__EXPRESS_OPENING;
    x->epoch = 1;
    if (slate->own)
        atomic_store(&slate->own->accepted, (uint64_t)x->epoch << 1);
    return HVD_OK;
}

static void forget(struct hvd__unit *unit)
{
    if (unit->status < 0)
        hvd__unit_free(unit);
}

void hvd__express_drop(struct hvd__express *x)
{
    struct hvd__unit *unit = x->waiting;

    for (uint64_t cell = x->decided; cell < x->posted; cell++) {
        struct hvd__entry *entry = x->tickets[cell % HVD__CELLS].entry;

        if (entry && entry == entry->unit->entries)
            forget(entry->unit);
    }
    while (unit) {
        struct hvd__unit *next = unit->next;
        forget(unit);
        unit = next;
    }
    x->waiting = NULL;
    x->waiting_tail = &x->waiting;
    x->unfinished = NULL;
    x->unfinished_tail = &x->unfinished;
    x->now = (struct hvd__in_place){0};
    x->posted = x->decided = 0;
    x->state = HVD__EXPRESS_OFF;
}

void hvd__express_fini(struct hvd__express *x)
{
    if (x->tickets)
        hvd__express_drop(x);
    free(x->tickets);
    free(x->sources);
    free(x->targets);
    free(x->nheard);
    *x = (struct hvd__express){0};
}

void hvd__express_submit(struct hvd__express *x, struct hvd__unit *unit)
{
    unit->next = NULL;
    *x->waiting_tail = unit;
    x->waiting_tail = &unit->next;
}

bool hvd__express_is_busy(const struct hvd__express *x)
{
    return x->state == HVD__EXPRESS_OPEN &&
           (x->decided < x->posted || x->unfinished || x->now.entry);
}

/* --------------------------------------------------------- by name, after all
 */

static int announce_waiting(struct hvd__set *set)
{
    struct hvd__express *x = &set->express;

    while (x->waiting) {
        struct hvd__unit *unit = x->waiting;

        x->waiting = unit->next;
        HVD_TRY(hvd__announce(set, unit));
    }
    x->waiting_tail = &x->waiting;
    return HVD_OK;
}

/* Everything that is not decided goes the other way. */
static int end_epoch(struct hvd__set *set, enum hvd__express_state state,
                     bool *moved)
{
    struct hvd__express *x = &set->express;

    x->state = state;
    x->patience = x->decided > GOOD_EPOCH ? 1 : 2 * x->patience;
    if (x->patience > PATIENCE_MAX)
        x->patience = PATIENCE_MAX;
    x->closed_at = x->nannounced;
    *moved = true;
    for (; x->decided < x->posted; x->decided++) {
        struct hvd__entry *entry = x->tickets[x->decided % HVD__CELLS].entry;

        /* One that is posted in part still waits too. */
        if (entry && entry == entry->unit->entries && entry->unit != x->waiting)
            HVD_TRY(hvd__announce(set, entry->unit));
    }
    return announce_waiting(set);
}

bool hvd__express_may_open(const struct hvd__express *x)
{
    return x->state == HVD__EXPRESS_CLOSED &&
           x->nannounced - x->closed_at >= x->patience;
}

void hvd__express_open(struct hvd__set *set, uint32_t epoch, int64_t nheard)
{
    struct hvd__express *x = &set->express;
    bool refused = nheard != x->nannounced || x->state == HVD__EXPRESS_OPEN;

    x->epoch = epoch;
    x->state = refused ? HVD__EXPRESS_CLOSED : HVD__EXPRESS_OPENING;
    if (refused)
        x->closed_at = x->nannounced;
    if (set->slate->own)
        atomic_store_explicit(&set->slate->own->accepted,
                              (uint64_t)epoch << 1 | refused,
                              memory_order_release);
}

/* Have all ranks accepted the epoch? */
static int try_open(const struct hvd__world *world, struct hvd__set *set,
                    bool *moved)
{
    struct hvd__express *x = &set->express;
    int ready = hvd__slate_ready(set->slate);
    bool refused = false;

    if (ready == 0)
        return HVD_OK;
    if (ready < 0)
        return end_epoch(set, HVD__EXPRESS_OFF, moved);
    set->team.slate = set->slate;
    if (!world->settings.express)
        return end_epoch(set, HVD__EXPRESS_CLOSED, moved);
    for (int rank = 0; rank < set->team.size; rank++) {
        uint64_t accepted = atomic_load_explicit(
            &set->slate->parts[rank]->accepted, memory_order_acquire);

        if (accepted >> 1 < x->epoch)
            return HVD_OK;
        refused |= (accepted & 1) != 0;
    }
    x->posted = x->decided = x->read = 0;
    x->payload_free = x->payload_next;
    if (refused)
        return end_epoch(set, HVD__EXPRESS_CLOSED, moved);
    x->state = HVD__EXPRESS_OPEN;
    *moved = true;
    return HVD_OK;
}

/* -------------------------------------------------------------------- posting
 */

/* Cells of all ranks that we have read: one whose share is not yet reduced
 * will be looked at again. */
static uint64_t cells_read(const struct hvd__express *x)
{
    return x->decided - (x->now.entry != NULL);
}

/* What all ranks have read of our cells: they, and what was beside them, may
 * be written again. */
static void look_who_read(struct hvd__set *set)
{
    struct hvd__express *x = &set->express;
    uint64_t read = cells_read(x);

    for (int rank = 0; rank < set->team.size; rank++) {
        uint64_t there =
            cells_of(x, atomic_load_explicit(&set->slate->parts[rank]->consumed,
                                             memory_order_acquire));
        if (there < read)
            read = there;
    }
    if (read > x->read) {
        x->payload_free = x->tickets[(read - 1) % HVD__CELLS].payload_end;
        x->read = read;
    }
}

/* Bytes of data that go with a cell; -1: it does not go so. */
static int64_t data_bytes(const struct hvd__world *world,
                          const struct hvd__set *set,
                          const struct hvd__entry *entry)
{
    const struct hvd__signature *s = &entry->signature;
    const struct hvd__heap *heap = set->slate->heap;
    size_t most = world->settings.shm_small;

    /* Several must fit into the ring, whatever was asked for. */
    if (most > HVD__PAYLOAD_BYTES / 8)
        most = HVD__PAYLOAD_BYTES / 8;
    if (s->kind == HVD_BROADCAST)
        return entry->bytes > most ? -1
               : s->root == set->team.world[set->team.rank]
                   ? (int64_t)entry->bytes
                   : -1;
    if (s->kind != HVD_ALLREDUCE || s->op == HVD_ADASUM ||
        s->compression != HVD_COMPRESSION_NONE)
        return -1;
    /* Every rank reads what all have. In heaps each could do a share. */
    most = 2 * most / (size_t)set->team.size;
    if (hvd__heap_place(heap, entry->output, entry->bytes))
        most /= 8;
    return entry->bytes > most ? -1 : (int64_t)entry->bytes;
}

/* Room for bytes in the ring, as one piece: where; -1: not now. */
static int64_t take_payload(struct hvd__express *x, size_t bytes)
{
    uint64_t at = x->payload_next, offset = at % HVD__PAYLOAD_BYTES;

    bytes = (bytes + 63) / 64 * 64;
    if (offset + bytes > HVD__PAYLOAD_BYTES)
        at += HVD__PAYLOAD_BYTES - offset;
    if (at + bytes - x->payload_free > HVD__PAYLOAD_BYTES)
        return -1;
    x->payload_next = at + bytes;
    return (int64_t)(at % HVD__PAYLOAD_BYTES);
}

static struct hvd__cell *next_cell(struct hvd__set *set)
{
    struct hvd__express *x = &set->express;

    if (x->posted - x->read >= HVD__CELLS)
        look_who_read(set);
    if (x->posted - x->read >= HVD__CELLS)
        return NULL;
    return cell_at(set->slate->own, x->posted);
}

static void publish(struct hvd__express *x, struct hvd__cell *cell,
                    struct hvd__entry *entry)
{
    x->tickets[x->posted % HVD__CELLS] =
        (struct hvd__ticket){entry, x->payload_next};
    atomic_store_explicit(&cell->mark, mark_of(x, x->posted),
                          memory_order_release);
    x->posted++;
}

/* A cell that is like no other. */
static bool post_apart(struct hvd__set *set, struct hvd__entry *entry)
{
    struct hvd__cell *cell = next_cell(set);

    if (!cell)
        return false;
    cell->flags = HVD__CELL_APART;
    publish(&set->express, cell, entry);
    return true;
}

static bool post_entry(const struct hvd__world *world, struct hvd__set *set,
                       struct hvd__entry *entry)
{
    struct hvd__express *x = &set->express;
    struct hvd__cell *cell = next_cell(set);
    int64_t bytes = data_bytes(world, set, entry), offset = 0;
    const void *data =
        entry->signature.kind == HVD_BROADCAST ? entry->output : entry->input;

    if (!cell)
        return false;
    if (bytes > HVD__INLINE_BYTES) {
        offset = take_payload(x, (size_t)bytes);
        if (offset < 0) {
            look_who_read(set);
            offset = take_payload(x, (size_t)bytes);
        }
        if (offset < 0)
            return false;
    }
    cell->key = entry->unit->key;
    cell->fingerprint = entry->unit->fingerprint;
    cell->rows = entry->rows;
    cell->flags = bytes >= 0 ? HVD__CELL_DATA : 0;
    cell->offset = (uint32_t)offset;
    if (bytes > 0)
        memcpy(bytes > HVD__INLINE_BYTES ? set->slate->own->payload + offset
                                         : cell->data,
               data, (size_t)bytes);
    if (bytes < 0) {
        cell->input =
            hvd__heap_place(set->slate->heap, entry->input, entry->bytes);
        cell->output =
            hvd__heap_place(set->slate->heap, entry->output, entry->bytes);
    }
    publish(x, cell, entry);
    return true;
}

static bool is_apart(const struct hvd__unit *unit)
{
    return unit->status < 0 || unit->priority != 0 ||
           unit->nentries > HVD__CELLS / 2 ||
           unit->entries[0].signature.kind == HVD_JOIN;
}

/* Whether all of it is posted; nposted of its entries are. */
static bool post_unit(const struct hvd__world *world, struct hvd__set *set,
                      struct hvd__unit *unit)
{
    if (is_apart(unit))
        return post_apart(set, &unit->entries[0]);
    for (; unit->nposted < unit->nentries; unit->nposted++)
        if (!post_entry(world, set, &unit->entries[unit->nposted]))
            return false;
    return true;
}

void hvd__express_post(struct hvd__world *world, struct hvd__set *set)
{
    struct hvd__express *x = &set->express;

    while (x->waiting && post_unit(world, set, x->waiting)) {
        x->waiting = x->waiting->next;
        if (!x->waiting)
            x->waiting_tail = &x->waiting;
    }
}

static void post(struct hvd__world *world, struct hvd__set *set, bool leaving,
                 bool *moved)
{
    struct hvd__express *x = &set->express;
    uint64_t before = x->posted;

    hvd__express_post(world, set);
    *moved |= x->posted != before;
    if (leaving && !x->waiting && !x->ending)
        x->ending = post_apart(set, NULL);
}

/* -------------------------------------------------------------------- running
 */

static const unsigned char *data_of(struct hvd__part *part, uint64_t number,
                                    size_t bytes)
{
    const struct hvd__cell *cell = cell_at(part, number);

    return bytes > HVD__INLINE_BYTES ? part->payload + cell->offset
                                     : cell->data;
}

static struct hvd__reduction reduction_of(const struct hvd__set *set,
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
    const struct hvd__reduction reduction = reduction_of(set, entry);
    const void **sources = set->express.sources;

    for (int rank = 0; rank < set->team.size; rank++)
        sources[rank] =
            rank == set->team.rank
                ? entry->input
                : data_of(set->slate->parts[rank], cell, entry->bytes);
    hvd__reduce(&reduction, entry->output, sources, set->team.size,
                entry->count);
}

/* The addresses of all inputs and outputs; false: some are out of reach. */
static bool reach(struct hvd__set *set, const struct hvd__entry *entry,
                  uint64_t number)
{
    struct hvd__express *x = &set->express;
    const struct hvd__slate *slate = set->slate;

    for (int rank = 0; rank < set->team.size; rank++) {
        const struct hvd__cell *cell = cell_at(slate->parts[rank], number);
        bool own = rank == set->team.rank;

        if (cell->flags & HVD__CELL_DATA)
            return false;
        x->sources[rank] = hvd__heap_at(slate->heap, slate->world[rank],
                                        cell->input, entry->bytes);
        x->targets[rank] = hvd__heap_at(slate->heap, slate->world[rank],
                                        cell->output, entry->bytes);
        if (!x->sources[rank] || !x->targets[rank])
            return false;
        if (own) {
            x->sources[rank] = entry->input;
            x->targets[rank] = entry->output;
        }
    }
    return true;
}

/* Go on with the reduction in place. Whether our share is done. */
static bool reduce_share(struct hvd__set *set)
{
    int64_t computing_ns = 0;
    struct hvd__express *x = &set->express;
    struct hvd__entry *entry = x->now.entry;
    const struct hvd__reduction reduction = reduction_of(set, entry);
    struct hvd__slice share =
        hvd__slice_of(entry->count, set->team.rank, set->team.size);
    size_t element = hvd__dtype_bytes(entry->signature.dtype);
    int64_t most = (int64_t)(HVD__CHUNK_BYTES / element);
    int64_t count = share.count - x->now.done;
    size_t offset = (size_t)(share.start + x->now.done) * element;

    if (count > most)
        count = most;
    reach(set, entry, x->now.cell);
    for (int rank = 0; rank < set->team.size; rank++) {
        x->sources[rank] = (const char *)x->sources[rank] + offset;
        x->targets[rank] = (char *)x->targets[rank] + offset;
    }
    hvd__timed_reduce(&computing_ns, &reduction, x->targets, set->team.size,
                      x->sources, set->team.size, count);
    hvd__count_alone(&set->metrics->computing_ns, computing_ns);
    x->now.done += count;
    if (x->now.done < share.count)
        return false;
    entry->mark = mark_of(x, x->now.cell);
    atomic_store_explicit(&set->slate->own->reduced, entry->mark,
                          memory_order_release);
    entry->next = NULL;
    *x->unfinished_tail = entry;
    x->unfinished_tail = &entry->next;
    x->now.entry = NULL;
    return true;
}

/* The cell up to which all ranks have reduced their shares, as a mark. */
static uint64_t least_reduced(const struct hvd__set *set)
{
    uint64_t least = UINT64_MAX;

    for (int rank = 0; rank < set->team.size; rank++) {
        uint64_t reduced = atomic_load_explicit(
            &set->slate->parts[rank]->reduced, memory_order_acquire);
        if (reduced < least)
            least = reduced;
    }
    return least;
}

static void done(struct hvd__world *world, struct hvd__entry *entry)
{
    hvd__count_alone(&world->metrics.batches, 1);
    hvd__count_alone(&world->metrics.batched, 1);
    if (hvd__scribe_listens(&world->scribe) &&
        entry->signature.kind != HVD_BARRIER)
        entry->moved_ns = hvd__now_ns();
    hvd__complete(world, entry, HVD_OK, NULL);
}

/* Reductions in place are done when all have done their share. */
static void finish(struct hvd__world *world, struct hvd__set *set, bool *moved)
{
    struct hvd__express *x = &set->express;
    uint64_t least = x->unfinished ? least_reduced(set) : 0;

    while (x->unfinished && x->unfinished->mark <= least) {
        struct hvd__entry *entry = x->unfinished;

        x->unfinished = entry->next;
        if (!x->unfinished)
            x->unfinished_tail = &x->unfinished;
        *moved = true;
        done(world, entry);
    }
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
        entry->carried[rank] = cell_at(set->slate->parts[rank], cell)->rows;
    return HVD_OK;
}

static bool all_have_data(const struct hvd__set *set, uint64_t cell)
{
    for (int rank = 0; rank < set->team.size; rank++)
        if (!(cell_at(set->slate->parts[rank], cell)->flags & HVD__CELL_DATA))
            return false;
    return true;
}

/* Whether a cell that is agreed on was run here and now. */
static bool run_here(struct hvd__world *world, struct hvd__set *set,
                     struct hvd__entry *entry, uint64_t cell)
{
    const struct hvd__signature *s = &entry->signature;
    struct hvd__part *root;

    if (s->kind == HVD_BARRIER)
        return true;
    if (world->settings.consistency_check)
        return false;
    if (s->kind == HVD_BROADCAST) {
        root = set->slate->parts[hvd__set_find(set, s->root)];
        if (!(cell_at(root, cell)->flags & HVD__CELL_DATA))
            return false;
        if (root != set->slate->own && entry->bytes > 0)
            memcpy(entry->output, data_of(root, cell, entry->bytes),
                   entry->bytes);
        return true;
    }
    if (s->kind != HVD_ALLREDUCE || !all_have_data(set, cell))
        return false;
    reduce_small(set, entry, cell);
    return true;
}

static bool goes_in_place(const struct hvd__world *world, struct hvd__set *set,
                          const struct hvd__entry *entry, uint64_t cell)
{
    const struct hvd__signature *s = &entry->signature;

    return s->kind == HVD_ALLREDUCE && !world->settings.consistency_check &&
           s->op != HVD_ADASUM && s->compression == HVD_COMPRESSION_NONE &&
           reach(set, entry, cell);
}

/* All ranks have this in this cell. */
static int run(struct hvd__world *world, struct hvd__set *set,
               struct hvd__entry *entry, uint64_t cell, int64_t now)
{
    struct hvd__express *x = &set->express;

    if (entry->unit->decided_ns == 0) {
        entry->unit->decided_ns = now;
        atomic_store_explicit(&entry->unit->decided, true,
                              memory_order_release);
    }
    entry->started_ns = now;
    entry->batched = 1;
    entry->shared = true;
    if (run_here(world, set, entry, cell)) {
        if (!hvd__scribe_listens(&world->scribe))
            entry->done_ns = now; /* in no time: not worth another look */
        done(world, entry);
        return HVD_OK;
    }
    if (goes_in_place(world, set, entry, cell)) {
        x->now = (struct hvd__in_place){.entry = entry, .cell = cell};
        return HVD_OK;
    }
    HVD_TRY(collect_rows(set, entry, cell));
    entry->next = NULL;
    return hvd__execute(set, entry, NULL);
}

/* ------------------------------------------------------------------- deciding
 */

enum verdict { UNKNOWN, AGREED, DIFFERENT };

/* What the ranks have in the cell that is the next to be decided. */
static enum verdict compare(const struct hvd__set *set)
{
    const struct hvd__express *x = &set->express;
    const struct hvd__cell *own = cell_at(set->slate->own, x->decided);
    uint64_t mark = mark_of(x, x->decided);
    enum verdict verdict = AGREED;

    if (own->flags & HVD__CELL_APART)
        return DIFFERENT;
    for (int rank = 0; rank < set->team.size; rank++) {
        const struct hvd__cell *cell =
            cell_at(set->slate->parts[rank], x->decided);

        if (atomic_load_explicit(&cell->mark, memory_order_acquire) != mark)
            verdict = UNKNOWN;
        else if (cell->flags & HVD__CELL_APART || cell->key != own->key ||
                 cell->fingerprint != own->fingerprint)
            return DIFFERENT;
    }
    return verdict;
}

/* Tell the others what we have read. */
static void consume(struct hvd__set *set)
{
    const struct hvd__express *x = &set->express;
    uint64_t read = cells_read(x);

    if (read > 0)
        atomic_store_explicit(&set->slate->own->consumed, mark_of(x, read - 1),
                              memory_order_release);
}

static int decide(struct hvd__world *world, struct hvd__set *set, bool *moved)
{
    struct hvd__express *x = &set->express;
    uint64_t before = x->decided;
    enum verdict verdict = UNKNOWN;
    int64_t now = 0;

    while (x->decided < x->posted && !x->now.entry &&
           (verdict = compare(set)) == AGREED) {
        uint64_t cell = x->decided++;

        now = now ? now : hvd__now_ns();
        HVD_TRY(
            run(world, set, x->tickets[cell % HVD__CELLS].entry, cell, now));
        if (x->now.entry)
            reduce_share(set);
    }
    if (x->decided > before) {
        *moved = true;
        consume(set);
    }
    return verdict == DIFFERENT ? end_epoch(set, HVD__EXPRESS_CLOSED, moved)
                                : HVD_OK;
}

/* ---------------------------------------------------------------- right now */

bool hvd__express_is_free(const struct hvd__express *x)
{
    return x->state == HVD__EXPRESS_OPEN && !x->waiting && !x->ending &&
           x->decided == x->posted && !x->now.entry && !x->unfinished;
}

/*
 * Looking for the others: first some half a microsecond without giving up the
 * core, then giving way to whoever wants it, which may be the one waited for.
 * Where looking without giving way has not helped, as among ranks that share
 * a core against all expectation, it is tried again only now and then.
 */
enum { LOOKS = 32, LOOKS_YIELDING = 100, TRY_AGAIN = 128 };

struct look {
    int pauses; /* that are left */
    int yields;
};

static struct look begin_looking(const struct hvd__world *world,
                                 struct hvd__express *x)
{
    if (x->nquick++ % TRY_AGAIN == 0)
        x->pauses = LOOKS;
    return (struct look){world->progress.may_spin ? x->pauses : 0,
                         LOOKS_YIELDING};
}

/* Between two looks; false: no more. */
static bool pause_between(struct look *look)
{
    if (look->pauses > 0) {
        look->pauses--;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#else
        atomic_signal_fence(memory_order_seq_cst);
#endif
        return true;
    }
    sched_yield();
    return look->yields-- > 0;
}

/* They are there. If they were from the beginning nothing was learnt. */
static void end_looking(struct hvd__express *x, const struct look *look)
{
    if (look->yields < LOOKS_YIELDING)
        x->pauses /= 2;
    else if (look->pauses < x->pauses)
        x->pauses = LOOKS;
}

static enum hvd__quick quick_in_place(struct hvd__set *set,
                                      struct hvd__entry *entry,
                                      struct look *look)
{
    struct hvd__express *x = &set->express;

    x->now = (struct hvd__in_place){.entry = entry, .cell = x->decided++};
    while (!reduce_share(set))
        continue;
    consume(set);
    while (least_reduced(set) < entry->mark)
        if (!pause_between(look))
            return HVD__QUICK_POSTED;
    x->unfinished = NULL;
    x->unfinished_tail = &x->unfinished;
    return HVD__QUICK_DONE;
}

enum hvd__quick hvd__express_quick(struct hvd__world *world,
                                   struct hvd__set *set, struct hvd__unit *unit)
{
    struct hvd__express *x = &set->express;
    struct hvd__entry *entry = &unit->entries[0];
    struct look look;
    enum verdict verdict;

    if (!post_unit(world, set, unit))
        return HVD__QUICK_NOT;
    look = begin_looking(world, x);
    while ((verdict = compare(set)) == UNKNOWN && pause_between(&look))
        continue;
    if (verdict != AGREED)
        return HVD__QUICK_POSTED;
    end_looking(x, &look);
    if (run_here(world, set, entry, x->decided)) {
        x->decided++;
        consume(set);
        return HVD__QUICK_DONE;
    }
    if (!goes_in_place(world, set, entry, x->decided))
        return HVD__QUICK_POSTED;
    return quick_in_place(set, entry, &look);
}

/* -------------------------------------------------------------------- a step
 */

int hvd__express_step(struct hvd__world *world, struct hvd__set *set,
                      bool leaving, bool *moved)
{
    struct hvd__express *x = &set->express;

    if (x->state == HVD__EXPRESS_OPENING && (x->waiting || leaving))
        HVD_TRY(try_open(world, set, moved));
    if (x->state == HVD__EXPRESS_CLOSED)
        HVD_TRY(announce_waiting(set));
    if (x->state == HVD__EXPRESS_OPEN && (x->waiting || leaving))
        post(world, set, leaving, moved);
    if (x->now.entry) {
        *moved = true;
        if (!reduce_share(set))
            return HVD_OK;
    }
    if (x->state == HVD__EXPRESS_OPEN && x->decided < x->posted)
        HVD_TRY(decide(world, set, moved));
    finish(world, set, moved);
    return HVD_OK;
}

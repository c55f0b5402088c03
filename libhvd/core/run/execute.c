/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute.c - runs batches in lanes.
 *
 * A batch has up to three phases, each of them one collective. The first
 * exchanges the sizes; only an alltoall whose parts are not equal has it, if no
 * round has exchanged them. The second moves the tensors (pack.c). The third
 * compares the results, if HVD_CONSISTENCY_CHECK is set.
 *
 * The batches of a set start in their order, one in each free lane, and finish
 * in any order. The tags of a batch follow from its number, which is the same
 * on all members. Batches whose numbers differ by HVD__BATCH_WINDOW have the
 * same tags, so the later one does not start while the earlier one is under
 * way.
 *
 * core/agree passes batches to hvd__execute, and the engine moves them with
 * hvd__execute_step; both have the role of the driver.
 */
#include "core/run/execute.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fingerprint.h"
#include "base/log.h"
#include "base/status.h"
#include "core/run/complete.h"
#include "core/run/engine.h"
#include "core/run/pack.h"
#include "core/table/set.h"
#include "transport/hosts.h"

static int lane_init(struct hvd__lane *lane, struct hvd__set *set)
{
    size_t n = (size_t)set->team.size;

    lane->set = set;
    HVD_TRY(hvd__workspace_init(&lane->workspace, set->team.size));
    HVD_TRY(hvd__allocate(&lane->world, n, sizeof *lane->world));
    HVD_TRY(hvd__allocate(&lane->members, n, sizeof *lane->members));
    HVD_TRY(hvd__allocate(&lane->shares, n, sizeof *lane->shares));
    /* Untouched pages of the buffer cost nothing. */
    lane->fusion_bytes = set->engine->settings.fusion_threshold;
    lane->fusion = malloc(lane->fusion_bytes ? lane->fusion_bytes : 1);
    if (!lane->fusion)
        return hvd__fail(HVD_ERR_MEMORY,
                         "out of memory for fusion buffers of %zu bytes; "
                         "set HVD_FUSION_THRESHOLD lower",
                         lane->fusion_bytes);
    return HVD_OK;
}

int hvd__executor_new(struct hvd__set *set)
{
    HVD_TRY(hvd__allocate(&set->executor, 1, sizeof *set->executor));
    set->executor->waiting_tail = &set->executor->waiting;
    for (int i = 0; i < HVD__LANES; i++)
        HVD_TRY(lane_init(&set->executor->lanes[i], set));
    return HVD_OK;
}

void hvd__executor_free(struct hvd__set *set)
{
    struct hvd__executor *executor = set->executor;
    struct hvd__batch *batch;

    if (!executor)
        return;
    while ((batch = executor->waiting)) {
        executor->waiting = batch->next;
        free(batch);
    }
    for (int i = 0; i < HVD__LANES; i++) {
        struct hvd__lane *lane = &executor->lanes[i];

        free(lane->batch);
        free(lane->fusion);
        free(lane->world);
        free(lane->members);
        free(lane->shares);
        free(lane->temporary);
        hvd__workspace_fini(&lane->workspace);
    }
    free(executor);
    set->executor = NULL;
}

int hvd__execute(struct hvd__set *set, struct hvd__request *requests,
                 const int *part, size_t direct_max)
{
    struct hvd__executor *executor = set->executor;
    size_t bytes = part ? (size_t)set->team.size * sizeof *part : 0;
    struct hvd__batch *batch;

    HVD_TRY(hvd__allocate(&batch, 1, sizeof *batch + bytes));
    *batch = (struct hvd__batch){.requests = requests,
                                 .number = executor->nbatches++,
                                 .direct_max = direct_max,
                                 .is_partial = part != NULL};
    if (part)
        memcpy(batch->part, part, bytes);
    *executor->waiting_tail = batch;
    executor->waiting_tail = &batch->next;
    executor->nunfinished++;
    return HVD_OK;
}

/* One batch more than run at the same time may wait, so that the next starts
 * while the ranks agree on those behind it. */
int hvd__executor_room(const struct hvd__set *set)
{
    int nmoving = set->shm ? 1 : HVD__LANES;

    return nmoving + 1 - set->executor->nunfinished;
}

bool hvd__executor_is_idle(const struct hvd__set *set)
{
    return set->executor->nunfinished == 0;
}

int64_t hvd__executor_take_bytes(struct hvd__set *set)
{
    int64_t bytes = set->executor->bytes_done;

    set->executor->bytes_done = 0;
    return bytes;
}

void hvd__execute_skip(struct hvd__set *set)
{
    set->executor->nbatches++;
}

/* ------------------------------------------------------------------- phases */

/* Makes the team of the members that take part: all, or those that have not
 * joined. */
static void choose_team(struct hvd__lane *lane)
{
    const struct hvd__batch *batch = lane->batch;
    int n = 0;

    lane->team = lane->set->team;
    if (batch->is_partial) {
        lane->team.shm = NULL; /* the segment is for all members */
        lane->team.hosts = NULL;
    }
    for (int rank = 0; rank < lane->set->team.size; rank++) {
        if (batch->is_partial && !batch->part[rank])
            continue;
        if (rank == lane->set->team.rank)
            lane->team.rank = n;
        lane->members[n] = rank;
        lane->world[n++] = lane->set->team.world[rank];
    }
    lane->team.world = lane->world;
    lane->team.size = n;
}

/* Returns true if all members should end up with the same bytes. */
static bool is_checked(const struct hvd__lane *lane)
{
    hvd_kind kind = lane->batch->requests->signature.kind;

    return lane->set->engine->settings.consistency_check &&
           lane->team.size > 1 &&
           (kind == HVD_ALLREDUCE || kind == HVD_BROADCAST ||
            kind == HVD_ALLGATHER);
}

/* Returns the number of requests in a list that is not empty. */
static int count_requests(const struct hvd__request *request)
{
    int n = 1;

    while ((request = request->state.next))
        n++;
    return n;
}

static uint64_t fingerprint_of(const struct hvd__request *request)
{
    size_t bytes = request->bytes;

    if (request->signature.kind == HVD_ALLGATHER)
        bytes = (size_t)request->out_rows *
                hvd__signature_row_bytes(&request->signature);
    /* A request that failed by itself has no result to compare. */
    return request->state.status == HVD_OK && request->output
               ? hvd__fingerprint(1, request->output, bytes)
               : 0;
}

/* Returns the fingerprints of a member for the requests of a batch, of which
 * each member has lane->collective.count. */
static uint64_t *results_of(const struct hvd__lane *lane, int member)
{
    return (uint64_t *)(void *)lane->buffer + member * lane->collective.count;
}

/* Prepares the exchange of fingerprints. */
static int pack_check(struct hvd__lane *lane)
{
    struct hvd__collective *c = &lane->collective;
    size_t bytes;
    uint64_t *mine;

    c->count = count_requests(lane->batch->requests);
    bytes = (size_t)c->count * sizeof *mine;
    HVD_TRY(hvd__lane_room(lane, (size_t)lane->team.size * bytes));
    mine = results_of(lane, lane->team.rank);
    c->motion = HVD__GATHER_TO_ALL;
    for (int i = 0; i < lane->team.size; i++) {
        c->to[i] = (struct hvd__block){(unsigned char *)mine, bytes};
        c->from[i] =
            (struct hvd__block){(unsigned char *)results_of(lane, i), bytes};
    }
    for (const struct hvd__request *e = lane->batch->requests; e;
         e = e->state.next)
        *mine++ = fingerprint_of(e);
    return HVD_OK;
}

/* Compares all results with that of the first member that has one, and names
 * the first that differs. All members see the same results, and so all fail. */
static void check_request(const struct hvd__lane *lane,
                          struct hvd__request *request, int e)
{
    int first = -1;

    for (int i = 0; i < lane->team.size; i++) {
        uint64_t result = results_of(lane, i)[e];

        if (result != 0 && first < 0)
            first = i;
        if (result == 0 || result == results_of(lane, first)[e])
            continue;
        hvd__request_fail(request, HVD_ERR_INCONSISTENT,
                          "rank %d has other bytes in its result than rank %d",
                          lane->team.world[i], lane->team.world[first]);
        return;
    }
}

/* Returns the first phase from this one on that the batch has, or HVD__PHASES
 * if there is none. */
static enum hvd__phase phase_from(const struct hvd__lane *lane, int phase)
{
    const struct hvd__request *first = lane->batch->requests;

    if (phase == HVD__PHASE_COUNTS &&
        (first->signature.kind != HVD_ALLTOALL ||
         !hvd__signature_varies(&first->signature) || first->state.carried))
        phase++;
    if (phase == HVD__PHASE_CHECK && !is_checked(lane))
        phase++;
    return (enum hvd__phase)phase;
}

/* Stores the time at which the data was packed, or had moved. Only a timeline
 * uses it. */
static void stamp_requests(const struct hvd__lane *lane, bool moved)
{
    int64_t now;

    if (!hvd__trace_writer_listens(&lane->set->engine->writer))
        return;
    now = hvd__now_ns();
    for (struct hvd__request *e = lane->batch->requests; e; e = e->state.next)
        if (moved) {
            e->state.moved_ns = now;
        } else {
            e->state.packed_ns = now;
            e->state.packed = lane->buffer != NULL;
        }
}

bool hvd__keeps_order(const struct hvd__set *set)
{
    return set->engine->settings.deterministic || !set->hosts ||
           set->hosts->is_one;
}

static int start_phase(struct hvd__lane *lane, enum hvd__phase phase)
{
    struct hvd__workspace *w = &lane->workspace;

    lane->phase = phase;
    lane->collective = (struct hvd__collective){
        .tag =
            lane->set->first_tag +
            (int)(lane->batch->number % HVD__BATCH_WINDOW) * HVD__BATCH_TAGS +
            (int)phase * HVD__COLLECTIVE_TAGS,
        .team = &lane->team,
        .direct_max = lane->batch->direct_max,
        .same_order = hvd__keeps_order(lane->set),
        .workspace = w,
        .to = w->blocks,
        .from = w->blocks + lane->set->team.size,
    };
    switch (phase) {
    case HVD__PHASE_COUNTS: HVD_TRY(hvd__pack_counts(lane)); break;
    case HVD__PHASE_MOVE:
        HVD_TRY(hvd__pack(lane));
        stamp_requests(lane, false);
        break;
    default: HVD_TRY(pack_check(lane));
    }
    hvd__collective_start(&lane->collective);
    return HVD_OK;
}

/* -------------------------------------------------------------------- lanes */

static int start_batch(struct hvd__lane *lane, struct hvd__batch *batch)
{
    struct hvd__metrics *metrics = &lane->set->engine->metrics;
    struct hvd__request *e = batch->requests;
    int64_t now = hvd__now_ns();
    int n = count_requests(e), nown = 0;
    int64_t bytes = 0;

    lane->batch = batch;
    do {
        e->state.started_ns = now;
        e->state.batched = n;
        e->state.shared = lane->set->team.shm != NULL && !batch->is_partial;
        bytes += (int64_t)e->bytes;
        nown += hvd__request_is_own(e);
    } while ((e = e->state.next));
    hvd__count_alone(&metrics->batches, n > nown);
    hvd__count_alone(&metrics->batched, n - nown);
    hvd__count_alone(&metrics->fused, n - nown > 1);
    hvd__count_alone(&metrics->fused_bytes, n - nown > 1 ? bytes : 0);
    choose_team(lane);
    hvd__log(HVD__LOG_TRACE, "set %d batch %lld: %d of %s and on",
             (int)lane->set->id, (long long)batch->number, n,
             batch->requests->submission->name);
    return start_phase(lane, phase_from(lane, HVD__PHASE_COUNTS));
}

/* Ends a phase: starts the next one, or completes the batch. */
static int next_phase(struct hvd__lane *lane)
{
    struct hvd__request *e;
    enum hvd__phase next;
    int n = 0;

    hvd__count_alone(&lane->set->engine->metrics.computing_ns,
                     lane->collective.computing_ns);
    if (lane->phase == HVD__PHASE_MOVE) {
        stamp_requests(lane, true);
        hvd__unpack(lane);
    } else if (lane->phase == HVD__PHASE_CHECK) {
        for (e = lane->batch->requests; e; e = e->state.next)
            check_request(lane, e, n++);
    }
    free(lane->temporary);
    lane->temporary = NULL;
    next = phase_from(lane, (int)lane->phase + 1);
    if (next != HVD__PHASES)
        return start_phase(lane, next);
    e = lane->batch->requests;
    for (const struct hvd__request *r = e; r; r = r->state.next)
        lane->set->executor->bytes_done += (int64_t)r->bytes;
    free(lane->batch);
    lane->batch = NULL;
    lane->set->executor->nunfinished--;
    hvd__complete_all(lane->set->engine, e);
    return HVD_OK;
}

/* Returns the batch to start now. Batches run one after another, in order, if
 * memory is shared. */
static struct hvd__batch *next_waiting(const struct hvd__set *set,
                                       struct hvd__executor *executor)
{
    struct hvd__batch *batch = executor->waiting;

    for (int i = 0; batch && i < HVD__LANES; i++) {
        const struct hvd__batch *other = executor->lanes[i].batch;

        if (other &&
            (set->shm || other->number + HVD__BATCH_WINDOW <= batch->number))
            return NULL;
    }
    if (batch && !(executor->waiting = batch->next))
        executor->waiting_tail = &executor->waiting;
    return batch;
}

/* Returns true if what the lane has read of other ranks' memory may be worth
 * nothing. Then it stays as it is until this rank hears why. */
static bool is_given_up(const struct hvd__lane *lane)
{
    const struct hvd__shm *shm = lane->set->shm;

    return (lane->team.shm || lane->team.hosts) && shm &&
           shm->nseen == shm->size && hvd__shm_is_given_up(shm);
}

int hvd__execute_step(struct hvd__set *set, bool *moved)
{
    struct hvd__executor *executor = set->executor;

    for (int i = 0; i < HVD__LANES; i++) {
        struct hvd__lane *lane = &executor->lanes[i];
        int done;

        if (!lane->batch) {
            struct hvd__batch *batch = next_waiting(set, executor);
            if (!batch)
                continue;
            HVD_TRY(start_batch(lane, batch));
            *moved = true;
        }
        done = hvd__collective_step(&lane->collective, moved);
        if (done < 0)
            return done;
        if (done && !is_given_up(lane)) {
            HVD_TRY(next_phase(lane));
            *moved = true;
        }
    }
    return HVD_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * iterator.c - opens the stages of a data set for one worker, and hands batches
 * out.
 *
 * Batches are filled in the slots of a ring (ring.h). Whoever fills alone
 * touches the stages; restore stops the ring's thread first.
 */
#include "dataset/stage.h"

#include "dataset/crew.h"
#include "dataset/ring.h"
#include "output/problem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hvd_iterator {
    hvd_dataset *set; /* owned reference */
    struct run run;
    struct stage *top;   /* owned */
    struct stage *stand; /* part of top: whose samples are counted */
    hvd_component components[HVD_MAX_COMPONENTS]; /* of batches */
    char description[320];
    uint64_t seed;
    int64_t epoch;     /* of top */
    bool ended;        /* is that epoch: another must begin */
    int64_t told[2];   /* epoch and samples where the caller stands */
    struct ring *ring; /* owned */
    void *given[HVD_MAX_COMPONENTS]; /* the caller's buffers */
};

/* ------------------------------------------------------------------ filling */

static void tell(const struct hvd_iterator *it, int64_t *epoch,
                 int64_t *samples)
{
    *epoch = it->stand->epoch + it->ended;
    *samples = it->ended                             ? 0
               : it->stand->set->kind == &batch_kind ? batch_tell(it->stand)
                                                     : it->stand->position;
}

static void fill_slot(void *context, struct slot *slot, void *const *at)
{
    struct hvd_iterator *it = context;
    struct run *run = &it->run;

    run->rows = 1;
    run->replica_rows[0] = 1;
    slot->status = it->ended ? stage_begin(it->top, ++it->epoch) : 0;
    it->ended = false;
    if (slot->status == 0)
        slot->status = stage_next(it->top, at);
    it->ended = slot->status == HVD_END_OF_DATA;
    slot->rows = run->rows;
    memcpy(slot->replica_rows, run->replica_rows,
           (size_t)run->share.replicas * sizeof *slot->replica_rows);
    free(slot->text);
    slot->text = slot->status < 0 ? strdup(hvd_last_error()) : NULL;
    tell(it, &slot->epoch, &slot->samples);
}

static void stop_ring(struct hvd_iterator *it)
{
    atomic_store_explicit(&it->run.stop, true, memory_order_relaxed);
    ring_stop(it->ring);
    atomic_store_explicit(&it->run.stop, false, memory_order_relaxed);
}

/* Gets a batch; buffers NULL: into a slot. */
static int get_batch(struct hvd_iterator *it, void *const *buffers,
                     hvd_batch *batch)
{
    const struct slot *slot = ring_take(it->ring, buffers);
    if (!slot)
        return HVD_ERR_MEMORY;
    if (slot->status < 0)
        return problem_fail(slot->status, "%s",
                            slot->text ? slot->text : "out of memory");
    it->told[0] = slot->epoch;
    it->told[1] = slot->samples;
    if (slot->status == HVD_END_OF_DATA)
        return HVD_END_OF_DATA;
    for (int32_t i = 0; buffers && i < it->set->ncomponents; i++) {
        it->given[i] = buffers[i];
        if (ring_is_ahead(it->ring))
            memcpy(buffers[i], slot->at[i], it->top->bytes[i]);
    }
    *batch = (hvd_batch){.ncomponents = it->set->ncomponents,
                         .components = it->components,
                         .data = buffers ? it->given : slot->at,
                         .rows = slot->rows,
                         .capacity =
                             it->set->batched ? batch_capacity(it->stand) : 1,
                         .replicas = it->run.share.replicas,
                         .replica_rows = slot->replica_rows};
    return 0;
}

int hvd_iterator_next(hvd_iterator *it, hvd_batch *batch)
{
    if (!it || !batch)
        return problem_fail(HVD_ERR_ARGUMENT, "iterator: %s is NULL",
                            it ? "the place for the batch" : "it");
    return get_batch(it, NULL, batch);
}

int hvd_iterator_next_into(hvd_iterator *it, void *const *buffers,
                           hvd_batch *batch)
{
    bool whole = it && buffers && batch;

    for (int32_t i = 0; whole && i < it->set->ncomponents; i++)
        whole = buffers[i];
    if (!whole)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "iterator: it, a buffer or the place for the batch "
                            "is NULL");
    return get_batch(it, buffers, batch);
}

/* ----------------------------------------------------------------- position */

int hvd_iterator_position(const hvd_iterator *it, hvd_position *position)
{
    if (!it || !position)
        return problem_fail(HVD_ERR_ARGUMENT, "iterator: %s is NULL",
                            it ? "the place for the position" : "it");
    const struct share *share = &it->run.share;
    *position = (hvd_position){
        .size = sizeof *position,
        .workers = share->by_data || share->workers == 1 ? 0 : share->workers,
        .seed = it->seed,
        .epoch = it->told[0],
        .samples = it->told[1]};
    return 0;
}

static int check_position(const hvd_iterator *it, const hvd_position *p)
{
    const struct share *share = &it->run.share;

    if (p->size != sizeof *p || p->epoch < 0 || p->samples < 0)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "iterator: this is no position: size %u, epoch "
                            "%" PRId64 ", %" PRId64 " samples",
                            (unsigned)p->size, p->epoch, p->samples);
    if (p->seed != it->seed)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "iterator: a position of seed %" PRIu64
                            ", but the data is shuffled with %" PRIu64,
                            p->seed, it->seed);
    if (p->workers != 0 && (p->workers != share->workers || share->by_data))
        return problem_fail(HVD_ERR_ARGUMENT,
                            "iterator: a position of %d workers with data of "
                            "their own, but there are %d: only "
                            "HVD_SHARD_DATA can change their number",
                            (int)p->workers, share->workers);
    if (p->workers == 0 && share->workers > 1 && !share->by_data)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "iterator: a position of data that is divided by "
                            "element, but workers have data of their own: use "
                            "HVD_SHARD_DATA");
    return 0;
}

int hvd_iterator_restore(hvd_iterator *it, const hvd_position *position)
{
    if (!it || !position)
        return problem_fail(HVD_ERR_ARGUMENT, "iterator: %s is NULL",
                            it ? "the position" : "it");
    int status = check_position(it, position);
    if (status < 0)
        return status;
    stop_ring(it);
    ring_clear(it->ring);
    it->ended = false;
    it->epoch = stage_restore(it->top, position->epoch, position->samples);
    if (it->epoch < 0) {
        status = (int)it->epoch;
        /* It stays where it was. */
        char *why = strdup(hvd_last_error());
        it->epoch = stage_restore(it->top, it->told[0], it->told[1]);
        problem_fail(status, "%s", why ? why : "out of memory");
        free(why);
        return status;
    }
    tell(it, &it->told[0], &it->told[1]);
    return 0;
}

/* ------------------------------------------------------------------- making */

void hvd_input_context_init(hvd_input_context *context, size_t size)
{
    static const hvd_input_context defaults = {
        .size = sizeof defaults, .num_input_pipelines = 1, .replicas = 1};

    if (!context)
        return;
    memset(context, 0, size);
    memcpy(context, &defaults, size < sizeof defaults ? size : sizeof defaults);
}

/* A walk through the nodes finds these. */
struct finds {
    int merges;
    int32_t files, threads, depth;
    uint64_t seed;
};

static void find_nodes(const hvd_dataset *set, struct finds *finds)
{
    int32_t threads = map_threads(set), depth = prefetch_depth(set);

    if (is_merge(set)) {
        finds->merges++;
        finds->files = set->ninputs;
    }
    if (finds->seed == 0)
        finds->seed = shuffle_seed(set);
    if (threads > finds->threads)
        finds->threads = threads;
    if (depth > finds->depth)
        finds->depth = depth;
    for (int32_t i = 0; i < set->ninputs; i++)
        find_nodes(set->inputs[i], finds);
}

static int check_context(const hvd_input_context *c)
{
    if (c->size != sizeof *c)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "iterator: a context of %u bytes, expected %zu: "
                            "use hvd_input_context_init",
                            (unsigned)c->size, sizeof *c);
    if (c->num_input_pipelines < 1 || c->input_pipeline_id < 0 ||
        c->input_pipeline_id >= c->num_input_pipelines)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "iterator: pipeline %d of %d: expected 0 to one "
                            "less than their number",
                            (int)c->input_pipeline_id,
                            (int)c->num_input_pipelines);
    if (c->replicas < 1 || c->replicas > 65536 ||
        c->num_input_pipelines > 1 << 20)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "iterator: %d replicas of each of %d workers",
                            (int)c->replicas, (int)c->num_input_pipelines);
    if (c->auto_shard < HVD_SHARD_OFF || c->auto_shard > HVD_SHARD_DATA ||
        c->uneven < HVD_UNEVEN_DROP || c->uneven > HVD_UNEVEN_JOIN)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "iterator: no way to divide data has the number "
                            "%d, or none for uneven shares %d",
                            (int)c->auto_shard, (int)c->uneven);
    return 0;
}

/* Decides how the data is divided. */
static int choose_share(const hvd_dataset *set, const hvd_input_context *c,
                        const struct finds *finds, struct share *share)
{
    bool files = finds->merges == 1 && finds->files >= c->num_input_pipelines;
    bool alone = c->num_input_pipelines == 1;

    *share = (struct share){.workers = c->num_input_pipelines,
                            .worker = c->input_pipeline_id,
                            .replicas = c->replicas,
                            .join = c->uneven == HVD_UNEVEN_JOIN};
    if (c->auto_shard == HVD_SHARD_FILE && !alone && !files)
        return problem_fail(
            HVD_ERR_ARGUMENT,
            finds->merges > 1
                ? "iterator: files of %d workers (of %d): there must be one "
                  "concatenate or interleave"
                : "iterator: %d workers need a file each, and there are %d: "
                  "use HVD_SHARD_DATA",
            (int)c->num_input_pipelines, (int)finds->files);
    if (!set->batched &&
        (c->replicas > 1 || (!alone && c->auto_shard != HVD_SHARD_OFF)))
        return problem_fail(HVD_ERR_ARGUMENT,
                            "iterator: data is divided among workers and "
                            "replicas by batches: use hvd_dataset_batch");
    share->by_file =
        !alone && files &&
        (c->auto_shard == HVD_SHARD_FILE || c->auto_shard == HVD_SHARD_AUTO);
    share->by_data = !share->by_file && c->auto_shard != HVD_SHARD_OFF;
    return 0;
}

static size_t lay_out(void *context, char *memory, void **at)
{
    struct hvd_iterator *it = context;

    return stage_lay_out(it->top, memory, at);
}

static int make_ring(struct hvd_iterator *it, int depth)
{
    const struct ring_maker maker = {.depth = depth,
                                     .replicas = it->run.share.replicas,
                                     .fill = fill_slot,
                                     .lay_out = lay_out,
                                     .context = it};

    return ring_new(&maker, &it->ring);
}

/* The components of batches, and the stage whose samples are counted. */
static void describe_batches(struct hvd_iterator *it)
{
    it->stand = it->top;
    while (it->stand->set->kind != &batch_kind &&
           (it->stand->set->batched || is_repeat(it->stand->set) ||
            prefetch_depth(it->stand->set)))
        it->stand = it->stand->inputs[0];
    memcpy(it->components, it->set->components, sizeof it->components);
    if (!it->set->batched)
        return;
    for (int32_t i = 0; i < it->set->ncomponents; i++) {
        hvd_component *c = &it->components[i];

        memmove(c->shape + 1, c->shape, (size_t)c->ndim * sizeof *c->shape);
        c->shape[0] = batch_capacity(it->stand) * it->run.share.replicas;
        c->ndim++;
    }
}

/* Appends to the description. */
__attribute__((format(printf, 2, 3))) static void add(struct hvd_iterator *it,
                                                      const char *format, ...)
{
    size_t used = strlen(it->description);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(it->description + used, sizeof it->description - used, format,
              arguments);
    va_end(arguments);
}

static void describe_sharing(struct hvd_iterator *it)
{
    const struct share *s = &it->run.share;
    const struct stage *b = it->stand;
    bool batched = it->set->batched;
    int64_t n = batched ? b->inputs[0]->count : it->top->count;
    int64_t steps = batched ? batch_steps(b->set, s) : -1;

    add(it, n < 0 ? "a stream" : "%lld elements", (long long)n);
    if (s->workers > 1)
        add(it, " %son %d workers",
            s->by_file   ? "of files of its own "
            : s->by_data ? "by element "
                         : "each ",
            s->workers);
    if (s->replicas > 1)
        add(it, "%s of %d replicas", s->workers > 1 ? "" : " on one worker",
            s->replicas);
    if (!batched)
        return;
    add(it, ": batches of %lld", (long long)batch_capacity(b));
    if (batch_of_all(b) != batch_capacity(b))
        add(it, " (%lld of %s)", (long long)batch_of_all(b),
            s->by_data || s->workers == 1 ? "all" : "this worker");
    if (steps < 0)
        return;
    add(it, ", %lld steps", (long long)steps);
    int64_t over = n - steps * batch_of_all(b);
    if (n >= 0 && over > 0)
        add(it, ", %lld elements dropped", (long long)over);
    else if (n >= 0 && over < 0)
        add(it, s->by_file ? ", the last ones short or empty"
                           : ", the last one short");
}

/* Makes everything but the reference to the data set. */
static int make_iterator(struct hvd_iterator *it,
                         const hvd_input_context *context)
{
    struct finds finds = {0};

    find_nodes(it->set, &finds);
    it->seed = finds.seed;
    int status = choose_share(it->set, context, &finds, &it->run.share);
    if (status == 0 && finds.threads > 1)
        status = crew_new(finds.threads, &it->run.crew);
    if (status < 0)
        return status;
    it->run.replica_rows =
        calloc((size_t)it->run.share.replicas, sizeof *it->run.replica_rows);
    if (!it->run.replica_rows)
        return problem_fail(HVD_ERR_MEMORY, "iterator: no memory");
    status = stage_open(it->set, &it->run, &it->top);
    if (status == 0)
        status = stage_begin(it->top, 0);
    if (status == 0)
        status = make_ring(it, finds.depth);
    if (status == 0) {
        describe_batches(it);
        describe_sharing(it);
    }
    return status;
}

int hvd_iterator_new(hvd_dataset *dataset, const hvd_input_context *context,
                     hvd_iterator **made)
{
    hvd_input_context alone;

    if (!dataset)
        return HVD_ERR_ARGUMENT;
    if (!made)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "iterator: the place for it is NULL");
    hvd_input_context_init(&alone, sizeof alone);
    context = context ? context : &alone;
    int status = check_context(context);
    if (status < 0)
        return status;
    hvd_iterator *it = calloc(1, sizeof *it);
    if (!it)
        return problem_fail(HVD_ERR_MEMORY, "iterator: no memory");
    it->set = hvd_dataset_keep(dataset);
    atomic_init(&it->run.stop, false);
    status = make_iterator(it, context);
    if (status < 0) {
        hvd_iterator_free(it);
        return status;
    }
    *made = it;
    return 0;
}

void hvd_iterator_free(hvd_iterator *it)
{
    if (!it)
        return;
    if (it->ring)
        stop_ring(it);
    ring_free(it->ring);
    crew_free(it->run.crew);
    stage_close(it->top);
    free(it->run.replica_rows);
    hvd_dataset_free(it->set);
    free(it);
}

int64_t hvd_iterator_steps(const hvd_iterator *it)
{
    return it ? node_count(it->set, &it->run.share) : -1;
}

int64_t hvd_iterator_left(const hvd_iterator *it)
{
    const struct stage *b = it ? it->stand : NULL;
    int64_t n, rest;

    if (!it || !it->set->batched ||
        !(it->run.share.by_data || it->run.share.workers == 1) ||
        batch_steps(b->set, &it->run.share) != hvd_iterator_steps(it))
        return -1;
    n = b->inputs[0]->count;
    if (n < 0)
        return -1;
    rest = n > it->told[1] ? n - it->told[1] : 0;
    return (rest + (batch_drops(b->set) ? 0 : batch_of_all(b) - 1)) /
           batch_of_all(b);
}

const char *hvd_iterator_description(const hvd_iterator *it)
{
    return it ? it->description : "";
}

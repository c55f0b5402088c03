/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.c - which elements a worker's batches have, and filling them.
 *
 * A step uses the next window of elements. Of a window, replica s of N has
 * elements s, s + N, ... Where data is divided by element, the window is that
 * of all workers and N counts all replicas; else each worker has a window and
 * its own replicas. So shares differ by at most one element, and with the whole
 * window they are the same whoever has them.
 *
 * The windows need not begin at a multiple of their size: after a position from
 * another number of workers, they begin there.
 */
#include "dataset/stage.h"

#include "dataset/crew.h"
#include "output/problem.h"

#include <stdlib.h>
#include <string.h>

/* So many elements before one is copied, the processor begins to fetch it: in a
 * random order it does not find out by itself. */
enum { AHEAD = 2 };

struct batching {
    int64_t size;
    bool global, drop;
};

/* The state. */
struct filler {
    int64_t window;   /* elements of a step */
    int64_t capacity; /* rows of a replica */
    int64_t divisor;  /* N */
    int64_t first;    /* s of this worker's first replica */
    int64_t begin;    /* of the next window */
    int64_t end;      /* of the epoch, beyond which is no window; -1: unknown */
    char *rooms;      /* owned: memory for each thread of the crew */
    void *const *out; /* of the batch that is filled */
};

static const struct batching *batching_of(const hvd_dataset *set)
{
    return set->parameters;
}

/* Numbers below n that are s, s + divisor, ... */
static int64_t share_of(int64_t n, int64_t s, int64_t divisor)
{
    return n <= s ? 0 : (n - s - 1) / divisor + 1;
}

static bool divides(const struct share *share)
{
    return share->by_data || share->workers == 1;
}

/* Elements that a step uses of what this worker sees. */
static int64_t window_of(const struct batching *b, const struct share *share)
{
    int64_t all = (int64_t)share->workers * share->replicas, mine = 0;
    int64_t window = b->global ? b->size : b->size * all;

    if (divides(share))
        return window;
    for (int r = 0; r < share->replicas; r++)
        mine +=
            share_of(window, (int64_t)share->worker * share->replicas + r, all);
    return mine;
}

static int64_t steps_of(const hvd_dataset *set, const struct share *share)
{
    const struct batching *b = batching_of(set);
    int64_t n = node_count(set->inputs[0], share);
    int64_t window = window_of(b, share);

    if (n < 0)
        return -1;
    if (window == 0)
        return 0;
    return b->drop ? n / window : (n + window - 1) / window;
}

int64_t batch_steps(const hvd_dataset *set, const struct share *share)
{
    struct share other = *share;
    int64_t steps = -1;

    if (!share->by_file)
        return steps_of(set, share);
    for (other.worker = 0; other.worker < other.workers; other.worker++) {
        int64_t its = steps_of(set, &other);

        if (its < 0)
            return -1;
        if (steps < 0 || (share->join ? its > steps : its < steps))
            steps = its;
    }
    return steps;
}

bool batch_drops(const hvd_dataset *set)
{
    return batching_of(set)->drop;
}

int64_t batch_of_all(const struct stage *stage)
{
    return ((const struct filler *)stage->state)->window;
}

int64_t batch_capacity(const struct stage *stage)
{
    return ((const struct filler *)stage->state)->capacity;
}

int64_t batch_tell(const struct stage *stage)
{
    return ((const struct filler *)stage->state)->begin;
}

static int open_batch(struct stage *stage)
{
    const struct batching *b = batching_of(stage->set);
    const struct share *share = &stage->run->share;
    int64_t all = (int64_t)share->workers * share->replicas;
    struct filler *f = stage->state = calloc(1, sizeof *f);
    size_t threads = (size_t)crew_size(stage->run->crew);

    if (!f)
        return problem_fail(HVD_ERR_MEMORY, "data set: no memory for a batch");
    if (b->global && b->size < all)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "data set: a global batch of %lld has nothing for "
                            "some of %lld replicas: use %lld or more",
                            (long long)b->size, (long long)all, (long long)all);
    f->window = window_of(b, share);
    f->capacity = b->global ? (b->size + all - 1) / all : b->size;
    f->divisor = divides(share) ? all : share->replicas;
    f->first = divides(share) ? (int64_t)share->worker * share->replicas : 0;
    f->end = -1;
    if (stage->set->inputs[0]->random) {
        f->end = stage->inputs[0]->count;
        if (!divides(share) && stage->count >= 0)
            f->end = stage->count * f->window;
        else if (b->drop && f->window > 0)
            f->end -= f->end % f->window;
    }
    for (int32_t i = 0; i < stage->set->ncomponents; i++)
        if (__builtin_mul_overflow(stage->inputs[0]->bytes[i],
                                   (size_t)(f->capacity * share->replicas),
                                   &stage->bytes[i]) ||
            stage->bytes[i] > (size_t)1 << 46)
            return problem_fail(HVD_ERR_ARGUMENT,
                                "data set: a batch of %lld is too large",
                                (long long)f->capacity);
    f->rooms = aligned_alloc(64, threads * stage->inputs[0]->room + 64);
    return f->rooms ? 0
                    : problem_fail(HVD_ERR_MEMORY,
                                   "data set: no memory for a batch");
}

static void close_batch(struct stage *stage)
{
    struct filler *f = stage->state;

    if (f)
        free(f->rooms);
}

static int begin_batch(struct stage *stage, int64_t epoch)
{
    ((struct filler *)stage->state)->begin = 0;
    return stage_begin(stage->inputs[0], epoch);
}

static int64_t restore_batch(struct stage *stage, int64_t epoch,
                             int64_t samples)
{
    struct filler *f = stage->state;
    int64_t status = stage_begin(stage->inputs[0], epoch), room = samples;

    if (status < 0)
        return status;
    stage->position = 0;
    stage->epoch = epoch;
    f->begin = samples;
    if (!stage->set->inputs[0]->random)
        room = stage_skip(stage->inputs[0], samples);
    else if (samples > stage->inputs[0]->count && samples > f->end)
        room = stage->inputs[0]->count;
    if (room < 0)
        return room;
    if (room < samples)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "data set: a position behind %lld elements of an "
                            "epoch that has %lld: it is one of other data",
                            (long long)samples, (long long)room);
    return epoch;
}

/* Sets the places of row i of replica r. */
static void find_row(const struct stage *stage, int64_t r, int64_t i,
                     void **row)
{
    const struct filler *f = stage->state;

    for (int32_t c = 0; c < stage->set->ncomponents; c++)
        row[c] = (char *)f->out[c] +
                 (size_t)(r * f->capacity + i) * stage->inputs[0]->bytes[c];
}

static int stopped(const struct stage *stage)
{
    return atomic_load_explicit(&stage->run->stop, memory_order_relaxed)
               ? problem_fail(HVD_ERR_SHUTDOWN, "data set: stopped")
               : 0;
}

/* Fills row part % capacity of a replica. */
static int fill_row(void *context, int thread, int64_t part)
{
    struct stage *stage = context;
    const struct filler *f = stage->state;
    int64_t r = part / f->capacity, i = part % f->capacity;
    const int64_t index = f->begin + i * f->divisor + f->first + r;
    void *row[HVD_MAX_COMPONENTS];

    if (i >= stage->run->replica_rows[r])
        return 0;
    if (stopped(stage) < 0)
        return HVD_ERR_SHUTDOWN;
    find_row(stage, r, i, row);
    if (i + AHEAD < stage->run->replica_rows[r])
        stage_expect(stage->inputs[0], index + AHEAD * f->divisor);
    return stage_get(stage->inputs[0], index,
                     f->rooms + (size_t)thread * stage->inputs[0]->room, row);
}

/* Sets how many rows the replicas have of n elements of a window. */
static void set_rows(struct stage *stage, int64_t n)
{
    const struct filler *f = stage->state;
    struct run *run = stage->run;

    run->rows = 0;
    for (int r = 0; r < run->share.replicas; r++) {
        run->replica_rows[r] = share_of(n, f->first + r, f->divisor);
        run->rows += run->replica_rows[r];
    }
}

static int fill_from_places(struct stage *stage)
{
    struct filler *f = stage->state;
    struct run *run = stage->run;
    int64_t left = stage->inputs[0]->count - f->begin;

    if (f->begin >= f->end ||
        (batch_drops(stage->set) && divides(&run->share) && left < f->window))
        return HVD_END_OF_DATA;
    left = left < f->window ? left : f->window;
    set_rows(stage, left);
    int status =
        crew_run(run->crew, f->capacity * run->share.replicas, fill_row, stage);
    if (status == 0)
        f->begin += divides(&run->share) ? left : f->window;
    return status;
}

/* Reads a window, of which it keeps what is this worker's. */
static int fill_from_stream(struct stage *stage)
{
    struct filler *f = stage->state;
    struct stage *input = stage->inputs[0];
    int64_t last = f->first + stage->run->share.replicas, done = 0;
    void *row[HVD_MAX_COMPONENTS];

    while (done < f->window) {
        int64_t s = done % f->divisor, wanted = 1, status = stopped(stage);

        if (status == 0 && s >= f->first && s < last) {
            find_row(stage, s - f->first, done / f->divisor, row);
            status = stage_next(input, row);
            status = status < 0 ? status : status == 0;
        } else if (status == 0) {
            wanted = s < f->first ? f->first - s : f->divisor - s;
            if (wanted > f->window - done)
                wanted = f->window - done;
            status = stage_skip(input, wanted);
        }
        if (status < 0)
            return (int)status;
        done += status;
        if (status < wanted)
            break;
    }
    if (done == 0 || (done < f->window && batch_drops(stage->set)))
        return HVD_END_OF_DATA;
    set_rows(stage, done);
    f->begin += done;
    return 0;
}

static int next_batch(struct stage *stage, void *const *out)
{
    struct filler *f = stage->state;
    struct run *run = stage->run;

    f->out = out;
    int status = stage->set->inputs[0]->random ? fill_from_places(stage)
                                               : fill_from_stream(stage);
    for (int r = 0; r < run->share.replicas && status == 0; r++) {
        void *row[HVD_MAX_COMPONENTS];
        size_t blank = (size_t)(f->capacity - run->replica_rows[r]);

        find_row(stage, r, run->replica_rows[r], row);
        for (int32_t c = 0; c < stage->set->ncomponents && blank > 0; c++)
            memset(row[c], 0, blank * stage->inputs[0]->bytes[c]);
    }
    return status;
}

const struct kind batch_kind = {.name = "batch",
                                .count = batch_steps,
                                .open = open_batch,
                                .close = close_batch,
                                .begin = begin_batch,
                                .next = next_batch,
                                .restore = restore_batch};

static hvd_dataset *make_batches(hvd_dataset *dataset,
                                 const struct batching *batching)
{
    if (dataset && dataset->batched)
        return node_fail(dataset, HVD_ERR_ARGUMENT,
                         "data set: there are batches already");
    if (batching->size < 1 || batching->size > (int64_t)1 << 32)
        return node_fail(dataset, HVD_ERR_ARGUMENT,
                         "data set: a batch of %lld elements, expected 1 to "
                         "2^32",
                         (long long)batching->size);
    hvd_dataset *set = node_make(&batch_kind, 1, &dataset, sizeof *batching);
    if (set) {
        *(struct batching *)set->parameters = *batching;
        set->batched = true;
        set->random = false;
    }
    return set;
}

hvd_dataset *hvd_dataset_batch(hvd_dataset *dataset, int64_t size,
                               int32_t drop_remainder)
{
    return make_batches(
        dataset, &(struct batching){.size = size, .drop = drop_remainder});
}

hvd_dataset *hvd_dataset_batch_global(hvd_dataset *dataset, int64_t size,
                                      int32_t drop_remainder)
{
    return make_batches(dataset, &(struct batching){.size = size,
                                                    .global = true,
                                                    .drop = drop_remainder});
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests pipelines of training data: who gets which element, in which order, and
 * where an iterator stands; for up to 17 replicas, by elements that are their
 * own number.
 */
#include <hvd_dataset.h>
#include <hvd_strategy.h>

#include "suite.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const hvd_component number = {.name = "number", .dtype = HVD_INT32};

static int32_t *new_numbers(int first, int count)
{
    int32_t *numbers = malloc((size_t)(count + 1) * sizeof *numbers);

    for (int i = 0; i < count; i++)
        numbers[i] = first + i;
    return numbers;
}

/* Elements first, first + 1, ... */
static hvd_dataset *numbers(int first, int count)
{
    int32_t *memory = new_numbers(first, count);
    const void *arrays[] = {memory};

    return hvd_dataset_memory(1, &number, arrays, count, free, memory);
}

static hvd_input_context context(int workers, int worker, int replicas,
                                 hvd_auto_shard shard)
{
    hvd_input_context c;

    hvd_input_context_init(&c, sizeof c);
    c.num_input_pipelines = workers;
    c.input_pipeline_id = worker;
    c.replicas = replicas;
    c.auto_shard = shard;
    return c;
}

static hvd_iterator *iterate(hvd_dataset *set, const hvd_input_context *c)
{
    hvd_iterator *iterator = NULL;
    int status = hvd_iterator_new(set, c, &iterator);

    ck_assert_msg(status == 0, "%s", hvd_last_error());
    return iterator;
}

/* Gets a batch: its real rows, one replica after the other. Returns how many;
 * -1: the end. Rows that are not real must be 0. */
static int get(hvd_iterator *iterator, int32_t *rows)
{
    hvd_batch batch;
    int status = hvd_iterator_next(iterator, &batch), n = 0;

    ck_assert_msg(status >= 0, "%s", hvd_last_error());
    if (status == HVD_END_OF_DATA)
        return -1;
    const int32_t *data = batch.data[0];
    ck_assert_uint_eq((uintptr_t)data % 64, 0);
    for (int r = 0; r < batch.replicas; r++)
        for (int i = 0; i < batch.capacity; i++) {
            int32_t x = data[r * batch.capacity + i];
            if (i < batch.replica_rows[r])
                rows[n++] = x;
            else
                ck_assert_int_eq(x, 0);
        }
    ck_assert_int_eq(n, batch.rows);
    return n;
}

/* Checks that the next batches are the expected ones, of size elements each but
 * the last. */
static void expect_batches(hvd_iterator *iterator, const int *expected, int n,
                           int size)
{
    int32_t rows[64];

    for (int done = 0; done < n;) {
        int count = get(iterator, rows);

        ck_assert_int_eq(count, n - done < size ? n - done : size);
        for (int i = 0; i < count; i++)
            ck_assert_int_eq(rows[i], expected[done + i]);
        done += count;
    }
    ck_assert_int_eq(get(iterator, rows), -1);
}

/* The elements of a pipeline without batches, in order. */
static void expect_elements(hvd_dataset *set, int n, const int *expected)
{
    hvd_iterator *iterator = iterate(set, NULL);

    for (int pass = 0; pass < 2; pass++)
        expect_batches(iterator, expected, n, 1);
    hvd_iterator_free(iterator);
    hvd_dataset_free(set);
}

#define EXPECT(set, ...)                                                       \
    expect_elements(set, sizeof((int[]){__VA_ARGS__}) / sizeof(int),           \
                    (int[]){__VA_ARGS__})

/* A stream of the numbers from first on. */
struct stream {
    int first, count, next, fails_at;
    bool released;
};

static int next_number(void *context, void *const *out)
{
    struct stream *s = context;

    if (s->fails_at && s->next == s->fails_at)
        return hvd_set_last_error(HVD_ERR_FILE, "the well is dry");
    if (s->next == s->count)
        return HVD_END_OF_DATA;
    *(int32_t *)out[0] = s->first + s->next++;
    return 0;
}

static int rewind_stream(void *context, int64_t epoch)
{
    ((struct stream *)context)->next = 0;
    return epoch < 0 ? HVD_ERR_ARGUMENT : 0;
}

static void release_stream(void *context)
{
    ((struct stream *)context)->released = true;
}

static hvd_dataset *stream(struct stream *s)
{
    const hvd_generator g = {next_number, rewind_stream, release_stream, s};

    return hvd_dataset_generate(1, &number, &g);
}

TEST(elements_come_in_order)
{
    struct stream s = {.first = 7, .count = 3};

    EXPECT(numbers(7, 3), 7, 8, 9);
    EXPECT(stream(&s), 7, 8, 9);
    ck_assert(s.released);
    EXPECT(hvd_dataset_take(numbers(0, 9), 3), 0, 1, 2);
    EXPECT(hvd_dataset_take(numbers(0, 2), 3), 0, 1);
    EXPECT(hvd_dataset_skip(numbers(0, 5), 3), 3, 4);
    EXPECT(hvd_dataset_shard(numbers(0, 8), 3, 1), 1, 4, 7);
    EXPECT(hvd_dataset_repeat(numbers(0, 2), 3), 0, 1, 0, 1, 0, 1);
    EXPECT(hvd_dataset_take(hvd_dataset_repeat(numbers(0, 2), -1), 3), 0, 1, 0);
    EXPECT(hvd_dataset_prefetch(numbers(0, 4), 2), 0, 1, 2, 3);
    EXPECT(hvd_dataset_cache(numbers(0, 4)), 0, 1, 2, 3);
}

TEST(streams_are_selected_in_the_same_way)
{
    struct stream s[6] = {[0 ... 5] = {.count = 8}};

    EXPECT(hvd_dataset_take(stream(&s[0]), 3), 0, 1, 2);
    EXPECT(hvd_dataset_skip(stream(&s[1]), 6), 6, 7);
    EXPECT(hvd_dataset_shard(stream(&s[2]), 3, 2), 2, 5);
    EXPECT(hvd_dataset_cache(hvd_dataset_skip(stream(&s[3]), 5)), 5, 6, 7);
    EXPECT(hvd_dataset_skip(hvd_dataset_repeat(stream(&s[4]), 2), 12), 4, 5, 6,
           7);
    s[5].count = 0;
    hvd_dataset *set = hvd_dataset_repeat(stream(&s[5]), -1);
    hvd_iterator *it = iterate(set, NULL);
    ck_assert_int_eq(get(it, (int32_t[1]){0}), -1); /* not for ever */
    hvd_iterator_free(it);
    hvd_dataset_free(set);
}

TEST(data_sets_are_joined)
{
    struct stream s[3] = {
        {.count = 3}, {.first = 10, .count = 1}, {.first = 20, .count = 4}};
    hvd_dataset *a[] = {numbers(0, 3), numbers(10, 1), numbers(20, 4)};
    hvd_dataset *b[] = {stream(&s[0]), stream(&s[1]), stream(&s[2])};
    hvd_dataset *c[] = {numbers(0, 3), numbers(10, 1), numbers(20, 4)};
    hvd_dataset *d[] = {numbers(0, 3), numbers(10, 0), numbers(20, 1)};

    EXPECT(hvd_dataset_concatenate(3, a), 0, 1, 2, 10, 20, 21, 22, 23);
    EXPECT(hvd_dataset_interleave(3, b, 2, 1), 0, 10, 1, 2, 20, 21, 22, 23);
    EXPECT(hvd_dataset_interleave(3, c, 2, 1), 0, 10, 1, 2, 20, 21, 22, 23);
    EXPECT(hvd_dataset_interleave(3, d, 3, 2), 0, 1, 20, 2);
}

TEST(zip_has_the_components_of_all)
{
    const hvd_component other = {"other", HVD_INT32, 0, {0}};
    int32_t values[] = {5, 6, 7, 8};
    const void *arrays[] = {values};
    hvd_dataset *both[] = {
        numbers(0, 3), hvd_dataset_memory(1, &other, arrays, 4, NULL, NULL)};
    hvd_iterator *it;
    hvd_batch batch;
    int32_t n;

    hvd_dataset *set = hvd_dataset_batch(hvd_dataset_zip(2, both), 2, 0);
    ck_assert_ptr_nonnull(hvd_dataset_components(set, &n));
    ck_assert_int_eq(n, 2);
    ck_assert_int_eq(hvd_dataset_count(set), 2);
    it = iterate(set, NULL);
    ck_assert_int_eq(hvd_iterator_next(it, &batch), 0);
    ck_assert_int_eq(((int32_t *)batch.data[1])[1], 6);
    ck_assert_int_eq(batch.components[1].ndim, 1);
    ck_assert_int_eq(batch.components[1].shape[0], 2);
    hvd_iterator_free(it);
    hvd_dataset_free(set);
}

/* Step k of n replicas with batch b has the elements of step k of one with n b,
 * from the permutation of hvd_shuffle. */
LOOP_TEST(batches_of_all_make_one_large_batch, 1, 18)
{
    enum { COUNT = 500, BATCH = 5 };
    int64_t order[COUNT];
    int replicas = _i % 3 + 1, workers = _i, all = workers * replicas;

    for (int epoch = 0; epoch < 2; epoch++) {
        bool used[COUNT] = {false};

        ck_assert_int_eq(hvd_shuffle(COUNT, 11, epoch, order), 0);
        for (int w = 0; w < workers; w++) {
            hvd_input_context c = context(workers, w, replicas, 0);
            hvd_dataset *set = hvd_dataset_batch(
                hvd_dataset_shuffle(numbers(0, COUNT), 11, 0), BATCH, 1);
            hvd_iterator *it = iterate(set, &c);
            const hvd_position start = {sizeof start, 0, 11, epoch, 0};
            int32_t rows[BATCH * 3];
            int steps = COUNT / (BATCH * all);

            ck_assert_int_eq(hvd_iterator_steps(it), steps);
            ck_assert_int_eq(hvd_iterator_restore(it, &start), 0);
            for (int t = 0; t < steps; t++) {
                ck_assert_int_eq(get(it, rows), BATCH * replicas);
                for (int r = 0; r < replicas; r++)
                    for (int i = 0; i < BATCH; i++) {
                        int place =
                            t * BATCH * all + i * all + w * replicas + r;
                        int x = rows[r * BATCH + i];

                        ck_assert_int_eq(x, order[place]);
                        ck_assert(!used[x]);
                        used[x] = true;
                    }
            }
            ck_assert_int_eq(get(it, rows), -1);
            hvd_iterator_free(it);
            hvd_dataset_free(set);
        }
    }
}

/* The elements that all workers use in each step, as a bit a number. */
static int64_t steps_of(bool from_stream, int workers, int replicas, int global,
                        int drop, int count, int *used)
{
    int64_t steps = -1;

    for (int w = 0; w < workers; w++) {
        hvd_input_context c = context(workers, w, replicas, HVD_SHARD_DATA);
        struct stream s = {.count = count};
        hvd_dataset *set = hvd_dataset_batch_global(
            from_stream ? stream(&s) : numbers(0, count), global, drop);
        hvd_iterator *it = iterate(set, &c);
        int32_t rows[64];
        int64_t step = 0;
        int n;

        for (; (n = get(it, rows)) >= 0; step++)
            for (int i = 0; i < n; i++) {
                ck_assert_int_eq(rows[i] / global, step);
                used[rows[i]]++;
            }
        ck_assert(steps < 0 || step == steps);
        steps = step;
        hvd_iterator_free(it);
        hvd_dataset_free(set);
    }
    return steps;
}

LOOP_TEST(a_global_batch_is_divided, 0, 24)
{
    enum { COUNT = 53, GLOBAL = 17 };
    int used[COUNT] = {0}, workers = _i % 6 + 1, replicas = _i % 2 + 1;
    int drop = _i / 12 % 2;
    int64_t steps =
        steps_of(_i & 4, workers, replicas, GLOBAL, drop, COUNT, used);

    ck_assert_int_eq(steps, drop ? 3 : 4);
    for (int i = 0; i < COUNT; i++)
        ck_assert_int_eq(used[i], i < 51 || !drop);
}

TEST(shares_of_a_global_batch_are_those_of_the_reference)
{
    for (int mode = HVD_SHARD_OFF; mode <= HVD_SHARD_AUTO; mode++)
        for (int w = 0; w < 2; w++) {
            hvd_input_context c = context(2, w, 2, mode);
            hvd_dataset *set = hvd_dataset_batch_global(numbers(0, 14), 7, 1);
            hvd_iterator *it = iterate(set, &c);
            hvd_batch batch;

            ck_assert_int_eq(hvd_iterator_next(it, &batch), 0);
            ck_assert_int_eq(batch.replica_rows[0], 2);
            ck_assert_int_eq(batch.replica_rows[1], w ? 1 : 2);
            ck_assert_int_eq(batch.capacity, 2);
            hvd_iterator_free(it);
            hvd_dataset_free(set);
        }
}

static hvd_dataset *two_files(void)
{
    hvd_dataset *files[] = {numbers(0, 10), numbers(100, 5)};

    return hvd_dataset_batch(hvd_dataset_concatenate(2, files), 4, 0);
}

LOOP_TEST(files_are_divided_in_equal_steps, 0, 2)
{
    static const int joined[2][4] = {{4, 4, 2, -1}, {4, 1, 0, -1}};

    for (int w = 0; w < 2; w++) {
        hvd_input_context c = context(2, w, 1, HVD_SHARD_AUTO);
        hvd_dataset *set = two_files();
        int32_t rows[8];

        c.uneven = _i ? HVD_UNEVEN_JOIN : HVD_UNEVEN_DROP;
        hvd_iterator *it = iterate(set, &c);
        ck_assert_int_eq(hvd_iterator_steps(it), _i ? 3 : 2);
        for (int epoch = 0; epoch < 2; epoch++)
            for (int t = 0; t < 4; t++) {
                if (!_i && t == 2)
                    t = 3;
                int n = get(it, rows);
                ck_assert_int_eq(n, joined[w][t]);
                for (int i = 0; i < n; i++)
                    ck_assert_int_eq(rows[i], w * 100 + t * 4 + i);
            }
        hvd_iterator_free(it);
        hvd_dataset_free(set);
    }
}

TEST(descriptions_say_how_data_is_divided)
{
    hvd_input_context c = context(2, 0, 1, HVD_SHARD_AUTO);
    hvd_dataset *a = hvd_dataset_batch(numbers(0, 100), 32, 1);
    hvd_iterator *it = iterate(a, &c);

    ck_assert_str_eq(hvd_iterator_description(it),
                     "100 elements by element on 2 workers: batches of 32 (64 "
                     "of all), 1 steps, 36 elements dropped");
    hvd_iterator_free(it);
    hvd_dataset_free(a);
    a = two_files();
    it = iterate(a, &c);
    ck_assert_str_eq(hvd_iterator_description(it),
                     "10 elements of files of its own on 2 workers: batches of "
                     "4, 2 steps, 2 elements dropped");
    hvd_iterator_free(it);
    hvd_dataset_free(a);
}

/* -------------------------------------------------------------- positions */

static hvd_dataset *pipeline(int kind, int global)
{
    struct stream *s = calloc(1, sizeof *s);
    const hvd_generator g = {next_number, rewind_stream, free, s};
    hvd_dataset *d =
        kind == 2 ? hvd_dataset_generate(1, &number, &g) : numbers(0, 60);

    s->count = 60;
    if (kind != 2)
        free(s);
    d = hvd_dataset_shuffle(d, 5, kind == 0 || kind == 3 ? 0 : 16);
    if (kind == 3)
        d = hvd_dataset_repeat(d, 3);
    d = hvd_dataset_batch_global(d, global, 1);
    if (kind != 3)
        d = hvd_dataset_repeat(d, kind == 1 ? 3 : -1);
    return hvd_dataset_prefetch(d, 1 + kind);
}

/* Elements of the next step of all workers, sorted. */
static void step_of_all(hvd_iterator **its, int workers, int *all)
{
    for (int w = 0; w < workers; w++) {
        int32_t rows[64];
        int n = get(its[w], rows);

        ck_assert_int_ge(n, 0);
        for (int i = 0; i < n; i++)
            *all++ = rows[i];
    }
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Runs some steps on some workers, and goes on with other numbers of them: as
 * without the change. */
LOOP_TEST(a_position_holds_for_any_number_of_workers, 0, 4)
{
    enum { GLOBAL = 12, STEPS = 14 };
    static const int worlds[] = {1, 4, 3, 8, 1};
    hvd_dataset *alone = pipeline(_i, GLOBAL);
    hvd_iterator *reference = iterate(alone, NULL);
    hvd_position position = {sizeof position, 0, 5, 0, 0};

    for (int phase = 0; phase < 5; phase++) {
        int workers = worlds[phase];
        hvd_dataset *sets[8];
        hvd_iterator *its[8];

        for (int w = 0; w < workers; w++) {
            hvd_input_context c = context(workers, w, 1, HVD_SHARD_AUTO);

            sets[w] = pipeline(_i, GLOBAL);
            its[w] = iterate(sets[w], &c);
            ck_assert_msg(hvd_iterator_restore(its[w], &position) == 0, "%s",
                          hvd_last_error());
        }
        for (int t = 0; t < STEPS / 5; t++) {
            int all[GLOBAL], expected[GLOBAL];
            int32_t rows[GLOBAL];

            step_of_all(its, workers, all);
            ck_assert_int_eq(get(reference, rows), GLOBAL);
            for (int i = 0; i < GLOBAL; i++)
                expected[i] = rows[i];
            qsort(all, GLOBAL, sizeof *all, ascending);
            qsort(expected, GLOBAL, sizeof *expected, ascending);
            ck_assert_mem_eq(all, expected, sizeof all);
        }
        for (int w = 0; w < workers; w++) {
            hvd_position mine;

            ck_assert_int_eq(hvd_iterator_position(its[w], &mine), 0);
            ck_assert(w == 0 || (mine.epoch == position.epoch &&
                                 mine.samples == position.samples));
            position = mine;
            hvd_iterator_free(its[w]);
            hvd_dataset_free(sets[w]);
        }
        ck_assert_int_eq(position.workers, 0);
    }
    hvd_iterator_free(reference);
    hvd_dataset_free(alone);
}

/* The batch per replica stays, and the global batch changes: windows begin
 * where the others ended. */
TEST(a_position_holds_when_the_global_batch_changes)
{
    hvd_dataset *set = hvd_dataset_batch(numbers(0, 100), 3, 0);
    hvd_position position = {sizeof position, 0, 0, 0, 0};
    int32_t rows[64];
    int next = 0;

    for (int workers = 5; workers > 0; workers--)
        for (int w = 0; w < workers; w++) {
            hvd_input_context c = context(workers, w, 1, HVD_SHARD_DATA);
            hvd_iterator *it = iterate(set, &c);

            ck_assert_int_eq(hvd_iterator_restore(it, &position), 0);
            ck_assert_int_eq(get(it, rows), 3);
            for (int i = 0; i < 3; i++)
                ck_assert_int_eq(rows[i], next + i * workers + w);
            if (w == workers - 1) {
                hvd_iterator_position(it, &position);
                next += 3 * workers;
                ck_assert_int_eq(position.samples, next);
            }
            hvd_iterator_free(it);
        }
    hvd_dataset_free(set);
}

TEST(a_position_at_an_end_is_the_next_epochs_begin)
{
    hvd_dataset *set =
        hvd_dataset_batch(hvd_dataset_shuffle(numbers(0, 8), 3, 0), 4, 1);
    hvd_iterator *it = iterate(set, NULL), *other = iterate(set, NULL);
    hvd_position position;
    int32_t rows[4], again[4];

    get(it, rows);
    get(it, rows);
    hvd_iterator_position(it, &position);
    ck_assert_int_eq(position.epoch, 0);
    ck_assert_int_eq(position.samples, 8);
    ck_assert_int_eq(hvd_iterator_restore(other, &position), 0);
    ck_assert_int_eq(get(other, again), -1);
    ck_assert_int_eq(get(it, rows), -1);
    hvd_iterator_position(it, &position);
    ck_assert_int_eq(position.epoch, 1);
    ck_assert_int_eq(position.samples, 0);
    ck_assert_int_eq(hvd_iterator_restore(other, &position), 0);
    get(it, rows);
    get(other, again);
    ck_assert_mem_eq(rows, again, sizeof rows);
    hvd_iterator_free(it);
    hvd_iterator_free(other);
    hvd_dataset_free(set);
}

static void expect_failure(int status, const char *text)
{
    ck_assert_int_lt(status, 0);
    ck_assert_msg(strstr(hvd_last_error(), text), "%s", hvd_last_error());
}

TEST(positions_of_other_data_are_refused)
{
    hvd_dataset *set =
        hvd_dataset_batch(hvd_dataset_shuffle(numbers(0, 8), 3, 0), 4, 1);
    hvd_iterator *it = iterate(set, NULL);
    hvd_position p = {sizeof p, 0, 4, 0, 0};
    int32_t rows[4];

    expect_failure(hvd_iterator_restore(it, &p), "seed 4");
    p = (hvd_position){sizeof p, 0, 3, 0, 9};
    expect_failure(hvd_iterator_restore(it, &p), "of other data");
    p = (hvd_position){sizeof p, 0, 3, -1, 0};
    expect_failure(hvd_iterator_restore(it, &p), "no position");
    p = (hvd_position){0, 0, 3, 0, 0};
    expect_failure(hvd_iterator_restore(it, &p), "no position");
    p = (hvd_position){sizeof p, 2, 3, 0, 0};
    expect_failure(hvd_iterator_restore(it, &p), "2 workers");
    ck_assert_int_eq(get(it, rows), 4); /* it goes on */
    hvd_iterator_free(it);
    hvd_dataset_free(set);
}

/* ------------------------------------------------------- threads, functions */

static int square(void *context, const void *const *in, void *const *out)
{
    int32_t x = *(const int32_t *)in[0];

    if (context)
        atomic_fetch_add((atomic_int *)context, 1);
    if (x == 1000)
        return hvd_set_last_error(HVD_ERR_FILE, "no thousand");
    *(float *)out[0] = (float)(x * x);
    return 0;
}

LOOP_TEST(map_keeps_the_order, 0, 8)
{
    const hvd_component squared = {"square", HVD_FLOAT32, 0, {0}};
    struct stream s = {.count = 103};
    atomic_int calls = 0;
    int threads = _i % 4 + 1;
    hvd_dataset *set = hvd_dataset_map(_i < 4 ? stream(&s) : numbers(0, 103), 1,
                                       &squared, square, &calls, threads);
    hvd_batch batch;

    set = hvd_dataset_prefetch(hvd_dataset_batch(set, 10, 0), 2);
    hvd_iterator *it = iterate(set, NULL);
    for (int t = 0, x = 0; t < 11; t++) {
        ck_assert_int_eq(hvd_iterator_next(it, &batch), 0);
        for (int i = 0; i < batch.rows; i++, x++)
            ck_assert(((float *)batch.data[0])[i] == (float)(x * x));
    }
    ck_assert_int_eq(hvd_iterator_next(it, &batch), HVD_END_OF_DATA);
    hvd_iterator_free(it);
    ck_assert_int_ge(atomic_load(&calls), 103);
    hvd_dataset_free(set);
}

LOOP_TEST(failures_come_out_of_threads, 0, 4)
{
    const hvd_component squared = {"square", HVD_FLOAT32, 0, {0}};
    struct stream s = {.first = 990, .count = 40};
    hvd_dataset *set = hvd_dataset_map(_i % 2 ? stream(&s) : numbers(990, 40),
                                       1, &squared, square, NULL, 3);
    hvd_batch batch;
    int status = 0;

    set = hvd_dataset_batch(set, 4, 0);
    if (_i > 1)
        set = hvd_dataset_prefetch(set, 3);
    hvd_iterator *it = iterate(set, NULL);
    while (status == 0)
        status = hvd_iterator_next(it, &batch);
    for (int again = 0; again < 3; again++) {
        ck_assert_int_eq(status, HVD_ERR_FILE);
        ck_assert_str_eq(hvd_last_error(),
                         "data set: map of element 10: no thousand");
        status = hvd_iterator_next(it, &batch);
    }
    hvd_iterator_free(it);
    hvd_dataset_free(set);
}

TEST(failures_of_a_generator_say_where)
{
    struct stream s = {.count = 9, .fails_at = 5};
    hvd_dataset *set = hvd_dataset_prefetch(stream(&s), 4);
    hvd_iterator *it = iterate(set, NULL);
    int32_t rows[1];
    hvd_batch batch;

    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(get(it, rows), 1);
    expect_failure(hvd_iterator_next(it, &batch),
                   "generator, element 5 of epoch 0: the well is dry");
    hvd_iterator_free(it);
    hvd_dataset_free(set);
}

TEST(a_generator_without_rewind_has_one_epoch)
{
    struct stream s = {.count = 2};
    const hvd_generator g = {.next = next_number, .context = &s};
    hvd_dataset *set = hvd_dataset_generate(1, &number, &g);
    hvd_iterator *it = iterate(set, NULL);
    int32_t rows[1];
    hvd_batch batch;

    expect_batches(it, (int[]){0, 1}, 2, 1);
    expect_failure(hvd_iterator_next(it, &batch), "cannot rewind");
    hvd_iterator_free(it);
    s.next = 0;
    set = hvd_dataset_shuffle(hvd_dataset_cache(set), 1, 0);
    ck_assert_int_eq(hvd_dataset_count(set), -1); /* nobody has read it */
    it = iterate(set, NULL);
    ck_assert_int_eq(hvd_dataset_count(set), 2);
    ck_assert_int_eq(get(it, rows) + get(it, rows), 2);
    ck_assert_int_eq(get(it, rows), -1);
    ck_assert_int_eq(get(it, rows), 1);
    hvd_iterator_free(it);
    hvd_dataset_free(set);
}

/* Threads end wherever they are. */
LOOP_TEST(iterators_end_at_once, 0, 20)
{
    struct stream s = {.count = 1000000};
    hvd_dataset *set = hvd_dataset_prefetch(
        hvd_dataset_batch(hvd_dataset_repeat(stream(&s), -1), 7, 1), 5);
    hvd_iterator *it = iterate(set, NULL);
    int32_t rows[7];

    for (int i = 0; i < _i; i++)
        get(it, rows);
    if (_i % 2)
        usleep(100);
    hvd_iterator_free(it);
    hvd_dataset_free(set);
}

/* A buffer of n moves an element at most n - 1 places to the front. */
TEST(a_buffer_shuffles_near_places)
{
    struct stream s = {.count = 1000};
    hvd_dataset *set = hvd_dataset_shuffle(stream(&s), 3, 20);
    hvd_iterator *it = iterate(set, NULL);
    bool used[1000] = {false};
    int32_t row, moved = 0;

    for (int i = 0; i < 1000; i++) {
        ck_assert_int_eq(get(it, &row), 1);
        ck_assert(!used[row]);
        ck_assert_int_le(row, i + 19);
        used[row] = true;
        moved += row != i;
    }
    ck_assert_int_gt(moved, 800);
    ck_assert_int_eq(get(it, &row), -1);
    hvd_iterator_free(it);
    hvd_dataset_free(set);
}

TEST(numbers_are_cast)
{
    const hvd_component c = {"x", HVD_UINT8, 1, {3}};
    uint8_t bytes[] = {0, 1, 255, 7, 8, 9};
    const void *arrays[] = {bytes};
    hvd_dataset *raw = hvd_dataset_memory(1, &c, arrays, 2, NULL, NULL);
    hvd_dataset *set = hvd_dataset_cast(raw, "x", HVD_FLOAT32, 255);
    const int64_t shape[] = {1, 3};
    hvd_batch batch;

    set = hvd_dataset_reshape(set, "x", 2, shape);
    hvd_iterator *it = iterate(set = hvd_dataset_batch(set, 2, 1), NULL);
    ck_assert_int_eq(hvd_iterator_next(it, &batch), 0);
    for (int i = 0; i < 6; i++)
        ck_assert(((float *)batch.data[0])[i] == (float)bytes[i] / 255.0F);
    ck_assert_int_eq(batch.components[0].ndim, 3);
    hvd_iterator_free(it);
    hvd_dataset_free(set);

    set = hvd_dataset_cast(numbers(250, 9), "number", HVD_UINT8, 1);
    it = iterate(set, NULL);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(hvd_iterator_next(it, &batch), 0);
    expect_failure(hvd_iterator_next(it, &batch),
                   "\"number\" of element 6: 256 is beyond the range of uint8");
    hvd_iterator_free(it);
    hvd_dataset_free(set);
}

LOOP_TEST(batches_go_into_buffers, 0, 2)
{
    hvd_dataset *set = hvd_dataset_batch(numbers(0, 5), 2, 0);
    int32_t buffer[2], expected[][2] = {{0, 1}, {2, 3}, {4, 0}};
    hvd_batch batch;

    if (_i)
        set = hvd_dataset_prefetch(set, 2);
    hvd_iterator *it = iterate(set, NULL);
    for (int t = 0; t < 3; t++) {
        ck_assert_int_eq(hvd_iterator_next_into(it, (void *[]){buffer}, &batch),
                         0);
        ck_assert_ptr_eq(batch.data[0], buffer);
        ck_assert_mem_eq(buffer, expected[t], sizeof buffer);
    }
    ck_assert_int_eq(hvd_iterator_next_into(it, (void *[]){buffer}, &batch),
                     HVD_END_OF_DATA);
    expect_failure(hvd_iterator_next_into(it, (void *[]){NULL}, &batch),
                   "a buffer");
    hvd_iterator_free(it);
    hvd_dataset_free(set);
}

static hvd_dataset *wrong(int which)
{
    const int64_t shape[] = {2};
    hvd_dataset *two[] = {
        numbers(0, 2),
        hvd_dataset_cast(numbers(0, 2), "number", HVD_FLOAT32, 1)};
    static struct stream s = {.count = 1};
    hvd_dataset *made;

    switch (which) {
    case 0:
        made = hvd_dataset_concatenate(2, two);
        two[0] = two[1] = NULL;
        break;
    case 1: made = hvd_dataset_take(numbers(0, 1), -1); break;
    case 2: made = hvd_dataset_shard(numbers(0, 1), 2, 2); break;
    case 3: made = hvd_dataset_shuffle(stream(&s), 0, 0); break;
    case 4: made = hvd_dataset_batch(numbers(0, 1), 0, 0); break;
    case 5: made = hvd_dataset_cast(numbers(0, 1), "x", HVD_FLOAT32, 1); break;
    case 6:
        made = hvd_dataset_cast(numbers(0, 1), "number", HVD_BOOL, 1);
        break;
    case 7:
        made = hvd_dataset_reshape(numbers(0, 1), "number", 1, shape);
        break;
    case 8:
        made =
            hvd_dataset_shuffle(hvd_dataset_batch(numbers(0, 1), 1, 1), 1, 0);
        break;
    case 9: made = hvd_dataset_repeat(numbers(0, 1), -2); break;
    case 10: made = hvd_dataset_prefetch(numbers(0, 1), 0); break;
    case 11:
        made = hvd_dataset_zip(2, two);
        two[0] = two[1] = NULL;
        break;
    case 12:
        made = hvd_dataset_cache(hvd_dataset_repeat(numbers(0, 1), -1));
        break;
    default: made = hvd_dataset_memory(1, &number, NULL, 2, NULL, NULL); break;
    }
    hvd_dataset_free(two[0]);
    hvd_dataset_free(two[1]);
    return made;
}

LOOP_TEST(wrong_pipelines_are_refused, 0, 14)
{
    static const char *const texts[] = {"data set 1 has other components",
                                        "-1 elements cannot be taken",
                                        "no shard 2 of 2",
                                        "give the shuffle a buffer",
                                        "a batch of 0",
                                        "no component \"x\"",
                                        "from int32 to bool",
                                        "from 1 numbers to 2",
                                        "shuffle comes before batch",
                                        "-2 times",
                                        "prefetch of 0",
                                        "two components are called \"number\"",
                                        "repeated for ever cannot be cached",
                                        "the array of \"number\" is NULL"};
    hvd_iterator *iterator = NULL;
    hvd_dataset *set = wrong(_i);

    ck_assert_ptr_null(set);
    /* The chain goes on, and the first failure stays. */
    set = hvd_dataset_prefetch(hvd_dataset_batch(set, 1, 1), 2);
    ck_assert_ptr_null(set);
    expect_failure(hvd_iterator_new(set, NULL, &iterator), texts[_i]);
}

TEST(wrong_contexts_are_refused)
{
    hvd_dataset *plain = numbers(0, 9), *files = two_files();
    hvd_input_context c = context(3, 0, 1, HVD_SHARD_FILE);
    hvd_iterator *it = NULL;

    expect_failure(hvd_iterator_new(files, &c, &it),
                   "3 workers need a file each, and there are 2");
    expect_failure(hvd_iterator_new(plain, &c, &it), "3 workers need a file");
    c = context(2, 2, 1, 0);
    expect_failure(hvd_iterator_new(files, &c, &it), "pipeline 2 of 2");
    c = context(2, 1, 1, 0);
    expect_failure(hvd_iterator_new(plain, &c, &it), "use hvd_dataset_batch");
    c.size = 3;
    expect_failure(hvd_iterator_new(plain, &c, &it), "hvd_input_context_init");
    plain = hvd_dataset_batch_global(plain, 3, 1);
    c = context(2, 0, 2, 0);
    expect_failure(hvd_iterator_new(plain, &c, &it), "use 4 or more");
    hvd_dataset_free(plain);
    hvd_dataset_free(files);
}

TEST(the_benchmark_has_the_form_of_the_reference)
{
    hvd_dataset *set = hvd_dataset_batch(numbers(0, 64), 16, 1);
    char *json = NULL;

    ck_assert_int_eq(hvd_dataset_benchmark(set, 2, 100, &json), 0);
    ck_assert_ptr_eq(strstr(json, "{\"epochs\":[{\"bandwidth\":"), json);
    ck_assert_ptr_nonnull(strstr(json, "\"total_bytes_processed\":6400.0}"));
    free(json);
    hvd_dataset_free(set);
    set = hvd_dataset_batch(numbers(0, 3), 16, 1);
    expect_failure(hvd_dataset_benchmark(set, 1, 1, &json), "does not fill");
    hvd_dataset_free(set);
}

TEST_MAIN("train_dataset", .seconds = 60)

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests pipelines of training data on several workers: who gets which element,
 * and where an iterator stands; for up to 17 workers.
 */
#include "numbers.h"

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
            discard(it, set);
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
        discard(it, set);
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
            discard(it, set);
        }
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
        discard(it, set);
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
    discard(it, a);
    a = two_files();
    it = iterate(a, &c);
    ck_assert_str_eq(hvd_iterator_description(it),
                     "10 elements of files of its own on 2 workers: batches of "
                     "4, 2 steps, 2 elements dropped");
    discard(it, a);
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
    discard(reference, alone);
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
    discard(other, set);
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
    discard(it, set);
}

TEST_MAIN("train_dataset_shares", .seconds = 60)

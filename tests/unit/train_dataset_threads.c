/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests pipelines of training data whose functions, generators and prefetched
 * batches run on threads of their own.
 */
#include "numbers.h"

#include <stdatomic.h>
#include <unistd.h>

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
    discard(it, set);
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
    discard(it, set);
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
    discard(it, set);
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
    discard(it, set);
}

/* Waits until a map was called so often: other things may use all cores. */
static void wait_for_calls(atomic_int *calls, int n)
{
    for (int ms = 0; atomic_load(calls) < n; ms++) {
        ck_assert_int_lt(ms, 20000);
        usleep(1000);
    }
    ck_assert_int_eq(atomic_load(calls), n);
}

/* The caller never has to wake the thread: half of the batches ahead are always
 * left. */
TEST(the_thread_fills_what_is_free_by_itself)
{
    const hvd_component squared = {"square", HVD_FLOAT32, 0, {0}};
    struct stream s = {.count = 1000};
    atomic_int calls = 0;
    hvd_dataset *set =
        hvd_dataset_map(stream(&s), 1, &squared, square, &calls, 1);
    hvd_batch batch;

    set = hvd_dataset_prefetch(hvd_dataset_batch(set, 1, 0), 16);
    hvd_iterator *it = iterate(set, NULL);
    for (int taken = 0; taken < 40;) {
        for (int i = 0; i < 8; i++, taken++) {
            ck_assert_int_eq(hvd_iterator_next(it, &batch), 0);
            ck_assert(*(float *)batch.data[0] == (float)(taken * taken));
        }
        /* It has the batch in use and 16 ahead. */
        wait_for_calls(&calls, taken + 16);
    }
    discard(it, set);
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
    discard(it, set);
}

TEST_MAIN("train_dataset_threads", .seconds = 60)

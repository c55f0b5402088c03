/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numbers.h - data sets whose elements are their own number, in memory and
 * from a generator, for tests of pipelines of data.
 */
#ifndef HVD_TESTS_NUMBERS_H
#define HVD_TESTS_NUMBERS_H

#include <hvd_dataset.h>
#include <hvd_strategy.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

static const hvd_component number = {.name = "number", .dtype = HVD_INT32};

static inline int32_t *new_numbers(int first, int count)
{
    int32_t *numbers = malloc((size_t)(count + 1) * sizeof *numbers);

    for (int i = 0; i < count; i++)
        numbers[i] = first + i;
    return numbers;
}

/* Elements first, first + 1, ... */
static inline hvd_dataset *numbers(int first, int count)
{
    int32_t *memory = new_numbers(first, count);
    const void *arrays[] = {memory};

    return hvd_dataset_memory(1, &number, arrays, count, free, memory);
}

static inline hvd_input_context context(int workers, int worker, int replicas,
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

static inline hvd_iterator *iterate(hvd_dataset *set,
                                    const hvd_input_context *c)
{
    hvd_iterator *iterator = NULL;
    int status = hvd_iterator_new(set, c, &iterator);

    ck_assert_msg(status == 0, "%s", hvd_last_error());
    return iterator;
}

/* Gets a batch: its real rows, one replica after the other. Returns how many;
 * -1: the end. Rows that are not real must be 0. */
static inline int get(hvd_iterator *iterator, int32_t *rows)
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

/* Frees an iterator and its data set. */
static inline void discard(hvd_iterator *iterator, hvd_dataset *set)
{
    hvd_iterator_free(iterator);
    hvd_dataset_free(set);
}

/* Checks that the next batches are the expected ones, of size elements each but
 * the last. */
static inline void expect_batches(hvd_iterator *iterator, const int *expected,
                                  int n, int size)
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

/* A stream of the numbers from first on. */
struct stream {
    int first, count, next, fails_at;
    bool released;
};

static inline int next_number(void *context, void *const *out)
{
    struct stream *s = context;

    if (s->fails_at && s->next == s->fails_at)
        return hvd_set_last_error(HVD_ERR_FILE, "the well is dry");
    if (s->next == s->count)
        return HVD_END_OF_DATA;
    *(int32_t *)out[0] = s->first + s->next++;
    return 0;
}

static inline int rewind_stream(void *context, int64_t epoch)
{
    ((struct stream *)context)->next = 0;
    return epoch < 0 ? HVD_ERR_ARGUMENT : 0;
}

static inline void release_stream(void *context)
{
    ((struct stream *)context)->released = true;
}

static inline hvd_dataset *stream(struct stream *s)
{
    const hvd_generator g = {next_number, rewind_stream, release_stream, s};

    return hvd_dataset_generate(1, &number, &g);
}

/* Two files of 10 and 5 elements, in batches of 4. */
static inline hvd_dataset *two_files(void)
{
    hvd_dataset *files[] = {numbers(0, 10), numbers(100, 5)};

    return hvd_dataset_batch(hvd_dataset_concatenate(2, files), 4, 0);
}

static inline void expect_failure(int status, const char *text)
{
    ck_assert_int_lt(status, 0);
    ck_assert_msg(strstr(hvd_last_error(), text), "%s", hvd_last_error());
}

#endif

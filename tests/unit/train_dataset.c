/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests pipelines of training data: which elements come, in which order, and
 * which pipelines are refused.
 */
#include "numbers.h"

/* The elements of a pipeline without batches, in order. */
static void expect_elements(hvd_dataset *set, int n, const int *expected)
{
    hvd_iterator *iterator = iterate(set, NULL);

    for (int pass = 0; pass < 2; pass++)
        expect_batches(iterator, expected, n, 1);
    discard(iterator, set);
}

#define EXPECT(set, ...)                                                       \
    expect_elements(set, sizeof((int[]){__VA_ARGS__}) / sizeof(int),           \
                    (int[]){__VA_ARGS__})

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
    discard(it, set);
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
    discard(it, set);
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
    discard(it, set);
}

/* Whatever way there is to divide, the bits are those of a division. */
LOOP_TEST(bytes_are_divided_exactly, 0, 8)
{
    static const float divisors[] = {255,   256,    1,      3,
                                     127.5, -59.3F, 1e-38F, 1e38F};
    const hvd_component c = {"x", HVD_UINT8, 1, {256}};
    uint8_t bytes[256];
    const void *arrays[] = {bytes};
    hvd_batch batch;

    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    hvd_dataset *set =
        hvd_dataset_cast(hvd_dataset_memory(1, &c, arrays, 1, NULL, NULL), "x",
                         HVD_FLOAT32, (double)divisors[_i]);
    hvd_iterator *it = iterate(set = hvd_dataset_batch(set, 1, 1), NULL);
    ck_assert_int_eq(hvd_iterator_next(it, &batch), 0);
    for (int i = 0; i < 256; i++) {
        const float exact = (float)i / divisors[_i];

        ck_assert_mem_eq(&((float *)batch.data[0])[i], &exact, sizeof exact);
    }
    discard(it, set);
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
    discard(it, set);

    set = hvd_dataset_cast(numbers(250, 9), "number", HVD_UINT8, 1);
    it = iterate(set, NULL);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(hvd_iterator_next(it, &batch), 0);
    expect_failure(hvd_iterator_next(it, &batch),
                   "\"number\" of element 6: 256 is beyond the range of uint8");
    discard(it, set);
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

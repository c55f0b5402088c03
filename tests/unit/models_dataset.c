/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks which rank trains on which image, for up to 17 ranks, by images that
 * carry their own number in their first pixels.
 */
#include "mnist/dataset.h"
#include "output/problem.h"

#include "suite.h"

#include <string.h>

enum { MOST_RANKS = 17 };

/* count images; number i is written in base 256 in the first two pixels. */
static struct images numbered(int count)
{
    struct images images = {.count = count,
                            .pixels = calloc((size_t)count, IMAGE_PIXELS),
                            .labels = calloc((size_t)count, 1)};

    for (int i = 0; i < count; i++) {
        images.pixels[i * IMAGE_PIXELS] = (uint8_t)(i / 256);
        images.pixels[i * IMAGE_PIXELS + 1] = (uint8_t)(i % 256);
        images.labels[i] = (uint8_t)(i % CLASSES);
    }
    return images;
}

static int number_of(const float *pixels)
{
    return (int)(pixels[0] * 255 + 0.5F) * 256 + (int)(pixels[1] * 255 + 0.5F);
}

static struct dataset make(int train, int test, int rank, int size, int batch)
{
    struct images a = numbered(train), b = numbered(test);
    struct dataset dataset;

    ck_assert_int_eq(dataset_init(&dataset, &a, &b, rank, size, 1, batch, 11),
                     0);
    ck_assert_ptr_null(a.pixels);
    ck_assert_ptr_null(b.pixels);
    return dataset;
}

/* Fills the arrays with the batch of one step of one epoch, which may follow
 * any other. */
static void fill(struct dataset *dataset, int64_t epoch, int64_t step,
                 float *pixels, int32_t *labels)
{
    int64_t first = epoch * dataset_steps(dataset);

    ck_assert_int_eq(dataset_fill(dataset, first, (void *[]){pixels, labels}),
                     0);
    ck_assert_int_eq(
        dataset_fill(dataset, first + step, (void *[]){pixels, labels}), 0);
}

/* Counts in uses[] each image this rank trains on in an epoch. */
static int64_t train_epoch(struct dataset *dataset, int batch, int64_t epoch,
                           int *uses)
{
    float *pixels = malloc((size_t)batch * IMAGE_PIXELS * sizeof *pixels);
    int32_t *labels = malloc((size_t)batch * sizeof *labels);
    int64_t steps = dataset_steps(dataset);

    for (int64_t step = 0; step < steps; step++) {
        fill(dataset, epoch, step, pixels, labels);
        for (int i = 0; i < batch; i++) {
            int number = number_of(pixels + i * IMAGE_PIXELS);
            ck_assert_int_eq(labels[i], number % CLASSES);
            uses[number]++;
        }
    }
    free(pixels);
    free(labels);
    return steps;
}

/* All ranks make the same number of steps, on different images. They drop less
 * than a batch a rank, and one image a rank for uneven shards. */
LOOP_TEST(shards_are_disjoint_and_even, 1, MOST_RANKS + 1)
{
    enum { TRAIN = 1003, BATCH = 7 };
    int size = _i;
    int uses[TRAIN] = {0};
    int64_t steps = -1;

    for (int rank = 0; rank < size; rank++) {
        struct dataset dataset = make(TRAIN, 10, rank, size, BATCH);
        int64_t mine = train_epoch(&dataset, BATCH, 0, uses);
        ck_assert(steps < 0 || steps == mine);
        steps = mine;
        dataset_fini(&dataset);
    }
    int used = 0;
    for (int i = 0; i < TRAIN; i++) {
        ck_assert_int_le(uses[i], 1);
        used += uses[i];
    }
    ck_assert_int_eq(used, steps * BATCH * size);
    ck_assert_int_eq(steps, TRAIN / size / BATCH);
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Step k of n ranks with batch b has the images of step k of one rank with
 * batch n b. */
LOOP_TEST(batches_of_all_ranks_make_one_large_batch, 1, MOST_RANKS + 1)
{
    enum { TRAIN = 2000, BATCH = 5 };
    int size = _i;
    int whole = BATCH * size;
    float *pixels = malloc((size_t)whole * IMAGE_PIXELS * sizeof *pixels);
    int32_t *labels = malloc((size_t)whole * sizeof *labels);
    struct dataset alone = make(TRAIN, 10, 0, 1, whole);
    int *large = malloc((size_t)whole * sizeof *large);
    int *joined = malloc((size_t)whole * sizeof *joined);

    for (int64_t step = 0; step < 3; step++) {
        fill(&alone, 3, step, pixels, labels);
        for (int i = 0; i < whole; i++)
            large[i] = number_of(pixels + i * IMAGE_PIXELS);
        for (int rank = 0; rank < size; rank++) {
            struct dataset one = make(TRAIN, 10, rank, size, BATCH);
            fill(&one, 3, step, pixels, labels);
            for (int i = 0; i < BATCH; i++)
                joined[rank * BATCH + i] = number_of(pixels + i * IMAGE_PIXELS);
            dataset_fini(&one);
        }
        qsort(large, (size_t)whole, sizeof *large, ascending);
        qsort(joined, (size_t)whole, sizeof *joined, ascending);
        ck_assert_mem_eq(large, joined, (size_t)whole * sizeof *large);
    }
    free(pixels);
    free(labels);
    free(large);
    free(joined);
    dataset_fini(&alone);
}

TEST(epochs_have_different_orders)
{
    enum { TRAIN = 100, BATCH = 10 };
    struct dataset dataset = make(TRAIN, 10, 0, 2, BATCH);
    float pixels[BATCH * IMAGE_PIXELS];
    int32_t labels[BATCH];
    int numbers[3][BATCH];

    for (int i = 0; i < 3; i++) {
        fill(&dataset, i % 2, 0, pixels, labels); /* epochs 0, 1, 0 */
        for (int k = 0; k < BATCH; k++)
            numbers[i][k] = number_of(pixels + k * IMAGE_PIXELS);
    }
    ck_assert(memcmp(numbers[0], numbers[1], sizeof numbers[0]) != 0);
    ck_assert_mem_eq(numbers[0], numbers[2], sizeof numbers[0]);
    dataset_fini(&dataset);
}

/* Each test image is seen exactly once, and blank rows are blank. */
LOOP_TEST(evaluation_is_exact, 1, MOST_RANKS + 1)
{
    enum { TEST = 103, BATCH = 8 };
    int size = _i;
    int uses[TEST] = {0};
    float pixels[BATCH * IMAGE_PIXELS];
    int32_t labels[BATCH];

    for (int rank = 0; rank < size; rank++) {
        struct dataset dataset = make(1000, TEST, rank, size, BATCH);
        for (int64_t step = 0;; step++) {
            memset(pixels, 255, sizeof pixels);
            int rows = (int)dataset_fill_test(&dataset, step,
                                              (void *[]){pixels, labels});
            for (int i = 0; i < rows; i++) {
                int number = number_of(pixels + i * IMAGE_PIXELS);
                ck_assert_int_eq(labels[i], number % CLASSES);
                uses[number]++;
            }
            for (int i = rows; i < BATCH; i++) {
                ck_assert_int_eq(labels[i], 0);
                for (int p = 0; p < IMAGE_PIXELS; p++)
                    ck_assert(pixels[i * IMAGE_PIXELS + p] == 0);
            }
            if (rows == 0)
                break;
        }
        dataset_fini(&dataset);
    }
    for (int i = 0; i < TEST; i++)
        ck_assert_int_eq(uses[i], 1);
}

TEST(fewer_test_images_than_ranks)
{
    struct dataset dataset = make(1000, 2, 3, 4, 8);
    float pixels[8 * IMAGE_PIXELS];
    int32_t labels[8];

    ck_assert_int_eq(dataset_fill_test(&dataset, 0, (void *[]){pixels, labels}),
                     0);
    dataset_fini(&dataset);
}

/* Mini-batch number k of rank 1 of 2 with 3 replicas is number k / 3 of rank
 * 3 + k % 3 of 6, in every epoch. */
TEST(replicas_take_batches_as_ranks)
{
    enum { BATCH = 4, REPLICAS = 3 };
    struct images a = numbered(200), b = numbered(10);
    struct dataset joined, single[REPLICAS];

    ck_assert_int_eq(dataset_init(&joined, &a, &b, 1, 2, REPLICAS, BATCH, 11),
                     0);
    for (int i = 0; i < REPLICAS; i++)
        single[i] = make(200, 10, REPLICAS + i, 2 * REPLICAS, BATCH);
    ck_assert_int_eq(dataset_steps(&joined), dataset_steps(&single[0]));
    for (int64_t k = 0; k < 2 * REPLICAS * dataset_steps(&joined); k++) {
        float mine[BATCH * IMAGE_PIXELS], rank[BATCH * IMAGE_PIXELS];
        int32_t my_labels[BATCH], rank_labels[BATCH];

        dataset_fill(&joined, k, (void *[]){mine, my_labels});
        dataset_fill(&single[k % REPLICAS], k / REPLICAS,
                     (void *[]){rank, rank_labels});
        ck_assert_mem_eq(mine, rank, sizeof mine);
        ck_assert_mem_eq(my_labels, rank_labels, sizeof my_labels);
    }
    dataset_fini(&joined);
    for (int i = 0; i < REPLICAS; i++)
        dataset_fini(&single[i]);
}

/* 100 images on 3 ranks: the smallest shard has 33. */
TEST(shard_smaller_than_a_batch)
{
    struct images a = numbered(100), b = numbered(10);
    struct dataset dataset = make(100, 10, 0, 3, 33);

    ck_assert_int_eq(dataset_steps(&dataset), 1);
    dataset_fini(&dataset);
    ck_assert_int_eq(dataset_init(&dataset, &a, &b, 0, 3, 1, 34, 1), PROBLEM);
    ck_assert_ptr_nonnull(strstr(problem_text(), "needs 102"));
    ck_assert_ptr_nonnull(strstr(problem_text(), "there are 100"));
}

TEST(pixels_are_scaled_to_one)
{
    struct images a = numbered(4), b = numbered(4);
    struct dataset dataset;
    float pixels[IMAGE_PIXELS];
    int32_t label;

    memset(b.pixels, 255, IMAGE_PIXELS);
    ck_assert_int_eq(dataset_init(&dataset, &a, &b, 0, 1, 1, 1, 1), 0);
    ck_assert_int_eq(dataset_fill_test(&dataset, 0, (void *[]){pixels, &label}),
                     1);
    for (int p = 0; p < IMAGE_PIXELS; p++)
        ck_assert_float_eq(pixels[p], 1);
    dataset_fini(&dataset);
}

/* Without a directory digits are drawn, as many as the source says. */
TEST(load_draws_without_data)
{
    const struct dataset_source source = {.seed = 1, .train = 30, .test = 20};
    struct images train = {0}, test = {0};

    ck_assert_int_eq(dataset_load(&source, NULL, &train, &test), 0);
    ck_assert_int_eq(train.count, 30);
    ck_assert_int_eq(test.count, 20);
    images_fini(&train);
    images_fini(&test);
}

TEST_MAIN("models_dataset")

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.c - owns the images and the order of the current epoch. All ranks
 * have the same images and the same order; a rank finds its places in it by
 * hvd_shard. A trainer calls dataset_fill, for a pipeline on a separate thread;
 * then only that thread uses the order.
 */
#include "data/dataset.h"

#include "data/digits.h"
#include "data/idx.h"
#include "output/problem.h"

#include <hvd_strategy.h>
#include <string.h>

/* The numbers of digits drawn if the source names none. */
enum { DRAWN_TRAIN = 40000, DRAWN_TEST = 5000 };

int dataset_load(const struct dataset_source *source, struct progress *progress,
                 struct images *train, struct images *test)
{
    int64_t ntrain = source->train;
    int64_t ntest = source->test;
    int status;

    if (source->directory) {
        status = idx_load(source->directory, "train", ntrain, train);
        if (status == 0)
            status = idx_load(source->directory, "t10k", ntest, test);
    } else {
        status =
            digits_draw(source->seed, DIGITS_TRAIN,
                        ntrain > 0 ? ntrain : DRAWN_TRAIN, progress, train);
        if (status == 0)
            status =
                digits_draw(source->seed, DIGITS_TEST,
                            ntest > 0 ? ntest : DRAWN_TEST, progress, test);
    }
    if (status < 0)
        images_fini(train);
    return status;
}

int dataset_init(struct dataset *dataset, struct images *train,
                 struct images *test, int rank, int size, int batch_size,
                 uint64_t seed)
{
    *dataset = (struct dataset){.train = *train,
                                .test = *test,
                                .rank = rank,
                                .size = size,
                                .batch_size = batch_size,
                                .seed = seed};
    *train = (struct images){0};
    *test = (struct images){0};
    if (dataset_steps(dataset, batch_size) == 0) {
        int64_t images = dataset->train.count;
        dataset_fini(dataset);
        return problem_set("--batch-size %d on %d ranks needs %lld training "
                           "images, there are %lld",
                           batch_size, size, (long long)batch_size * size,
                           (long long)images);
    }
    dataset->order = malloc((size_t)dataset->train.count * sizeof(int64_t));
    if (!dataset->order) {
        dataset_fini(dataset);
        return problem_set("no memory for the order of the images");
    }
    return 0;
}

void dataset_fini(struct dataset *dataset)
{
    images_fini(&dataset->train);
    images_fini(&dataset->test);
    free(dataset->order);
    *dataset = (struct dataset){0};
}

int64_t dataset_steps(const struct dataset *dataset, int batch_size)
{
    int64_t smallest_shard = dataset->train.count / dataset->size;

    return smallest_shard / batch_size;
}

int dataset_shuffle(struct dataset *dataset, int64_t epoch)
{
    if (hvd_shuffle(dataset->train.count, dataset->seed, epoch,
                    dataset->order) < 0)
        return problem_set("%s", hvd_last_error());
    return 0;
}

/* Copies one image to where the network reads it. */
static void copy_image(const struct images *images, int64_t index,
                       float *pixels, int32_t *label)
{
    const uint8_t *bytes = images->pixels + index * IMAGE_PIXELS;

    for (int i = 0; i < IMAGE_PIXELS; i++)
        pixels[i] = (float)bytes[i] / 255.0F;
    *label = images->labels[index];
}

void dataset_batch(const struct dataset *dataset, int64_t step, int batch_size,
                   float *pixels, int32_t *labels)
{
    int64_t first = 0, stride = 1, count = 0;

    hvd_shard(dataset->train.count, dataset->rank, dataset->size, &first,
              &stride, &count);
    for (int i = 0; i < batch_size; i++) {
        int64_t place = first + (step * batch_size + i) * stride;
        copy_image(&dataset->train, dataset->order[place],
                   pixels + (int64_t)i * IMAGE_PIXELS, &labels[i]);
    }
}

int dataset_test_batch(const struct dataset *dataset, int64_t step,
                       int batch_size, float *pixels, int32_t *labels)
{
    int64_t first = 0, stride = 1, count = 0;
    int rows = 0;

    hvd_shard(dataset->test.count, dataset->rank, dataset->size, &first,
              &stride, &count);
    int64_t done = step * batch_size;
    for (; rows < batch_size && done + rows < count; rows++)
        copy_image(&dataset->test, first + (done + rows) * stride,
                   pixels + (int64_t)rows * IMAGE_PIXELS, &labels[rows]);
    int64_t blank = batch_size - rows;
    memset(pixels + (int64_t)rows * IMAGE_PIXELS, 0,
           (size_t)blank * IMAGE_PIXELS * sizeof *pixels);
    memset(labels + rows, 0, (size_t)blank * sizeof *labels);
    return rows;
}

int dataset_fill(void *context, int64_t number, void *pixels, int32_t *labels)
{
    struct dataset *dataset = context;
    int64_t steps = dataset_steps(dataset, dataset->batch_size);

    if (number % steps == 0 && dataset_shuffle(dataset, number / steps) < 0)
        return PROBLEM;
    dataset_batch(dataset, number % steps, dataset->batch_size, pixels, labels);
    return 0;
}

int64_t dataset_fill_test(void *context, int64_t step, void *pixels,
                          int32_t *labels)
{
    const struct dataset *dataset = context;

    return dataset_test_batch(dataset, step, dataset->batch_size, pixels,
                              labels);
}

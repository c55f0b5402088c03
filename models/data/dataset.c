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
    if (dataset_steps(dataset) == 0) {
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

int64_t dataset_steps(const struct dataset *dataset)
{
    int64_t smallest_shard = dataset->train.count / dataset->size;

    return smallest_shard / dataset->batch_size;
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

int dataset_fill(void *context, int64_t number, void *pixels, int32_t *labels)
{
    struct dataset *d = context;
    int64_t steps = dataset_steps(d), step = number % steps;
    int64_t first = 0, stride = 1, count = 0;

    if (step == 0 &&
        hvd_shuffle(d->train.count, d->seed, number / steps, d->order) < 0)
        return problem_set("%s", hvd_last_error());
    hvd_shard(d->train.count, d->rank, d->size, &first, &stride, &count);
    for (int i = 0; i < d->batch_size; i++) {
        int64_t place = first + (step * d->batch_size + i) * stride;

        copy_image(&d->train, d->order[place],
                   (float *)pixels + (int64_t)i * IMAGE_PIXELS, &labels[i]);
    }
    return 0;
}

int64_t dataset_fill_test(void *context, int64_t step, void *pixels,
                          int32_t *labels)
{
    const struct dataset *d = context;
    int64_t first = 0, stride = 1, count = 0, rows = 0;
    int64_t done = step * d->batch_size;
    float *at = pixels;

    hvd_shard(d->test.count, d->rank, d->size, &first, &stride, &count);
    for (; rows < d->batch_size && done + rows < count; rows++)
        copy_image(&d->test, first + (done + rows) * stride,
                   at + rows * IMAGE_PIXELS, &labels[rows]);
    size_t blank = (size_t)(d->batch_size - rows);
    memset(at + rows * IMAGE_PIXELS, 0, blank * IMAGE_PIXELS * sizeof *at);
    memset(labels + rows, 0, blank * sizeof *labels);
    return rows;
}

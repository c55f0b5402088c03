/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.h - training and test images, and which of them this rank takes.
 *
 * Every rank holds all images. An epoch's order is a permutation that all
 * ranks share (hvd_shuffle); rank r of n takes every n-th place of it from r
 * on (hvd_shard). So step k with local batches of b uses, over all ranks,
 * places k*n*b to (k+1)*n*b of the order: the same images as one rank with
 * batches of n*b.
 *
 * Shards may differ by one image, but all ranks must make the same number of
 * steps: as many whole batches as the smallest shard holds. What is left of
 * an epoch is dropped; the next epoch has another order.
 *
 * The test images are shared out likewise, without an order and to the last
 * one: the last batch of a rank may be partly filled, or empty.
 */
#ifndef MODELS_DATASET_H
#define MODELS_DATASET_H

#include "data/images.h"
#include "output/progress.h"

struct dataset {
    struct images train;
    struct images test;
    int rank, size;
    int batch_size; /* of dataset_fill and dataset_fill_test */
    uint64_t seed;
    int64_t *order; /* of the current epoch; owned */
};

/* Where the images come from. */
struct dataset_source {
    const char *directory; /* of MNIST files; NULL: digits are drawn */
    uint64_t seed;         /* of drawn digits */
    int64_t train, test;   /* the first so many; 0: all there are, or the
                              default number drawn */
};

/* Loads or draws the images. Drawing takes seconds, which progress shows (NULL:
 * nobody sees). PROBLEM with the text kept. */
int dataset_load(const struct dataset_source *source, struct progress *progress,
                 struct images *train, struct images *test);

/* Takes both image sets over, also on failure. PROBLEM if the smallest
 * shard does not fill a batch, or memory runs out. */
int dataset_init(struct dataset *dataset, struct images *train,
                 struct images *test, int rank, int size, int batch_size,
                 uint64_t seed);
void dataset_fini(struct dataset *dataset);

/* Steps of an epoch; the same on all ranks. */
int64_t dataset_steps(const struct dataset *dataset, int batch_size);

/* Order the images for this epoch, 0, 1, ... */
int dataset_shuffle(struct dataset *dataset, int64_t epoch);

/* Fill pixels [batch, 784], 0 to 1, and labels [batch] with the batch of a
 * step of the epoch. */
void dataset_batch(const struct dataset *dataset, int64_t step, int batch_size,
                   float *pixels, int32_t *labels);

/* The same for test images. Returns how many rows are real; the rest of the
 * batch is blank. 0 when this rank has no more. */
int dataset_test_batch(const struct dataset *dataset, int64_t step,
                       int batch_size, float *pixels, int32_t *labels);

/* The same for a trainer (feed.h, trainer.h), whose context is a dataset:
 * mini-batches are numbered from the first epoch to the last, and each epoch
 * begins with an order of its own. */
int dataset_fill(void *context, int64_t number, void *pixels, int32_t *labels);
int64_t dataset_fill_test(void *context, int64_t step, void *pixels,
                          int32_t *labels);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.h - shares training and test images out to the ranks.
 *
 * Every rank holds all images. An epoch's order is a permutation that all
 * ranks share (hvd_shuffle); rank r of n takes every n-th place of it from r
 * on (hvd_shard). So step k with local batches of b uses, over all ranks,
 * places k*n*b to (k+1)*n*b of the order: the same images as one rank with
 * batches of n*b.
 *
 * Shards may differ by one image, but all ranks must make the same number of
 * steps: as many whole batches as the smallest shard holds. The images that are
 * left of an epoch are dropped; the next epoch has another order.
 *
 * A rank may have replicas, which take mini-batches as ranks would: replica i
 * of k on rank r of n has the images of rank r*k + i of n*k.
 *
 * The test images are shared out in the same way, but without an order and to
 * the last one: the last batch of a rank may be partly filled, or empty.
 */
#ifndef MODELS_DATASET_H
#define MODELS_DATASET_H

#include "data/images.h"

#include <hvd_progress.h>

struct dataset {
    struct images train, test; /* read by the iterators */
    int replicas;              /* of each rank */
    int batch_size;
    int64_t per_step;                /* images of all replicas in a step */
    int64_t steps;                   /* of an epoch */
    struct dataset_batches *batches; /* [replicas], owned: of the training */
    struct dataset_batches *tests;   /* owned */
};

/* The source of the images. */
struct dataset_source {
    const char *directory; /* has MNIST files; NULL: digits are drawn */
    uint64_t seed;         /* seed of drawn digits */
    int64_t train, test;   /* images; 0: all, or the default number drawn */
};

/* Loads or draws the images. Drawing takes seconds, which progress shows (NULL:
 * nobody sees). PROBLEM with the text kept. */
int dataset_load(const struct dataset_source *source, hvd_progress *progress,
                 struct images *train, struct images *test);

/* Takes both image sets over, also on failure. PROBLEM if the smallest shard
 * does not fill a batch, or if memory runs out. */
int dataset_init(struct dataset *dataset, struct images *train,
                 struct images *test, int rank, int size, int replicas,
                 int batch_size, uint64_t seed);
void dataset_fini(struct dataset *dataset);

/* Return the steps of an epoch, and of the test; the same on all ranks. */
int64_t dataset_steps(const struct dataset *dataset);
int64_t dataset_test_steps(const struct dataset *dataset);

/* Fills the inputs, pixels [batch, 784], 0 to 1, and labels [batch], with
 * mini-batch number 0, 1, ... of all replicas and epochs; context is the
 * dataset, as a trainer (trainer.h) has it. The images are ordered at the begin
 * of each epoch. */
int dataset_fill(void *context, int64_t number, void *const *inputs);

/* Does the same with test images. Returns how many rows are real, 0 when this
 * rank has no more; the other rows are blank. */
int64_t dataset_fill_test(void *context, int64_t step, void *const *inputs);

#endif

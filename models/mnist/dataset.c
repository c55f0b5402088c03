/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.c - owns the images, and an iterator (hvd_dataset.h) for each replica
 * of this rank. A trainer calls dataset_fill, for a pipeline on a separate
 * thread; then only that thread uses the iterators of the training.
 */
#include "mnist/dataset.h"

#include "data/digits.h"
#include "data/idx.h"
#include "output/problem.h"

#include <hvd_dataset.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of digits drawn if the source names none. */
enum { DRAWN_TRAIN = 40000, DRAWN_TEST = 5000 };

int dataset_load(const struct dataset_source *source, hvd_progress *progress,
                 struct images *train, struct images *test)
{
    int64_t ntrain = source->train;
    int64_t ntest = source->test;
    int status;

    if (source->directory) {
        hvd_progress_phase(progress, "reading images", 0, 0, NULL);
        status = idx_load(source->directory, "train", ntrain, train);
        if (status == 0)
            status = idx_load(source->directory, "t10k", ntest, test);
        hvd_progress_end(progress);
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

/* Batches of one replica. */
struct dataset_batches {
    hvd_iterator *iterator; /* owned */
    int64_t next;           /* step that it gives */
};

/* Makes the batches of a replica, of images that are in the order of seed, or
 * in that of the files. */
static int open_batches(const struct images *images, int replica, int replicas,
                        int batch_size, const uint64_t *seed,
                        struct dataset_batches *batches)
{
    static const hvd_component components[] = {
        {.name = "images", HVD_UINT8, 1, {IMAGE_PIXELS}},
        {.name = "labels", HVD_UINT8, 0, {0}}};
    const void *arrays[] = {images->pixels, images->labels};
    hvd_input_context context;

    hvd_input_context_init(&context, sizeof context);
    context.num_input_pipelines = replicas;
    context.input_pipeline_id = replica;
    hvd_dataset *d =
        hvd_dataset_memory(2, components, arrays, images->count, NULL, NULL);
    d = hvd_dataset_cast(d, "labels", HVD_INT32, 1);
    d = hvd_dataset_cast(d, "images", HVD_FLOAT32, 255);
    if (seed)
        d = hvd_dataset_shuffle(d, *seed, 0);
    d = hvd_dataset_batch(d, batch_size, seed != NULL);
    int status = hvd_iterator_new(d, &context, &batches->iterator);
    hvd_dataset_free(d);
    return status < 0 ? problem_set("%s", hvd_last_error()) : 0;
}

static int open_all(struct dataset *dataset, int rank, int size, uint64_t seed)
{
    int replicas = dataset->replicas, status = 0;

    dataset->batches = calloc((size_t)replicas, sizeof *dataset->batches);
    dataset->tests = calloc(1, sizeof *dataset->tests);
    if (!dataset->batches || !dataset->tests)
        return problem_set("no memory for the images");
    for (int i = 0; i < replicas && status == 0; i++)
        status =
            open_batches(&dataset->train, rank * replicas + i, size * replicas,
                         dataset->batch_size, &seed, &dataset->batches[i]);
    if (status == 0)
        status = open_batches(&dataset->test, rank, size, dataset->batch_size,
                              NULL, dataset->tests);
    return status;
}

int dataset_init(struct dataset *dataset, struct images *train,
                 struct images *test, int rank, int size, int replicas,
                 int batch_size, uint64_t seed)
{
    int64_t all = (int64_t)batch_size * replicas * size;

    *dataset = (struct dataset){.train = *train,
                                .test = *test,
                                .replicas = replicas,
                                .batch_size = batch_size,
                                .per_step = all,
                                .steps = train->count / all};
    *train = (struct images){0};
    *test = (struct images){0};
    int status =
        dataset->steps == 0
            ? problem_set("--batch-size %d on %d ranks needs %lld training "
                          "images, there are %lld",
                          batch_size * replicas, size, (long long)all,
                          (long long)dataset->train.count)
            : open_all(dataset, rank, size, seed);
    if (status < 0)
        dataset_fini(dataset);
    return status;
}

void dataset_fini(struct dataset *dataset)
{
    for (int i = 0; dataset->batches && i < dataset->replicas; i++)
        hvd_iterator_free(dataset->batches[i].iterator);
    if (dataset->tests)
        hvd_iterator_free(dataset->tests->iterator);
    free(dataset->batches);
    free(dataset->tests);
    images_fini(&dataset->train);
    images_fini(&dataset->test);
    *dataset = (struct dataset){0};
}

int64_t dataset_steps(const struct dataset *dataset)
{
    return dataset->steps;
}

int64_t dataset_test_steps(const struct dataset *dataset)
{
    return hvd_iterator_steps(dataset->tests->iterator);
}

/* Goes to a step of an epoch, of samples images of all replicas. */
static int seek(struct dataset_batches *batches, int64_t epoch, int64_t samples)
{
    hvd_position position;

    hvd_iterator_position(batches->iterator, &position);
    position.epoch = epoch;
    position.samples = samples;
    return hvd_iterator_restore(batches->iterator, &position);
}

int dataset_fill(void *context, int64_t number, void *const *inputs)
{
    struct dataset *d = context;
    struct dataset_batches *b = &d->batches[number % d->replicas];
    int64_t step = number / d->replicas;
    hvd_batch batch;
    int status = 0;

    if (step != b->next || step % d->steps == 0)
        status = seek(b, step / d->steps, step % d->steps * d->per_step);
    if (status == 0)
        status = hvd_iterator_next_into(b->iterator, inputs, &batch);
    b->next = step + 1;
    return status < 0 ? problem_set("%s", hvd_last_error()) : 0;
}

int64_t dataset_fill_test(void *context, int64_t step, void *const *inputs)
{
    struct dataset *d = context;
    hvd_batch batch = {0};
    int status = step == 0 ? seek(d->tests, 0, 0) : 0;

    if (status == 0)
        status = hvd_iterator_next_into(d->tests->iterator, inputs, &batch);
    if (status < 0)
        return problem_set("%s", hvd_last_error());
    if (status == HVD_END_OF_DATA) {
        size_t rows = (size_t)d->batch_size;

        memset(inputs[0], 0, rows * IMAGE_PIXELS * sizeof(float));
        memset(inputs[1], 0, rows * sizeof(int32_t));
    }
    return batch.rows;
}

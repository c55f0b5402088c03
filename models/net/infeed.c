/* SPDX-License-Identifier: Apache-2.0 */
/* infeed.c - a queue of the device that reads a data set. */
#include "output/problem.h"

#include <hvd_dataset.h>
#include <hvd_model.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Returns the device's name of a dtype; -1: it does not have it. */
static ipu_dtype dtype_of(hvd_dtype dtype)
{
    switch (dtype) {
    case HVD_FLOAT32: return IPU_FLOAT32;
    case HVD_INT32: return IPU_INT32;
    case HVD_FLOAT16: return IPU_FLOAT16;
    case HVD_BFLOAT16: return IPU_BFLOAT16;
    default: return -1;
    }
}

/* A source of the queue. */
struct batches {
    hvd_iterator *iterator; /* owned */
    bool begun;             /* the next batch is not the first of an epoch */
};

/* Returns 1 for a batch, and 0 at the end. */
static int next_batch(void *context, void *const *buffers)
{
    struct batches *b = context;
    hvd_batch batch;
    int status = hvd_iterator_next_into(b->iterator, buffers, &batch);

    b->begun = status == 0;
    return status < 0 ? status : status == 0;
}

/* Behind the end of an epoch, the iterator is at the begin of the next. */
static int rewind_batches(void *context)
{
    struct batches *b = context;
    hvd_position position;
    int status = b->begun ? hvd_iterator_position(b->iterator, &position) : 0;

    if (status < 0 || !b->begun)
        return status;
    b->begun = false;
    position.samples = 0;
    return hvd_iterator_restore(b->iterator, &position);
}

static void close_batches(void *context)
{
    struct batches *b = context;

    hvd_iterator_free(b->iterator);
    free(b);
}

/* Describes the tensors of a batch, by reading the first one. */
static int describe_batch(hvd_iterator *iterator, ipu_feed_tensor *tensors)
{
    hvd_batch batch;
    int status = hvd_iterator_next(iterator, &batch);

    if (status == HVD_END_OF_DATA)
        return problem_fail(HVD_ERR_ARGUMENT, "the data set has no batch: %s",
                            hvd_iterator_description(iterator));
    for (int32_t i = 0; i < batch.ncomponents && status == 0; i++) {
        const hvd_component *c = &batch.components[i];

        tensors[i] = (ipu_feed_tensor){
            .name = c->name, .dtype = dtype_of(c->dtype), .ndim = c->ndim};
        if (tensors[i].dtype < 0 || c->ndim > IPU_MAX_DIMS)
            return problem_fail(HVD_ERR_ARGUMENT,
                                "component '%s' is %s of %d dimensions, which "
                                "the device does not have: convert it by "
                                "hvd_dataset_cast or hvd_dataset_reshape",
                                c->name, hvd_dtype_name(c->dtype),
                                (int)c->ndim);
        memcpy(tensors[i].shape, c->shape, (size_t)c->ndim * sizeof *c->shape);
    }
    return status < 0 ? status : batch.ncomponents;
}

int hvd_infeed_new(hvd_dataset *data, const hvd_input_context *context,
                   const ipu_infeed_options *options, ipu_infeed **infeed)
{
    ipu_feed_tensor tensors[HVD_MAX_COMPONENTS];
    ipu_infeed_options o;
    struct batches *b = calloc(1, sizeof *b);
    int status = b ? hvd_iterator_new(data, context, &b->iterator)
                   : problem_fail(HVD_ERR_MEMORY, "no memory for the queue");

    hvd_dataset_free(data);
    ipu_infeed_options_init(&o, sizeof o);
    o.name = "data";
    o.repeat = 1;
    if (options)
        o = *options;
    if (status == 0)
        status = o.ntensors = describe_batch(b->iterator, tensors);
    if (status >= 0) {
        b->begun = true;
        status = rewind_batches(b);
    }
    o.tensors = tensors;
    o.source = (ipu_source){next_batch, rewind_batches, close_batches, b};
    if (status == 0 && ipu_infeed_new(&o, infeed) < 0)
        status = problem_fail(HVD_ERR_ARGUMENT, "%s", ipu_last_error());
    if (status < 0 && b)
        close_batches(b);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.c - feeds a running pipeline: takes elements from the infeed, and adds
 * up or enqueues the outputs of the last stage. All of it happens on the thread
 * that runs the pipeline.
 *
 * The replicas take elements in turn: in each mini-batch the first goes to
 * replica 0, the next to replica 1, and so on.
 */
#include "pipeline/feed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ops/half.h"
#include "streams/streams.h"

int ipu__feed_in(struct ipu_pipeline *p, int64_t repeat, int64_t slot,
                 int64_t mini_batch)
{
    const ipu_pipeline_options *o = &p->options;
    int64_t serial = o->batch_serialization_iterations;
    void *buffers[IPU_MAX_STAGE_TENSORS];

    for (int64_t i = 0; o->infeed && i < serial * o->replicas; i++) {
        int32_t replica = (int32_t)(i % o->replicas);
        const struct ipu__copy *copy = &p->copies[replica];
        int64_t element = mini_batch * serial + i / o->replicas;
        char text[IPU__MESSAGE_MAX];
        int status;

        for (int32_t k = o->narguments; k < p->positions[0].ninputs; k++)
            buffers[k - o->narguments] =
                ipu__ring_at(&copy->carried[0][k], element);
        status =
            ipu__infeed_take(o->infeed, replica, buffers, &p->callback_status);
        if (status >= 0)
            continue;
        snprintf(text, sizeof text, "%s", ipu_last_error());
        return ipu__fail(status,
                         "pipeline: slot %" PRId64 ", stage %s, mini-batch "
                         "%" PRId64 " of %" PRId64 ", after %" PRId64
                         " of %" PRId64 " updates: %s",
                         slot, p->parts[0].name, mini_batch, o->count, repeat,
                         o->repeat_count, text);
    }
    return IPU_OK;
}

/* ------------------------------------------------------------------ outputs */

static int call_sink(struct ipu_pipeline *p, int32_t replica,
                     int64_t mini_batch, int32_t count, const void *const *data)
{
    int status = p->options.sink(p->options.sink_context, replica, mini_batch,
                                 count, data);

    if (status >= 0)
        return IPU_OK;
    p->callback_status = status;
    return ipu__fail(IPU_ERR_CALLBACK,
                     "pipeline: the sink returned %d for mini-batch %" PRId64
                     ", replica %d",
                     status, mini_batch, (int)replica);
}

static int deliver(struct ipu_pipeline *p, int32_t replica, int64_t mini_batch,
                   void *const *outputs)
{
    const void *data[IPU_MAX_STAGE_TENSORS];
    char text[IPU__MESSAGE_MAX];
    int32_t count = 0;
    int status;

    for (int32_t k = 0; k < p->positions[p->npositions - 1].noutputs; k++)
        if (!p->kept_back[k])
            data[count++] = outputs[k];
    if (p->options.outfeed && count > 0) {
        status = ipu__outfeed_put(p->options.outfeed, replica, data);
        snprintf(text, sizeof text, "%s", ipu_last_error());
        if (status < 0)
            return ipu__fail(
                status,
                "pipeline: stage %s, mini-batch %" PRId64 ", replica %d: %s",
                p->parts[p->nparts - 1].name, mini_batch, (int)replica, text);
    }
    return p->options.sink ? call_sink(p, replica, mini_batch, count, data)
                           : IPU_OK;
}

static void add_elements(const struct ipu__shape *shape, void *sum,
                         const void *x)
{
    enum { BLOCK = 512 };
    float wide[2][BLOCK];
    int64_t count = ipu__shape_count(shape);

    for (int64_t i = 0; shape->dtype == IPU_FLOAT32 && i < count; i++)
        ((float *)sum)[i] += ((const float *)x)[i];
    for (int64_t i = 0; shape->dtype == IPU_INT32 && i < count; i++)
        ((uint32_t *)sum)[i] += ((const uint32_t *)x)[i];
    for (int64_t i = 0; ipu__is_half(shape->dtype) && i < count; i += BLOCK) {
        int64_t length = count - i < BLOCK ? count - i : BLOCK;

        ipu__widen(shape->dtype, wide[0], (uint16_t *)sum + i, length);
        ipu__widen(shape->dtype, wide[1], (const uint16_t *)x + i, length);
        for (int64_t k = 0; k < length; k++)
            wide[0][k] += wide[1][k];
        ipu__narrow(shape->dtype, (uint16_t *)sum + i, wide[0], length);
    }
}

/* Adds a replica's outputs of an element to its sums. */
static void add_outputs(const struct ipu_pipeline *p, struct ipu__copy *copy,
                        int64_t element)
{
    const struct ipu__position *last = &p->positions[p->npositions - 1];
    int32_t count = 0;

    for (int32_t i = 0; i < last->nparts; i++) {
        const struct ipu__stage_part *part = &p->parts[last->first_part + i];

        for (int32_t k = 0; k < part->noutputs; k++) {
            add_elements(
                &part->outputs[k].shape, copy->outfeed[count],
                ipu__ring_at(&copy->carried[p->npositions][count], element));
            count++;
        }
    }
}

int ipu__feed_out(struct ipu_pipeline *p, int64_t repeat, int64_t mini_batch)
{
    const ipu_pipeline_options *o = &p->options;
    int64_t serial = o->batch_serialization_iterations;
    int64_t all = o->count * serial;

    for (int64_t i = 0; (o->sink || o->outfeed) && i < serial * o->replicas;
         i++) {
        struct ipu__copy *copy = &p->copies[i % o->replicas];
        int64_t element = mini_batch * serial + i / o->replicas;
        void *outputs[IPU_MAX_STAGE_TENSORS] = {NULL};

        for (int32_t k = 0; k < p->positions[p->npositions - 1].noutputs; k++)
            outputs[k] =
                ipu__ring_at(&copy->carried[p->npositions][k], element);
        if (!o->accumulate_outfeed) {
            IPU_TRY(deliver(p, (int32_t)(i % o->replicas),
                            repeat * all + element, outputs));
            continue;
        }
        add_outputs(p, copy, element);
        if (element == all - 1)
            IPU_TRY(
                deliver(p, (int32_t)(i % o->replicas), repeat, copy->outfeed));
    }
    return IPU_OK;
}

void ipu__feed_forget(struct ipu_pipeline *p)
{
    for (int32_t r = 0;
         p->options.accumulate_outfeed && r < p->options.replicas; r++)
        for (int32_t k = 0; k < p->positions[p->npositions - 1].noutputs; k++)
            memset(p->copies[r].outfeed[k], 0,
                   p->copies[r].carried[p->npositions][k].bytes);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task.c - runs one task of an IPU: a stage forwards or backwards, for one
 * mini-batch.
 *
 * The engine's streams are connected to the element's places in the rings, so
 * that a stage writes where the next one reads. With batch serialization a
 * mini-batch is several elements, one after the other.
 */
#include <stdio.h>

#include "pipeline/pipeline.h"

static int connect_stream(ipu_engine *engine, const char *prefix,
                          int32_t number, const struct ipu__stage_buffer *ring,
                          int64_t element)
{
    char name[32];

    snprintf(name, sizeof name, "%s:%d", prefix, (int)number);
    return ipu_engine_connect(engine, name, ipu__ring_at(ring, element),
                              ring->bytes);
}

/* Returns the number of a part's first output among those of its position. */
static int32_t first_output(const struct ipu_pipeline *p, int32_t part)
{
    int32_t first = 0;

    for (int32_t i = p->positions[p->parts[part].position].first_part; i < part;
         i++)
        first += p->parts[i].noutputs;
    return first;
}

static int forward(const struct ipu_pipeline *p, struct ipu__copy *copy,
                   int32_t number, int64_t element)
{
    const struct ipu__stage_part *part = &p->parts[number];
    ipu_engine *engine = copy->forward[number];
    struct ipu__done *done = &copy->done[number];
    int32_t first = first_output(p, number);

    for (int32_t i = 0; i < p->positions[part->position].ninputs; i++)
        IPU_TRY(connect_stream(engine, "in", i,
                               &copy->carried[part->position][i], element));
    for (int32_t i = 0; i < part->noutputs; i++)
        IPU_TRY(connect_stream(engine, "out", i,
                               &copy->carried[part->position + 1][first + i],
                               element));
    for (int32_t i = 0; i < part->nstash; i++)
        IPU_TRY(connect_stream(engine, "stash", i, &copy->stashed[number][i],
                               element));
    IPU_TRY(ipu_engine_run(engine));
    done->forwards++;
    if (p->training && ++done->waiting > done->most)
        done->most = done->waiting;
    return IPU_OK;
}

/* Connects the two weights of a running mean: that of the old value and that of
 * the new one. */
static int connect_weights(const struct ipu_pipeline *p, ipu_engine *engine,
                           int64_t n, float *old, float *new)
{
    if (p->options.reduction != IPU_REDUCTION_RUNNING_MEAN)
        return IPU_OK;
    *old = (float)((double)n / (double)(n + 1));
    *new = (float)(1 / (double)(n + 1));
    IPU_TRY(ipu_engine_connect(engine, "old", old, sizeof *old));
    return ipu_engine_connect(engine, "new", new, sizeof *new);
}

/* Connects the derivatives of an output, from all parts that use it. */
static int connect_gradients(const struct ipu_pipeline *p,
                             const struct ipu__copy *copy, int32_t number,
                             int64_t element)
{
    const struct ipu__stage_part *part = &p->parts[number];
    const struct ipu__position *after = &p->positions[part->position + 1];
    int32_t first = first_output(p, number);

    if (part->position == p->npositions - 1)
        return IPU_OK;
    for (int32_t i = 0; i < after->nparts; i++)
        for (int32_t k = 0; k < part->noutputs; k++) {
            const struct ipu__stage_buffer *ring =
                &copy->returned[after->first_part + i][first + k];
            char name[32];

            if (!p->parts[after->first_part + i].sends[first + k])
                continue;
            snprintf(name, sizeof name, "grad:%d:%d", (int)(first + k), (int)i);
            /* A derivative that the part does not need is no stream of its
             * program. */
            if (ipu_engine_connect(copy->backward[number], name,
                                   ipu__ring_at(ring, element),
                                   ring->bytes) == IPU_ERR_SHAPE)
                return IPU_ERR_SHAPE;
        }
    return IPU_OK;
}

static int backward(const struct ipu_pipeline *p, struct ipu__copy *copy,
                    int32_t number, int64_t element)
{
    const struct ipu__stage_part *part = &p->parts[number];
    ipu_engine *engine = copy->backward[number];
    float old = 0, new = 0;

    for (int32_t i = 0; i < part->nstash; i++)
        IPU_TRY(connect_stream(engine, "stash", i, &copy->stashed[number][i],
                               element));
    IPU_TRY(connect_weights(p, engine, element, &old, &new));
    IPU_TRY(connect_gradients(p, copy, number, element));
    for (int32_t i = 0; i < p->positions[part->position].ninputs; i++)
        if (part->sends[i])
            IPU_TRY(connect_stream(engine, "dx", i, &copy->returned[number][i],
                                   element));
    IPU_TRY(ipu_engine_run(engine));
    copy->done[number].backwards++;
    copy->done[number].recomputes += part->recomputes;
    copy->done[number].waiting--;
    return IPU_OK;
}

int ipu__task_run(struct ipu_pipeline *p, struct ipu__chip_lane *lane,
                  const struct ipu__task *task)
{
    struct ipu__copy *copy = &p->copies[lane->copy];
    bool there = task->kind == IPU_STAGE_FORWARD;
    int64_t serial = p->options.batch_serialization_iterations;

    for (int64_t i = 0; i < serial; i++) {
        int64_t element = task->mini_batch * serial + i;
        int status = there ? forward(p, copy, task->part, element)
                           : backward(p, copy, task->part, element);

        if (status < 0) {
            lane->callback_status = ipu_engine_callback_status(
                there ? copy->forward[task->part] : copy->backward[task->part]);
            return status;
        }
    }
    return IPU_OK;
}

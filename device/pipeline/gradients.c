/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gradients.c - averages accumulators before the weights change: over the
 * replicas, and over other processes by functions of the user.
 *
 * A gradient is complete when the first stage that adds to it has gone
 * backwards with the last mini-batch. In the ramp-down the last stage comes
 * first:
 *
 *     slot      stage 3   back  | ready(w3)
 *               stage 2         back  | ready(w2)
 *               stage 1               back  | ready(w1)
 *               stage 0                     back  | ready(w0)  wait  update
 *     others:                     w3 ...  w2 ...  w1 ...  w0 ...
 *
 * so the user's functions can exchange one stage's gradients while earlier
 * stages still work. The order here is that of the list, from its end, with any
 * number of threads. float16 gradients are exchanged as float32, in separate
 * memory.
 *
 * If a run fails, processes that wait for this one must learn of the failure:
 * so wait is called then, too, with the status.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/half.h"
#include "pipeline/pipeline.h"
#include "replica/replica.h"

/* ----------------------------------------------------------------- the list */

static int32_t find_variable(const struct ipu__chip *chip, const char *name)
{
    const struct ipu__variable *found = ipu__chip_variable(chip, name);

    return (int32_t)(found - chip->variables);
}

/* Returns true if the variable is listed already. Stages that share a variable
 * are on one IPU; the first of them comes first. */
static bool is_listed(const struct ipu_pipeline *p, int32_t chip,
                      int32_t variable)
{
    for (int32_t i = 0; i < p->ngradients; i++)
        if (p->gradients[i].chip == chip &&
            p->gradients[i].variable == variable)
            return true;
    return false;
}

static int list_gradient(struct ipu_pipeline *p,
                         const struct ipu__stage_part *part,
                         const struct ipu__trained *trained)
{
    struct ipu__gradient g = {.position = part->position};
    const struct ipu__chip *chip = p->chips;
    const struct ipu__variable *sum;
    char name[IPU__NAME_MAX];
    size_t bytes;

    while (chip->ipu != part->ipu)
        chip++;
    g.chip = (int32_t)(chip - p->chips);
    g.variable = find_variable(chip, trained->name);
    if (is_listed(p, g.chip, g.variable))
        return IPU_OK;
    ipu__accumulator_name(trained->name, name);
    g.sum = find_variable(chip, name);
    g.name = chip->variables[g.variable].name;
    g.share = ipu__share_elements(p, &chip->variables[g.variable].shape);
    sum = &chip->variables[g.sum];
    bytes = (size_t)ipu__shape_count(&sum->shape) * sizeof *g.wide;
    if (p->options.ready && ipu__is_half(sum->shape.dtype)) {
        g.wide = ipu__pipeline_allocate(bytes);
        if (!g.wide)
            return ipu__fail_memory(bytes);
    }
    p->gradients[p->ngradients++] = g;
    return IPU_OK;
}

int ipu__gradients_list(struct ipu_pipeline *p)
{
    size_t most = 1;

    for (int32_t i = 0; i < p->nparts; i++)
        most += (size_t)p->parts[i].ntrained;
    IPU_TRY(ipu__new_array(&p->gradients, most, sizeof *p->gradients));
    for (int32_t i = 0; i < p->nparts; i++)
        for (int32_t k = 0; k < p->parts[i].ntrained; k++)
            if (p->parts[i].trained[k].gradient.id >= 0)
                IPU_TRY(
                    list_gradient(p, &p->parts[i], &p->parts[i].trained[k]));
    return IPU_OK;
}

void ipu__gradients_free(struct ipu_pipeline *p)
{
    for (int32_t i = 0; i < p->ngradients; i++)
        free(p->gradients[i].wide);
    free(p->gradients);
}

/* ------------------------------------------------------------------ a round */

void ipu__gradients_begin(struct ipu_pipeline *p)
{
    for (int32_t i = 0; i < p->ngradients; i++)
        p->gradients[i].given = false;
    p->waited = false;
}

/* Returns a replica's accumulator. */
static void *sum_of(const struct ipu_pipeline *p, const struct ipu__gradient *g,
                    int32_t replica)
{
    return ipu__copy_variable(&p->copies[replica], g->chip, g->sum);
}

static const struct ipu__shape *shape_of(const struct ipu_pipeline *p,
                                         const struct ipu__gradient *g)
{
    return &p->chips[g->chip].variables[g->sum].shape;
}

static int give_gradient(struct ipu_pipeline *p, int32_t number)
{
    struct ipu__gradient *g = &p->gradients[number];
    const struct ipu__shape *shape = shape_of(p, g);
    int64_t count = ipu__shape_count(shape);
    void *tensors[IPU_MAX_IPUS], *first = sum_of(p, g, 0);
    int status;

    for (int32_t r = 0; r < p->options.replicas; r++)
        tensors[r] = sum_of(p, g, r);
    if (p->options.replicas > 1)
        ipu__sum_replicas(shape->dtype, p->options.replicas, tensors, count,
                          1 / (float)p->options.replicas);
    g->given = true;
    if (!p->options.ready)
        return IPU_OK;
    if (g->wide)
        ipu__widen(shape->dtype, g->wide, first, count);
    status = p->options.ready(p->options.exchange_context, number, g->name,
                              g->wide ? g->wide : first, count);
    if (status >= 0)
        return IPU_OK;
    p->callback_status = status;
    return ipu__fail(IPU_ERR_CALLBACK,
                     "pipeline: the gradient of '%s' is complete, for which "
                     "other processes wait: the function that is to give it "
                     "to them returned %d",
                     g->name, status);
}

/* Returns true if the stage has gone backwards with all mini-batches by this
 * slot. */
static bool ends_here(const struct ipu_pipeline *p, int32_t position)
{
    for (int32_t i = 0; i < p->nchips; i++)
        for (int32_t k = 0; k < p->lanes[i].ntasks; k++) {
            const struct ipu__task *task = &p->lanes[i].tasks[k];

            if (task->kind == IPU_STAGE_BACKWARD &&
                task->mini_batch == p->options.count - 1 &&
                p->parts[task->part].position == position)
                return true;
        }
    return false;
}

int ipu__gradients_give(struct ipu_pipeline *p)
{
    if (p->options.replicas == 1 && !p->options.ready)
        return IPU_OK;
    for (int32_t i = p->ngradients - 1; i >= 0; i--)
        if (!p->gradients[i].given && ends_here(p, p->gradients[i].position))
            IPU_TRY(give_gradient(p, i));
    return IPU_OK;
}

/* Copies a gradient that came back to the first replica to all of them. */
static void take_gradient(struct ipu_pipeline *p, const struct ipu__gradient *g)
{
    const struct ipu__shape *shape = shape_of(p, g);
    void *first = sum_of(p, g, 0);

    if (g->wide)
        ipu__narrow(shape->dtype, first, g->wide, ipu__shape_count(shape));
    for (int32_t r = 1; r < p->options.replicas; r++)
        memcpy(sum_of(p, g, r), first, ipu__shape_bytes(shape));
}

int ipu__gradients_wait(struct ipu_pipeline *p)
{
    int status;

    if (!p->options.wait)
        return IPU_OK;
    p->waited = true;
    status = p->options.wait(p->options.exchange_context, IPU_OK);
    if (status < 0) {
        p->callback_status = status;
        return ipu__fail(IPU_ERR_CALLBACK,
                         "pipeline: waiting for the gradients of other "
                         "processes returned %d",
                         status);
    }
    for (int32_t i = 0; i < p->ngradients; i++)
        take_gradient(p, &p->gradients[i]);
    p->waited = false; /* later failures must still be reported */
    return IPU_OK;
}

void ipu__gradients_abandon(struct ipu_pipeline *p, int status)
{
    char text[IPU__EXPLANATION_MAX];

    if (!p->options.wait || p->waited)
        return;
    snprintf(text, sizeof text, "%s", ipu_last_error());
    p->options.wait(p->options.exchange_context, status);
    ipu__fail(status, "%s", text);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update.c - makes the programs that update the weights once a round.
 *
 * There is one program per IPU: the user's optimiser gets the variables that
 * are trained there and their accumulators; then the accumulators are set to
 * zero. The last stage's outputs for the last mini-batch are inputs "output:k".
 * If the state of a variable is shared, the optimiser gets a replica's share of
 * the variable, and the gradient's share as an input (shares.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/pipeline.h"

struct update {
    struct ipu_pipeline *pipeline;
    struct ipu__chip *chip;
    ipu_graph *graph;
    int32_t count;
    /* Owned, [trained]; gradients are the accumulators, or shares of them. */
    ipu_tensor *variables, *accumulators, *gradients;
    int64_t *shares; /* owned, [trained]: elements; 0: no share */
    int32_t nshared;
};

static bool is_there(const struct update *u, const char *name)
{
    const char *other;

    for (int32_t i = 0; i < u->count; i++) {
        ipu_tensor_info(u->graph, u->variables[i], NULL, NULL, &other);
        if (strcmp(name, other) == 0)
            return true;
    }
    return false;
}

/* Adds a replica's share of a variable and of its gradient, as vectors. */
static void add_share(struct update *u, const struct ipu__trained *t,
                      int64_t share)
{
    char name[IPU__NAME_MAX];

    u->variables[u->count] =
        ipu_variable(u->graph, t->name, t->shape.dtype, 1, &share);
    ipu__share_name(t->name, name);
    u->gradients[u->count] =
        ipu_input(u->graph, name, t->accumulator, 1, &share);
    u->shares[u->count] = share;
    u->nshared++;
}

static int add_variable(struct update *u, const struct ipu__trained *t)
{
    int64_t share = ipu__share_elements(u->pipeline, &t->shape);
    char name[IPU__NAME_MAX];

    if (t->gradient.id < 0 || is_there(u, t->name))
        return IPU_OK;
    if (share == 0)
        u->variables[u->count] = ipu_variable(u->graph, t->name, t->shape.dtype,
                                              t->shape.ndim, t->shape.extents);
    ipu__accumulator_name(t->name, name);
    u->accumulators[u->count] = ipu_variable(u->graph, name, t->accumulator,
                                             t->shape.ndim, t->shape.extents);
    if (share > 0)
        add_share(u, t, share);
    else
        u->gradients[u->count] = u->accumulators[u->count];
    u->count++;
    return ipu__graph_status(u->graph);
}

static int add_outputs(struct update *u, ipu_tensor *outputs)
{
    const struct ipu_pipeline *p = u->pipeline;
    const struct ipu__position *last = &p->positions[p->npositions - 1];
    int32_t count = 0;
    char name[32];
    int status;

    for (int32_t i = 0; i < last->nparts; i++) {
        const struct ipu__stage_part *part = &p->parts[last->first_part + i];

        for (int32_t k = 0; k < part->noutputs; k++) {
            const struct ipu__shape *s = &part->outputs[k].shape;

            snprintf(name, sizeof name, "output:%d", (int)count);
            outputs[count++] =
                ipu_input(u->graph, name, s->dtype, s->ndim, s->extents);
        }
    }
    status = ipu__graph_status(u->graph);
    return status < 0 ? status : count;
}

static int clear_accumulators(struct update *u)
{
    for (int32_t i = 0; i < u->count; i++) {
        int64_t shape[IPU_MAX_DIMS];
        ipu_dtype dtype;
        int ndim =
            ipu_tensor_info(u->graph, u->accumulators[i], &dtype, shape, NULL);

        IPU_TRY(ipu_assign(u->graph, u->accumulators[i],
                           ipu_fill(u->graph, dtype, ndim, shape, 0)));
    }
    return IPU_OK;
}

static int build(struct update *u)
{
    const ipu_pipeline_options *o = &u->pipeline->options;
    ipu_tensor outputs[IPU_MAX_STAGE_TENSORS];
    int noutputs, status;

    for (int32_t i = 0; i < u->pipeline->nparts; i++) {
        const struct ipu__stage_part *part = &u->pipeline->parts[i];

        for (int32_t k = 0; k < part->ntrained && part->ipu == u->chip->ipu;
             k++)
            IPU_TRY(add_variable(u, &part->trained[k]));
    }
    noutputs = add_outputs(u, outputs);
    IPU_TRY(noutputs);
    if (u->count > 0) {
        status = o->optimizer(o->optimizer_context, u->graph, noutputs, outputs,
                              u->count, u->variables, u->gradients);
        u->graph->source = (struct ipu__source){0};
        IPU_TRY(ipu__graph_status(u->graph));
        if (status < 0)
            return ipu__fail(status, "the optimizer returned %d", status);
        IPU_TRY(ipu_update_check_absent(u->graph, "the optimizer"));
    }
    if (u->nshared > 0)
        IPU_TRY(ipu__shares_check(u->graph, u->count, u->variables, u->shares,
                                  u->chip));
    IPU_TRY(clear_accumulators(u));
    return ipu__pipeline_compile(u->pipeline, u->graph, &u->chip->update);
}

static int update_of(struct ipu_pipeline *p, struct ipu__chip *chip)
{
    struct update u = {.pipeline = p, .chip = chip};
    size_t most = 1;
    char text[IPU__EXPLANATION_MAX];
    int status;

    for (int32_t i = 0; i < p->nparts; i++)
        most += (size_t)p->parts[i].ntrained;
    u.variables = calloc(most, sizeof *u.variables);
    u.accumulators = calloc(most, sizeof *u.accumulators);
    u.gradients = calloc(most, sizeof *u.gradients);
    u.shares = calloc(most, sizeof *u.shares);
    if (u.variables && u.accumulators && u.gradients && u.shares) {
        status = ipu_graph_new(&u.graph);
        if (status == IPU_OK)
            status = build(&u);
    } else {
        status = ipu__fail_memory(most);
    }
    free(u.variables);
    free(u.accumulators);
    free(u.gradients);
    free(u.shares);
    ipu_graph_free(u.graph);
    if (status >= 0)
        return IPU_OK;
    snprintf(text, sizeof text, "%s", ipu_last_error());
    return ipu__fail(status, "pipeline: the weight update on IPU %d: %s",
                     (int)chip->ipu, text);
}

int ipu__pipeline_updates(struct ipu_pipeline *p)
{
    for (int32_t c = 0; c < p->nchips && p->training; c++)
        IPU_TRY(update_of(p, &p->chips[c]));
    return IPU_OK;
}

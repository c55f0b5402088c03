/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training.c - trains the same network on the same batches with each of the
 * tools.
 *
 * A batch of rows makes an update, whichever the tool: accumulation takes it in
 * parts, one after the other, and so does a pipeline; replicas take a part
 * each. Gradients are means over the batch, so the weights become the same, to
 * rounding where sums are added in another order.
 *
 * With float16 the weights are kept in float32 and cast for each run, the loss
 * is scaled, and updates by gradients that are not finite are left out.
 */
#include "memory/training.h"

#include "memory/parts.h"
#include "output/device_problem.h"
#include "output/profile.h"

#include <stdlib.h>

const struct training_tool training_tools[TOOLS] = {
    [TOOL_PLAIN] = {"plain", "everything is kept"},
    [TOOL_RECOMPUTE] = {"recompute", "activations are computed again"},
    [TOOL_ACCUMULATE] = {"accumulate", "gradients of parts of the batch, in "
                                       "float32"},
    [TOOL_OFFLOAD] = {"offload", "Adam's state beside the chip"},
    [TOOL_OFFLOAD_ALL] = {"offload-all", "weights and accumulators, too"},
    [TOOL_CHIPS] = {"chips", "layers on several chips, one after the other"},
    [TOOL_PIPELINE] = {"pipeline", "layers in stages, a chip each, which work "
                                   "at the same time"},
    [TOOL_SHARD] = {"shard", "Adam's state shared by replicas, beside the "
                             "chips"},
    [TOOL_HALF] = {"float16", "activations and products in float16, the loss "
                              "scaled"},
};

/* Makes room for the weights, and writes their first values to the backend. */
static int write_weights(struct training *t, struct training_result *result)
{
    int status = 0;

    for (int i = 0; i < t->nvariables; i++)
        result->nweights += t->variables[i].count;
    result->weights = malloc((size_t)result->nweights * sizeof(float));
    if (!result->weights)
        return problem_set("no memory for the weights");
    for (int i = 0; i < t->nvariables && status >= 0; i++) {
        const hvd_variable *v = &t->variables[i];

        hvd_net_draw(t->net, i, result->weights);
        status =
            t->backend->functions->write(t->backend, v->name, result->weights,
                                         (size_t)v->count * sizeof(float));
    }
    return status;
}

static int read_weights(const struct training *t, float *w)
{
    int status = 0;

    for (int i = 0; i < t->nvariables && status >= 0; i++) {
        const hvd_variable *v = &t->variables[i];

        status = t->backend->functions->read(t->backend, v->name, w,
                                             (size_t)v->count * sizeof(float));
        w += v->count;
    }
    return status;
}

static int add_profile(const struct training *t)
{
    struct profile_program program = {.name = training_tools[t->tool].name};

    t->backend->functions->describe(t->backend, &program);
    return device_status(profile_add(t->settings->profile, &program));
}

static int run_tool(struct training *t, struct training_result *result)
{
    const struct training_settings *s = t->settings;
    int status = hvd_net_new(s->seed + 1, &t->net);

    if (status >= 0)
        status = batches_open(t->rows, s->width, s->seed, &t->batches);
    if (status >= 0)
        status = training_make_backend(t);
    if (status >= 0)
        status = write_weights(t, result);
    for (int u = 0; u < s->updates && status >= 0; u++)
        status =
            t->backend->functions->update(t->backend, s->rate, &result->loss);
    if (status >= 0)
        status = read_weights(t, result->weights);
    if (status >= 0)
        status = training_account(t, result);
    if (status >= 0 && s->profile)
        status = add_profile(t);
    return status >= 0 ? training_ask_compiler(t, result) : status;
}

int training_run(const struct training_settings *settings, enum tool tool,
                 struct training_result *result)
{
    const bool divides = tool == TOOL_ACCUMULATE || tool == TOOL_SHARD;
    struct training t = {.settings = settings,
                         .tool = tool,
                         .parts = divides ? settings->parts : 1};
    int status;

    *result = (struct training_result){.nweights = 0};
    if (tool == TOOL_PIPELINE)
        t.parts = 2 * settings->parts; /* mini-batches */
    t.rows = settings->rows / t.parts;
    status = run_tool(&t, result);
    if (t.backend)
        t.backend->functions->fini(t.backend);
    ipu_graph_free(t.graph);
    batches_close(t.batches);
    hvd_net_free(t.net);
    return status;
}

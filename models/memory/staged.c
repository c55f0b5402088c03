/* SPDX-License-Identifier: Apache-2.0 */
/*
 * staged.c - makes the layers stages of a pipeline, with a chip each; an update
 * takes the parts of a batch.
 */
#include "memory/parts.h"

/* A stage receives and passes on labels and x, or the previous stage's result
 * for x. The last stage gives the loss. */
static int build_stage(void *context, ipu_graph *graph, int32_t ninputs,
                       const ipu_tensor *in, ipu_tensor *out)
{
    const struct stage *s = context;
    const int layers = s->training->settings->layers;
    const int stages = s->training->settings->parts;
    struct training t = *s->training;
    ipu_tensor x = in[1], w;

    (void)ninputs;
    t.graph = graph;
    for (int i = s->number * layers / stages;
         i < (s->number + 1) * layers / stages; i++)
        x = training_layer(&t, x, i,
                           i == layers - 1 ? CLASSES : t.settings->width, &w);
    if (s->number == stages - 1) {
        x = ipu_softmax_cross_entropy(graph, x, in[0]);
        out[0] = ipu_reduce_sum(graph, x, 1.0 / t.rows);
        return 1;
    }
    out[0] = in[0];
    out[1] = x;
    return 2;
}

static int build_optimizer(void *context, ipu_graph *graph, int32_t noutputs,
                           const ipu_tensor *outputs, int32_t count,
                           const ipu_tensor *w, const ipu_tensor *gradients)
{
    const struct training *t = context;
    const ipu_optimizer adam = {
        .size = sizeof adam,
        .kind = IPU_OPTIMIZER_ADAM,
        .rate = ipu_fill(graph, IPU_FLOAT32, 0, NULL, t->settings->rate)};

    (void)noutputs, (void)outputs;
    return ipu_optimize(graph, &adam, count, w, gradients);
}

int training_make_pipeline(struct training *t)
{
    const int parts = t->settings->parts;
    struct pipeline_settings settings = {.feed_name = "batches",
                                         .feed = training_feed(t)};
    ipu_pipeline_options *o = &settings.device;
    ipu_system system = {.size = sizeof system};
    ipu_stage stages[IPU_MAX_STAGES];
    int status = ipu_system_find(parts <= 4 ? "M2000" : "Pod64", &system);

    if (status < 0)
        return status;
    system.ipu = t->settings->target;
    for (int i = 0; i < parts; i++) {
        t->stages[i] = (struct stage){t, i};
        stages[i] = (ipu_stage){
            .build = build_stage, .context = &t->stages[i], .inputs = 2};
    }
    ipu_pipeline_options_init(o, sizeof *o);
    o->stages = stages;
    o->nstages = parts;
    o->system = &system;
    o->count = t->parts;
    o->reduction = IPU_REDUCTION_MEAN;
    o->optimizer = build_optimizer;
    o->optimizer_context = t;
    t->backend = &t->pipeline.base;
    return pipeline_init(&t->pipeline, &settings);
}

int training_account_pipeline(const struct training *t,
                              struct training_result *r)
{
    ipu_pipeline_info info = {.size = sizeof info};
    int status = ipu_pipeline_stats(t->pipeline.device, &info);

    r->ms = 1e3 * info.seconds / t->settings->updates;
    for (int i = 0; i < info.ipus && status >= 0; i++) {
        ipu_pipeline_ipu_info chip = {.size = sizeof chip};
        int64_t tensors;

        status = ipu_pipeline_ipu(t->pipeline.device, i, &chip);
        tensors =
            (chip.variable_bytes + chip.stash_bytes + chip.program_bytes) /
            t->settings->target.tiles;
        if (r->tile_bytes < chip.tile_bytes)
            r->tile_bytes = chip.tile_bytes;
        if (r->tensor_bytes < tensors)
            r->tensor_bytes = tensors;
        if (r->remote_bytes < chip.streaming_bytes)
            r->remote_bytes = chip.streaming_bytes;
    }
    return status;
}

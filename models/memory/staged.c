/* SPDX-License-Identifier: Apache-2.0 */
/*
 * staged.c - the same layers as stages of a pipeline, a chip each; an update is
 * made of the parts of a batch.
 */
#include "memory/parts.h"

#include <string.h>

struct stage {
    struct training *training;
    int number;
};

/* labels, x or what the stage before makes of it; the last: the loss. */
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

/* The next part of a batch; a new batch after the last. */
static int next_part(void *context, void *const *buffers)
{
    struct training *t = context;
    const size_t rows = (size_t)t->rows, width = (size_t)t->settings->width;

    if (t->next == 0)
        training_draw_batch(t);
    memcpy(buffers[0], t->labels + (size_t)t->next * rows,
           rows * sizeof *t->labels);
    memcpy(buffers[1], t->x + (size_t)t->next * rows * width,
           rows * width * sizeof *t->x);
    t->next = (t->next + 1) % t->parts;
    return 1;
}

static int take_loss(void *context, int32_t replica, int64_t mini_batch,
                     int32_t count, const void *const *data)
{
    struct training *t = context;

    (void)replica, (void)count;
    t->losses[mini_batch % t->parts] = *(const float *)data[0];
    return 0;
}

static int new_pipeline(struct training *t, struct stage *parts,
                        ipu_stage *stages)
{
    const ipu_feed_tensor elements[] = {
        {.name = "labels", .dtype = IPU_INT32, .ndim = 1, .shape = {t->rows}},
        {.name = "x",
         .dtype = IPU_FLOAT32,
         .ndim = 2,
         .shape = {t->rows, t->settings->width}}};
    ipu_system system = {.size = sizeof system};
    ipu_infeed_options feed;
    ipu_pipeline_options o;
    int status =
        ipu_system_find(t->settings->parts <= 4 ? "M2000" : "Pod64", &system);

    system.ipu = t->settings->target;
    for (int i = 0; i < t->settings->parts; i++) {
        parts[i] = (struct stage){t, i};
        stages[i] = (ipu_stage){
            .build = build_stage, .context = &parts[i], .inputs = 2};
    }
    ipu_infeed_options_init(&feed, sizeof feed);
    feed.name = "batches";
    feed.ntensors = 2;
    feed.tensors = elements;
    feed.source = (ipu_source){.next = next_part, .context = t};
    ipu_pipeline_options_init(&o, sizeof o);
    o.stages = stages;
    o.nstages = t->settings->parts;
    o.system = &system;
    o.count = t->parts;
    o.reduction = IPU_REDUCTION_MEAN;
    o.optimizer = build_optimizer;
    o.optimizer_context = t;
    o.sink = take_loss;
    o.sink_context = t;
    if (status >= 0)
        status = ipu_infeed_new(&feed, &t->infeed);
    if (status >= 0)
        status = ipu_infeed_start(t->infeed);
    o.infeed = t->infeed;
    return status >= 0 ? ipu_pipeline_new(&o, &t->pipeline) : status;
}

static int account_pipeline(const struct training *t, struct training_result *r)
{
    ipu_pipeline_info info = {.size = sizeof info};
    int status = ipu_pipeline_stats(t->pipeline, &info);

    r->ms = 1e3 * info.seconds / t->settings->updates;
    for (int i = 0; i < info.ipus && status >= 0; i++) {
        ipu_pipeline_ipu_info chip = {.size = sizeof chip};
        int64_t tensors;

        status = ipu_pipeline_ipu(t->pipeline, i, &chip);
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

int training_run_stages(struct training *t, struct training_result *result)
{
    struct stage parts[IPU_MAX_STAGES];
    ipu_stage stages[IPU_MAX_STAGES];
    int status = new_pipeline(t, parts, stages);

    if (status >= 0)
        status = training_write_weights(t);
    for (int u = 0; u < t->settings->updates && status >= 0; u++)
        status = ipu_pipeline_run(t->pipeline);
    for (int p = 0; p < t->parts; p++)
        result->loss += (double)t->losses[p] / t->parts;
    if (status >= 0)
        status = training_read_weights(t, result->weights);
    if (status >= 0)
        status = account_pipeline(t, result);
    if (status >= 0 && t->settings->profile)
        status = ipu_pipeline_profile(t->pipeline, t->settings->profile);
    return status;
}

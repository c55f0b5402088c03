/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backends.c - makes what runs the network with a tool: an engine, replicas, or
 * a pipeline, whose stages have a chip each, and for which an update takes the
 * parts of a batch.
 */
#include "memory/parts.h"
#include "output/device_problem.h"

static struct feed feed_of(struct training *t)
{
    return (struct feed){
        .ntensors = 2,
        .tensors = {{"labels", IPU_INT32, 1, {t->rows}},
                    {"x", IPU_FLOAT32, 2, {t->rows, t->settings->width}}},
        .next = batches_next,
        .context = t->batches};
}

static int make_engine(struct training *t)
{
    const struct engine_settings settings = {.executable = t->executable,
                                             .feed = feed_of(t),
                                             .steps = t->parts,
                                             .record =
                                                 t->settings->profile != NULL};

    t->backend = &t->engine.base;
    return engine_init(&t->engine, &settings);
}

static int make_replicas(struct training *t)
{
    const struct replicas_settings settings = {
        .executable = t->executable, .feed = feed_of(t), .replicas = t->parts};

    t->backend = &t->replicas.base;
    return replicas_init(&t->replicas, &settings);
}

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
    hvd_net_begin(t.net, graph, HVD_MODE_TRAIN);
    for (int i = s->number * layers / stages;
         i < (s->number + 1) * layers / stages; i++)
        x = training_layer(&t, x, i,
                           i == layers - 1 ? CLASSES : t.settings->width, &w);
    if (hvd_net_end(t.net, &t.variables) < 0)
        return IPU_ERR_STATE;
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

static int make_pipeline(struct training *t)
{
    const int parts = t->settings->parts;
    struct pipeline_settings settings = {.feed_name = "batches",
                                         .feed = feed_of(t)};
    ipu_pipeline_options *o = &settings.device;
    ipu_system system = {.size = sizeof system};
    ipu_stage stages[IPU_MAX_STAGES];
    int status = ipu_system_find(parts <= 4 ? "M2000" : "Pod64", &system);

    if (status < 0)
        return device_problem();
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
    status = pipeline_init(&t->pipeline, &settings);
    t->nvariables = hvd_net_end(t->net, &t->variables);
    return status;
}

int training_make_backend(struct training *t)
{
    int status;

    if (t->tool == TOOL_PIPELINE)
        return make_pipeline(t);
    status = training_build(t);
    if (status >= 0)
        status = device_status(
            ipu_compile(t->graph, &t->settings->target, &t->executable));
    if (status < 0)
        return status;
    return t->tool == TOOL_SHARD ? make_replicas(t) : make_engine(t);
}

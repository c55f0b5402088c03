/* SPDX-License-Identifier: Apache-2.0 */
/*
 *     infeed: input, labels [, number]      argument: rate
 *        |                                     |
 *     stage 0 -- rate, x, labels [, number] -> stage 1 -> ... -> loss, rate
 *
 * What a later stage needs is handed through. The mini-batch's number is what
 * random ops are told as their step: it is the same on the way back, and
 * another in each replica. It is there only if the model draws.
 *
 * The first and the last piece may need the same variable (a table that is
 * tied): then the first and the last stage share an IPU.
 */
#include "trainer/stages.h"

#include "output/problem.h"
#include "trainer/losses.h"
#include "trainer/pipeline_exchange.h"
#include "trainer/program.h"
#include "trainer/update.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a stage is handed, in this order. */
enum { RATE, X, LABELS, NUMBER };

/* Neighbouring pieces. */
struct part {
    struct stages *stages;
    int first, end;
    char name[16];
};

struct stages {
    const struct model *model;
    struct stages_options options;
    struct part parts[IPU_MAX_STAGES];
    ipu_tensor *variables; /* owned, [model's]: of the stage being built */
    ipu_infeed *infeed;
    ipu_pipeline *pipeline;
    struct pipeline_exchange *exchange; /* with other ranks' */
    int64_t next;         /* mini-batch: the infeed's thread alone */
    struct losses losses; /* an update's */
};

/* ----------------------------------------------------------------- partition
 */

/* Fill stages up to so much work, but with one piece at least, and leaving
 * one for each stage to come. Whether that was enough. */
static bool partition_at(const struct model *m, int count, int64_t most,
                         int *first)
{
    bool fits = true;
    int end = 0;

    for (int i = 0; i < count; i++) {
        int64_t sum = m->work(m, end), more;

        first[i] = end++;
        for (; end < m->pieces - (count - 1 - i); end++, sum += more) {
            more = m->work(m, end);
            if (sum + more > most)
                break;
        }
        fits = fits && sum <= most;
    }
    first[count] = end;
    return fits && end == m->pieces;
}

void stages_partition(const struct model *m, int count, int *first)
{
    int64_t enough = 0, too_few = -1;

    for (int i = 0; i < m->pieces; i++)
        enough += m->work(m, i);
    while (enough - too_few > 1) {
        int64_t middle = too_few + (enough - too_few) / 2;

        if (partition_at(m, count, middle, first))
            enough = middle;
        else
            too_few = middle;
    }
    partition_at(m, count, enough, first);
}

/* ---------------------------------------------------------------- building */

/* The variables of one piece that the stage does not have yet. */
static void make_variables(struct stages *s, ipu_graph *graph, int piece)
{
    for (int i = 0; i < s->model->nvariables; i++) {
        const struct model_variable *v = &s->model->variables[i];

        if (s->variables[i].id < 0 && s->model->needs(s->model, piece, i))
            s->variables[i] =
                ipu_variable(graph, v->name, IPU_FLOAT32, v->ndim, v->shape);
    }
}

/* The mean over the rows, as program.c has it. */
static ipu_tensor loss_of(const struct model *model, ipu_graph *graph,
                          ipu_tensor logits, ipu_tensor labels)
{
    return ipu_reduce_sum(graph,
                          ipu_softmax_cross_entropy(graph, logits, labels),
                          1.0 / (double)model->rows);
}

static int build(void *context, ipu_graph *graph, int32_t ninputs,
                 const ipu_tensor *in, ipu_tensor *out)
{
    const struct part *part = context;
    struct stages *s = part->stages;
    const struct model *m = s->model;
    const struct model_pass pass = {.training = true,
                                    .step = m->draws ? in[NUMBER]
                                                     : (ipu_tensor){-1},
                                    .seed = s->options.seed};
    ipu_tensor x = in[X];

    for (int i = 0; i < m->nvariables; i++)
        s->variables[i] = (ipu_tensor){-1};
    for (int i = part->first; i < part->end; i++) {
        make_variables(s, graph, i);
        x = m->piece(m, graph, i, s->variables, x, &pass);
    }
    if (part->end == m->pieces) {
        out[0] = loss_of(m, graph, x, in[LABELS]);
        out[1] = in[RATE];
        return 2;
    }
    memcpy(out, in, (size_t)ninputs * sizeof *out);
    out[X] = x;
    return ninputs;
}

/* outputs: loss, rate. */
static int optimize(void *context, ipu_graph *graph, int32_t noutputs,
                    const ipu_tensor *outputs, int32_t count,
                    const ipu_tensor *variables, const ipu_tensor *gradients)
{
    const struct stages *s = context;

    (void)noutputs;
    return update_build(graph, &s->options.optimizer, count, variables,
                        gradients, outputs[1], ipu_counter(graph, "updates"));
}

/* Where the ends need a variable both, the last stage is on the first IPU. */
static bool is_tied(const struct model *m)
{
    for (int i = 0; i < m->nvariables; i++)
        if (m->needs(m, 0, i) && m->needs(m, m->pieces - 1, i))
            return true;
    return false;
}

/* ----------------------------------------------------------------- the data */

static int next_batch(void *context, void *const *buffers)
{
    struct stages *s = context;

    s->options.fill(s->options.fill_context, s->next, buffers[0], buffers[1]);
    if (s->model->draws)
        *(int32_t *)buffers[2] = (int32_t)s->next;
    s->next++;
    return 1;
}

static int make_infeed(struct stages *s)
{
    const struct model *m = s->model;
    ipu_feed_tensor tensors[] = {
        {.name = m->input_name, .dtype = m->input_dtype, .ndim = m->input_ndim},
        {m->label_name, IPU_INT32, 1, {m->rows}},
        {"number", IPU_INT32, 0, {0}}};
    ipu_infeed_options o;

    memcpy(tensors[0].shape, m->input_shape, sizeof m->input_shape);
    ipu_infeed_options_init(&o, sizeof o);
    o.name = "mini-batches";
    o.ntensors = m->draws ? 3 : 2;
    o.tensors = tensors;
    o.replicas = s->options.partition.replicas;
    o.source.next = next_batch;
    o.source.context = s;
    if (ipu_infeed_new(&o, &s->infeed) < 0 || ipu_infeed_start(s->infeed) < 0)
        return program_device_problem();
    return 0;
}

/* ------------------------------------------------------------------- making */

static int make_pipeline(struct stages *s)
{
    static const ipu_feed_tensor rate = {"rate", IPU_FLOAT32, 0, {0}};
    const struct partition *partition = &s->options.partition;
    int32_t mapping[IPU_MAX_STAGES];
    ipu_stage stages[IPU_MAX_STAGES];
    ipu_pipeline_options o;

    for (int i = 0; i < partition->stages; i++) {
        stages[i] = (ipu_stage){s->parts[i].name, build, &s->parts[i], -1, 0};
        mapping[i] = i % (partition->stages - 1); /* if the ends share one */
    }
    ipu_pipeline_options_init(&o, sizeof o);
    o.schedule = partition->schedule;
    o.nstages = partition->stages;
    o.stages = stages;
    o.nmappings = is_tied(s->model) ? partition->stages : 0;
    o.device_mapping = mapping;
    o.count = s->options.optimizer.accumulate;
    o.replicas = partition->replicas;
    o.threads = s->options.threads;
    o.recompute = partition->recompute;
    o.available_memory_proportion = s->options.proportion;
    o.reduction = IPU_REDUCTION_MEAN;
    o.narguments = 1;
    o.arguments = &rate;
    o.infeed = s->infeed;
    o.sink = losses_take;
    o.sink_context = &s->losses;
    o.optimizer = optimize;
    o.optimizer_context = s;
    o.record = s->options.record;
    if (pipeline_exchange_new(&o, &s->exchange) < 0)
        return PROBLEM;
    pipeline_exchange_set(s->exchange, s->options.compression,
                          s->options.serial, s->options.check_every);
    return ipu_pipeline_new(&o, &s->pipeline) < 0 ? program_device_problem()
                                                  : 0;
}

/* Of the options, whether mini-batches and schedule go together. */
static int check_count(const struct stages *s)
{
    const ipu_schedule_options plan = {
        .size = sizeof plan,
        .schedule = s->options.partition.schedule,
        .stages = s->options.partition.stages,
        .training = 1,
        .count = s->options.optimizer.accumulate};
    ipu_schedule_info info = {.size = sizeof info};

    if (ipu_schedule_plan(&plan, &info) < 0)
        return problem_set("--accumulate: %s", ipu_last_error());
    return 0;
}

static int make_parts(struct stages *s)
{
    int count = s->options.partition.stages, first[IPU_MAX_STAGES + 1];

    if (count > s->model->pieces || count > IPU_MAX_STAGES)
        return problem_set("--stages %d: the network has %d pieces, which make "
                           "no more stages",
                           count, s->model->pieces);
    stages_partition(s->model, count, first);
    for (int i = 0; i < count; i++) {
        s->parts[i] = (struct part){s, first[i], first[i + 1], ""};
        snprintf(s->parts[i].name, sizeof s->parts[i].name, "stage %d", i);
    }
    return 0;
}

int stages_new(const struct model *model, const struct stages_options *options,
               struct stages **made)
{
    struct stages *s = calloc(1, sizeof *s);
    int status;

    if (!s)
        return problem_set("no memory for the pipeline");
    s->model = model;
    s->options = *options;
    s->variables = calloc((size_t)model->nvariables + 1, sizeof *s->variables);
    status = s->variables ? make_parts(s)
                          : problem_set("no memory for the pipeline");
    if (status == 0)
        status = check_count(s);
    if (status == 0)
        status = make_infeed(s);
    if (status == 0)
        status = make_pipeline(s);
    if (status < 0)
        stages_free(s);
    else
        *made = s;
    return status;
}

void stages_free(struct stages *s)
{
    if (!s)
        return;
    pipeline_exchange_free(s->exchange);
    ipu_pipeline_free(s->pipeline);
    ipu_infeed_free(s->infeed);
    free(s->variables);
    free(s);
}

/* -------------------------------------------------------------------- using */

int stages_write(struct stages *s, float *const *values)
{
    for (int i = 0; i < s->model->nvariables; i++) {
        const struct model_variable *v = &s->model->variables[i];

        if (ipu_pipeline_write(s->pipeline, v->name, values[i],
                               (size_t)v->count * sizeof(float)) < 0)
            return program_device_problem();
    }
    return 0;
}

int stages_read(const struct stages *s, float *const *values)
{
    for (int i = 0; i < s->model->nvariables; i++) {
        const struct model_variable *v = &s->model->variables[i];

        if (ipu_pipeline_read(s->pipeline, 0, v->name, values[i],
                              (size_t)v->count * sizeof(float)) < 0)
            return program_device_problem();
    }
    return 0;
}

int stages_start(struct stages *s)
{
    return pipeline_exchange_start(s->exchange, s->pipeline);
}

int stages_update(struct stages *s, double rate, double *loss)
{
    float narrow = (float)rate;
    int status;

    s->losses = (struct losses){0};
    if (ipu_pipeline_argument(s->pipeline, "rate", &narrow, sizeof narrow) < 0)
        return program_device_problem();
    status = pipeline_exchange_run(s->exchange);
    if (status == 0)
        *loss = losses_mean(&s->losses);
    return status;
}

double stages_wait_seconds(const struct stages *s)
{
    struct pipeline_exchange_stats stats;

    pipeline_exchange_get_stats(s->exchange, &stats);
    return stats.wait;
}

int stages_stats(const struct stages *s, struct partition_stats *stats)
{
    return pipeline_exchange_account(s->exchange, stats);
}

const ipu_pipeline *stages_pipeline(const struct stages *s)
{
    return s->pipeline;
}

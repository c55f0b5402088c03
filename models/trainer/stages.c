/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages.c - a pipeline whose stages are made of a model: neighbouring pieces
 * make a stage, and each stage has its own IPU.
 *
 *     infeed: inputs [, number]              arguments: rate [, momentum]
 *        |                                     |
 *     stage 0 -- rates, x, others [, number] -> stage 1 -> ... -> loss, rates
 *
 * A stage passes on the tensors that a later one needs. Random ops use the
 * number of the mini-batch as their step: it is the same in the backward pass,
 * and different in each replica. It is passed only if the model uses random
 * numbers.
 *
 * The first and the last piece may need the same variable (a table that is
 * tied): then the first and the last stage share an IPU.
 *
 * The IPUs have the variables. After each update the host's copies are read
 * back from the first replica.
 */
#include "trainer/model_backend.h"

#include "output/clock.h"
#include "output/problem.h"
#include "trainer/pipeline.h"
#include "trainer/update.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Neighbouring pieces of the model. */
struct part {
    struct stages *stages;
    int first, end;
    char name[16];
};

struct stages {
    struct pipeline pipeline;
    struct backend_functions functions; /* the pipeline's, but for three */
    const struct model *model;          /* borrowed, as the values */
    float *const *values;
    struct optimizer_settings optimizer;
    uint64_t seed;
    struct part parts[IPU_MAX_STAGES];
    ipu_tensor
        *variables; /* owned, [variables], of the stage that is being built */
    struct model_feed source;
};

/* ---------------------------------------------------------------- partition */

/* Fills each stage with pieces up to that much work, but with at least one
 * piece, and leaves one for each later stage. Returns true if all pieces fit.
 */
static bool fill_stages(const struct model *m, int count, int64_t most,
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

        if (fill_stages(m, count, middle, first))
            enough = middle;
        else
            too_few = middle;
    }
    fill_stages(m, count, enough, first);
}

/* ---------------------------------------------------------------- building */

/* Makes the variables of one piece that the stage does not have yet. */
static void make_variables(struct stages *s, ipu_graph *graph, int piece)
{
    for (int i = 0; i < s->model->nvariables; i++) {
        const struct model_variable *v = &s->model->variables[i];

        if (s->variables[i].id < 0 && s->model->needs(s->model, piece, i))
            s->variables[i] =
                ipu_variable(graph, v->name, IPU_FLOAT32, v->ndim, v->shape);
    }
}

/* Returns the mean loss of the rows, as program.c does. */
static ipu_tensor loss_of(const struct model *model, ipu_graph *graph,
                          ipu_tensor y, const struct model_pass *pass)
{
    return ipu_reduce_sum(graph, model_losses(model, graph, y, pass),
                          1.0 / (double)model->rows);
}

/* The inputs of a stage are the rates, x, the other inputs of the model, and
 * then the number. Returns how many rates there are: that of learning, and the
 * momentum if it changes. */
static int count_rates(const struct stages *s)
{
    return s->optimizer.cycled ? 2 : 1;
}

static int build_stage(void *context, ipu_graph *graph, int32_t ninputs,
                       const ipu_tensor *in, ipu_tensor *out)
{
    const struct part *part = context;
    struct stages *s = part->stages;
    const struct model *m = s->model;
    const int rates = count_rates(s);
    const struct model_pass pass = {.training = true,
                                    .inputs = in + rates,
                                    .step = m->draws ? in[rates + m->ninputs]
                                                     : (ipu_tensor){-1},
                                    .seed = s->seed};
    ipu_tensor x = in[rates];

    for (int i = 0; i < m->nvariables; i++)
        s->variables[i] = (ipu_tensor){-1};
    for (int i = part->first; i < part->end; i++) {
        make_variables(s, graph, i);
        x = m->piece(m, graph, i, s->variables, x, &pass);
    }
    if (part->end == m->pieces) {
        out[0] = loss_of(m, graph, x, &pass);
        memcpy(out + 1, in, (size_t)rates * sizeof *out);
        return 1 + rates;
    }
    memcpy(out, in, (size_t)ninputs * sizeof *out);
    out[rates] = x;
    return ninputs;
}

/* Builds the update of a stage. outputs: loss, rates. */
static int build_update(void *context, ipu_graph *graph, int32_t noutputs,
                        const ipu_tensor *outputs, int32_t count,
                        const ipu_tensor *variables,
                        const ipu_tensor *gradients)
{
    const struct stages *s = context;
    const struct update_inputs inputs = {.rate = outputs[1],
                                         .momentum = outputs[noutputs - 1],
                                         .step = ipu_counter(graph, "updates")};

    return update_build(graph, &s->optimizer, count, variables, gradients,
                        &inputs);
}

/* Returns true if the first and the last piece need the same variable. */
static bool is_tied(const struct model *m)
{
    for (int i = 0; i < m->nvariables; i++)
        if (m->needs(m, 0, i) && m->needs(m, m->pieces - 1, i))
            return true;
    return false;
}

/* ------------------------------------------------------------------- making */

/* Adds the settings that the options give directly. */
static void set_options(const struct model_backend *of,
                        ipu_pipeline_options *device)
{
    const struct trainer_options *o = of->options;

    device->schedule = o->partition.schedule;
    device->replicas = o->replicas;
    device->recompute = o->partition.recompute;
    device->count = o->optimizer.accumulate;
    device->threads = o->threads;
    device->available_memory_proportion = o->proportion;
    device->record = of->record;
    device->reduction = IPU_REDUCTION_MEAN;
}

static int make_pipeline(struct stages *s, const struct model_backend *of)
{
    const struct trainer_options *o = of->options;
    const struct exchange_settings exchange = trainer_exchange(o);
    struct pipeline_settings settings = {
        .rates = count_rates(s),
        .feed_name = "mini-batches",
        .feed = model_feed_of(s->model, &s->source)};
    const int count = o->partition.stages;
    int32_t mapping[IPU_MAX_STAGES];
    ipu_stage stages[IPU_MAX_STAGES];

    for (int i = 0; i < count; i++) {
        stages[i] =
            (ipu_stage){s->parts[i].name, build_stage, &s->parts[i], -1, 0};
        mapping[i] = i % (count - 1); /* used if the ends share one */
    }
    ipu_pipeline_options_init(&settings.device, sizeof settings.device);
    set_options(of, &settings.device);
    settings.device.nstages = count;
    settings.device.stages = stages;
    settings.device.nmappings = is_tied(s->model) ? count : 0;
    settings.device.device_mapping = mapping;
    settings.device.optimizer = build_update;
    settings.device.optimizer_context = s;
    if (exchange_new(&exchange, &settings.exchange) < 0)
        return PROBLEM;
    int status = pipeline_init(&s->pipeline, &settings);
    s->pipeline.base.functions = &s->functions;
    s->pipeline.base.source = &s->source;
    return status < 0 ? problem_set("device: %s", problem_text()) : 0;
}

/* Checks that the schedule can have that many mini-batches. */
static int check_count(const struct trainer_options *o)
{
    const ipu_schedule_options plan = {.size = sizeof plan,
                                       .schedule = o->partition.schedule,
                                       .stages = o->partition.stages,
                                       .training = 1,
                                       .count = o->optimizer.accumulate};
    ipu_schedule_info info = {.size = sizeof info};

    if (ipu_schedule_plan(&plan, &info) < 0)
        return problem_set("accumulate: %s", ipu_last_error());
    return 0;
}

static int make_parts(struct stages *s, int count)
{
    int first[IPU_MAX_STAGES + 1];

    if (model_statistics(s->model) > 0)
        return problem_set("stages: the network %s normalises by the whole "
                           "batch and keeps statistics, which stages do not "
                           "reduce: train it on one IPU, or on replicas",
                           s->model->name);
    if (count > s->model->pieces || count > IPU_MAX_STAGES)
        return problem_set("%d stages: the network has %d pieces, which make "
                           "no more stages",
                           count, s->model->pieces);
    stages_partition(s->model, count, first);
    for (int i = 0; i < count; i++) {
        s->parts[i] = (struct part){s, first[i], first[i + 1], ""};
        snprintf(s->parts[i].name, sizeof s->parts[i].name, "stage %d", i);
    }
    return 0;
}

/* ------------------------------------------------------------ the variables */

/* Copies the host's values to all replicas, or from the first. */
static int copy_values(struct stages *s, bool to_host)
{
    const struct backend_functions *f = &pipeline_functions;
    int status = 0;

    for (int i = 0; i < s->model->nvariables && status == 0; i++) {
        const struct model_variable *v = &s->model->variables[i];
        size_t bytes = (size_t)v->count * sizeof(float);

        status =
            to_host ? f->read(&s->pipeline.base, v->name, s->values[i], bytes)
                    : f->write(&s->pipeline.base, v->name, s->values[i], bytes);
    }
    return status < 0 ? problem_set("device: %s", problem_text()) : 0;
}

static int start_stages(struct backend *backend)
{
    struct exchange *x = backend->exchange;
    int status = pipeline_functions.start(backend);

    if (status < 0)
        return status;
    return x->functions->agree(x, copy_values((struct stages *)backend, true));
}

static int update_stages(struct backend *backend, double rate, double *loss)
{
    int status = pipeline_functions.update(backend, rate, loss);
    double start = clock_seconds();

    if (status == 0)
        status = copy_values((struct stages *)backend, true);
    backend->times.compute += clock_seconds() - start;
    return status;
}

static void stages_fini(struct backend *backend)
{
    pipeline_functions.fini(backend);
    free(((struct stages *)backend)->variables);
}

int stages_new(const struct model_backend *of, struct backend **backend)
{
    const struct trainer_options *o = of->options;
    const struct model *m = of->model;
    struct stages *s = calloc(1, sizeof *s);
    int status;

    if (!s)
        return problem_set("no memory for the pipeline");
    s->functions = pipeline_functions;
    s->functions.start = start_stages;
    s->functions.update = update_stages;
    s->functions.fini = stages_fini;
    s->pipeline.base.functions = &s->functions;
    s->model = m;
    s->values = of->values;
    s->optimizer = o->optimizer;
    s->seed = of->seed;
    s->source = (struct model_feed){
        .fill = o->fill, .context = o->fill_context, .numbered = m->draws};
    s->variables = calloc((size_t)m->nvariables + 1, sizeof *s->variables);
    status = s->variables ? make_parts(s, o->partition.stages)
                          : problem_set("no memory for the pipeline");
    if (status == 0)
        status = check_count(o);
    if (status == 0)
        status = make_pipeline(s, of);
    if (status == 0)
        status = copy_values(s, false);
    if (status == 0)
        *backend = &s->pipeline.base;
    else
        backend_free(&s->pipeline.base);
    return status;
}

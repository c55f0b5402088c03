/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.c - trains a network as a pipeline (trainer/pipeline.h).
 *
 * An update uses count mini-batches for each replica, and the mean of their
 * gradients over all ranks.
 *
 * For a test, the weights are copied to a pipeline without a backward pass; its
 * last stage outputs logits and labels. Its run takes a whole number of rounds;
 * the last mini-batches are filled up with blank images of no class, which
 * never count as correct.
 */
#include "pipeline/job.h"

#include "data/fnv1a.h"
#include "data/images.h"
#include "output/device_problem.h"
#include "output/profile.h"
#include "pipeline/nets.h"
#include "trainer/pipeline.h"
#include "trainer/update.h"

#include <stdlib.h>

struct job {
    struct job_options options;
    struct job_data data;
    hvd_net *net; /* owned */
    struct nets nets;
    int nvariables;
    const hvd_variable *variables; /* of the net */
    struct pipeline pipeline;
    int64_t updates; /* made */
    float *values;   /* room for the largest variable; owned */
};

/* ------------------------------------------------------------------- making */

static struct feed feed_of(int (*next)(void *context, void **buffers),
                           void *context, int batch)
{
    return (struct feed){
        .ntensors = 2,
        .tensors = {{"pixels", IPU_FLOAT32, 2, {batch, IMAGE_PIXELS}},
                    {"labels", IPU_INT32, 1, {batch}}},
        .next = next,
        .context = context};
}

static int next_batch(void *context, void **buffers)
{
    const struct job_data *data = context;

    return data->next(data->context, buffers) < 0 ? -1 : 1;
}

static int build_update(void *context, ipu_graph *graph, int32_t noutputs,
                        const ipu_tensor *outputs, int32_t count,
                        const ipu_tensor *variables,
                        const ipu_tensor *gradients)
{
    const struct job *job = context;
    const struct optimizer_settings settings = {
        .optimizer = (enum optimizer)job->options.optimizer};

    const struct update_inputs inputs = {.rate = outputs[1],
                                         .step = ipu_counter(graph, "updates")};

    (void)noutputs;
    return update_build(graph, &settings, count, variables, gradients, &inputs);
}

/* Sets the settings that training and test have in common. */
static void describe_stages(const struct nets *nets, int schedule, int threads,
                            struct pipeline_settings *settings)
{
    ipu_pipeline_options *o = &settings->device;

    *settings = (struct pipeline_settings){.rates = 1};
    ipu_pipeline_options_init(o, sizeof *o);
    o->schedule = schedule;
    o->nstages = nets->nstages;
    o->stages = nets->stages;
    o->nmappings = nets->nmapping;
    o->device_mapping = nets->mapping;
    o->threads = threads;
}

static int make_pipeline(struct job *job)
{
    const struct exchange_settings as_usual = {.compression = 0};
    const struct job_options *options = &job->options;
    struct pipeline_settings settings;
    ipu_pipeline_options *o = &settings.device;

    describe_stages(&job->nets, options->schedule, options->threads, &settings);
    o->count = options->count;
    o->replicas = options->replicas;
    o->recompute = options->recompute;
    o->reduction = IPU_REDUCTION_MEAN;
    o->optimizer = build_update;
    o->optimizer_context = job;
    o->record = options->profile != NULL;
    settings.feed_name = "training images";
    settings.feed = feed_of(next_batch, &job->data, options->batch);
    if (exchange_new(&as_usual, &settings.exchange) < 0)
        return PROBLEM;
    return pipeline_init(&job->pipeline, &settings);
}

static int write_variable(const struct job *job, struct pipeline *to, int i)
{
    return pipeline_functions.write(
        &to->base, job->variables[i].name, job->values,
        (size_t)job->variables[i].count * sizeof *job->values);
}

static int read_variable(const struct job *job, int i)
{
    return pipeline_functions.read(
        &job->pipeline.base, job->variables[i].name, job->values,
        (size_t)job->variables[i].count * sizeof *job->values);
}

/* Writes the first values, which are the same on every rank. */
static int draw_values(struct job *job)
{
    int64_t most = 1;
    int status = 0;

    job->nvariables = hvd_net_end(job->net, &job->variables);
    for (int i = 0; i < job->nvariables; i++)
        if (most < job->variables[i].count)
            most = job->variables[i].count;
    job->values = malloc((size_t)most * sizeof *job->values);
    if (!job->values)
        return problem_set("no memory for the first weights");
    for (int i = 0; i < job->nvariables && status == 0; i++) {
        status = hvd_net_draw(job->net, i, job->values);
        if (status == 0)
            status = write_variable(job, &job->pipeline, i);
    }
    return status;
}

int job_new(const struct job_options *options, const struct job_data *data,
            struct job **made)
{
    struct job *job = calloc(1, sizeof *job);
    int status;

    if (!job)
        return problem_set("no memory for the pipeline");
    job->options = *options;
    job->data = *data;
    job->pipeline.base.functions = &pipeline_functions;
    status = hvd_net_new(options->seed, &job->net);
    if (status == 0)
        status = nets_init(&job->nets, (enum net)options->net, job->net,
                           options->stages, options->batch, true);
    if (status == 0)
        status = make_pipeline(job);
    if (status == 0)
        status = draw_values(job);
    if (status < 0)
        job_free(job);
    else
        *made = job;
    return status;
}

void job_free(struct job *job)
{
    if (!job)
        return;
    pipeline_functions.fini(&job->pipeline.base);
    hvd_net_free(job->net);
    free(job->values);
    free(job);
}

int job_start(struct job *job)
{
    return pipeline_functions.start(&job->pipeline.base);
}

int job_train(struct job *job, int64_t updates, hvd_progress *progress,
              double *loss)
{
    double sum = 0;

    for (int64_t i = 0; i < updates; i++) {
        double fresh = 0;
        char note[40];
        int status = pipeline_functions.update(&job->pipeline.base,
                                               job->options.rate, &fresh);

        if (status < 0)
            return status;
        sum += fresh;
        snprintf(note, sizeof note, "loss %.4f", sum / (double)(i + 1));
        hvd_progress_update(progress, ++job->updates, note);
    }
    *loss = sum / (double)updates;
    return 0;
}

int64_t job_updates(const struct job *job)
{
    return job->updates;
}

struct trainer_times job_times(const struct job *job)
{
    return job->pipeline.base.times;
}

/* ------------------------------------------------------------------ testing */

struct test {
    const struct job_data *data;
    int batch;
    int64_t count; /* images without the blank ones */
    int64_t correct;
};

static int next_test(void *context, void **buffers)
{
    struct test *test = context;
    int32_t *labels = buffers[1];
    int64_t rows = test->data->next_test(test->data->context, buffers);

    for (int64_t i = rows; i < test->batch && rows >= 0; i++)
        labels[i] = -1;
    return rows < 0 ? -1 : 1;
}

/* Counts the images with the largest logit for their class. */
static int take_logits(void *context, int32_t replica, int64_t mini_batch,
                       int32_t count, const void *const *data)
{
    struct test *test = context;
    const float *logits = data[0];
    const int32_t *labels = data[1];

    (void)replica, (void)mini_batch, (void)count;
    for (int i = 0; i < test->batch; i++, logits += CLASSES) {
        int best = 0;

        for (int k = 1; k < CLASSES; k++)
            best = logits[k] > logits[best] ? k : best;
        test->count += labels[i] >= 0;
        test->correct += labels[i] == best;
    }
    return 0;
}

static int copy_weights(struct job *job, struct pipeline *to)
{
    int status = 0;

    for (int i = 0; i < job->nvariables && status == 0; i++) {
        status = read_variable(job, i);
        if (status == 0)
            status = write_variable(job, to, i);
    }
    return status;
}

static int run_test(struct job *job, int64_t batches, struct test *test,
                    struct nets *nets)
{
    struct pipeline_settings settings;
    ipu_pipeline_options *o = &settings.device;
    struct pipeline pipeline;
    double none;
    int status;

    describe_stages(nets, IPU_SCHEDULE_GROUPED, job->options.threads,
                    &settings);
    o->count = nets_positions(nets);
    o->repeat_count = (batches + o->count - 1) / o->count;
    o->sink = take_logits;
    o->sink_context = test;
    settings.feed_name = "test images";
    settings.feed = feed_of(next_test, test, test->batch);
    status = pipeline_init(&pipeline, &settings);
    if (status == 0)
        status = copy_weights(job, &pipeline);
    if (status == 0)
        status = pipeline_functions.update(&pipeline.base, 0, &none);
    pipeline_functions.fini(&pipeline.base);
    return status;
}

int job_test(struct job *job, int64_t batches, int64_t *correct,
             int64_t *images)
{
    struct test test = {.data = &job->data, .batch = job->options.batch};
    struct nets nets;
    int status = nets_init(&nets, (enum net)job->options.net, job->net,
                           job->options.stages, job->options.batch, false);

    if (status == 0)
        status = run_test(job, batches, &test, &nets);
    *correct = test.correct;
    *images = test.count;
    return status;
}

/* --------------------------------------------------------------- afterwards */

int job_stats(const struct job *job, struct partition_stats *stats)
{
    return pipeline_functions.get_stats(&job->pipeline.base, stats);
}

int job_hash(const struct job *job, uint64_t *hash)
{
    uint64_t h = FNV1A_START;

    for (int i = 0; i < job->nvariables; i++) {
        if (read_variable(job, i) < 0)
            return PROBLEM;
        h = fnv1a(h, job->values,
                  (size_t)job->variables[i].count * sizeof *job->values);
    }
    *hash = h;
    return 0;
}

int job_profile(const struct job *job)
{
    struct profile_program program = {.name = "training"};

    pipeline_functions.describe(&job->pipeline.base, &program);
    return profile_finish(job->options.profile, "pipelined", 1, &program);
}

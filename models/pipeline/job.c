/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.c - a network trained as a pipeline.
 *
 * Mini-batches are the dataset's steps, one after the other, epoch after epoch;
 * the infeed's thread fills them while the device works. An update is of count
 * mini-batches for each replica: the mean of their gradients, and over ranks,
 * of which pipeline_exchange.c knows.
 *
 * To test, the weights are copied to a pipeline without a way back, whose last
 * stage gives logits and labels. It takes a whole number of rounds; what is
 * missing is filled up with blank images of no class, which are never right.
 */
#include "pipeline/job.h"

#include "data/dataset.h"
#include "data/random.h"
#include "output/device_problem.h"
#include "output/problem.h"
#include "output/profile.h"
#include "pipeline/nets.h"
#include "trainer/losses.h"
#include "trainer/pipeline_exchange.h"
#include "trainer/update.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CLASS_COUNT = 10 };

struct job {
    struct job_options options;
    struct dataset *data; /* borrowed until free */
    struct nets nets;
    ipu_pipeline *pipeline;
    struct pipeline_exchange *exchange;
    ipu_infeed *infeed;
    int64_t next, epoch; /* mini-batch: the infeed's thread alone */
    struct losses losses;
    float *values; /* of the largest variable */
};

/* ---------------------------------------------------------------- the streams
 */

static int next_batch(void *context, void *const *buffers)
{
    struct job *job = context;

    if (job->next == dataset_steps(job->data, job->options.batch)) {
        job->next = 0;
        job->epoch++;
    }
    if (job->next == 0 && dataset_shuffle(job->data, job->epoch) < 0)
        return -1;
    dataset_batch(job->data, job->next++, job->options.batch, buffers[0],
                  buffers[1]);
    return 1;
}

static int make_infeed(int (*next)(void *context, void *const *buffers),
                       void *context, const char *name, int batch, int replicas,
                       ipu_infeed **infeed)
{
    const ipu_feed_tensor tensors[] = {
        {"pixels", IPU_FLOAT32, 2, {batch, IMAGE_PIXELS}},
        {"labels", IPU_INT32, 1, {batch}},
    };
    ipu_infeed_options o;

    ipu_infeed_options_init(&o, sizeof o);
    o.name = name;
    o.ntensors = 2;
    o.tensors = tensors;
    o.replicas = replicas;
    o.source.next = next;
    o.source.context = context;
    if (ipu_infeed_new(&o, infeed) < 0)
        return device_problem();
    return device_status(ipu_infeed_start(*infeed));
}

/* -------------------------------------------------------------------- making
 */

static int optimize(void *context, ipu_graph *graph, int32_t noutputs,
                    const ipu_tensor *outputs, int32_t count,
                    const ipu_tensor *variables, const ipu_tensor *gradients)
{
    const struct job *job = context;
    const struct optimizer_settings settings = {
        .optimizer = (enum optimizer)job->options.optimizer};

    (void)noutputs;
    return update_build(graph, &settings, count, variables, gradients,
                        outputs[1], ipu_counter(graph, "updates"));
}

static const ipu_feed_tensor rate_argument = {"rate", IPU_FLOAT32, 0, {0}};

static void describe(const struct nets *nets, int schedule,
                     ipu_pipeline_options *o)
{
    ipu_pipeline_options_init(o, sizeof *o);
    o->schedule = schedule;
    o->nstages = nets->nstages;
    o->stages = nets->stages;
    o->nmappings = nets->nmapping;
    o->device_mapping = nets->mapping;
    o->narguments = 1;
    o->arguments = &rate_argument;
}

static int make_pipeline(struct job *job)
{
    ipu_pipeline_options o;

    describe(&job->nets, job->options.schedule, &o);
    o.count = job->options.count;
    o.replicas = job->options.replicas;
    o.threads = job->options.threads;
    o.recompute = job->options.recompute;
    o.reduction = IPU_REDUCTION_MEAN;
    o.infeed = job->infeed;
    o.sink = losses_take;
    o.sink_context = &job->losses;
    o.optimizer = optimize;
    o.optimizer_context = job;
    o.record = job->options.profile != NULL;
    if (pipeline_exchange_new(&o, &job->exchange) < 0)
        return PROBLEM;
    return device_status(ipu_pipeline_new(&o, &job->pipeline));
}

/* The same on every rank: by seed and number. */
static int first_values(struct job *job)
{
    float rate = (float)job->options.rate;
    int64_t most = 1;

    for (int i = 0; i < job->nets.nweights; i++)
        if (most < job->nets.weights[i].count)
            most = job->nets.weights[i].count;
    job->values = malloc((size_t)most * sizeof *job->values);
    if (!job->values)
        return problem_set("no memory for the first weights");
    for (int i = 0; i < job->nets.nweights; i++) {
        const struct nets_weight *w = &job->nets.weights[i];
        double deviation = w->fan_in > 0 ? sqrt(2.0 / (double)w->fan_in) : 0;
        struct random r;

        random_seed(&r, job->options.seed, (uint64_t)i + 1000);
        for (int64_t k = 0; k < w->count; k++)
            job->values[k] =
                (float)(deviation * random_bell(&r) + (w->fan_in < 0));
        if (ipu_pipeline_write(job->pipeline, w->name, job->values,
                               (size_t)w->count * sizeof *job->values) < 0)
            return device_problem();
    }
    return device_status(
        ipu_pipeline_argument(job->pipeline, "rate", &rate, sizeof rate));
}

int job_new(const struct job_options *options, struct dataset *data,
            struct job **made)
{
    struct job *job = calloc(1, sizeof *job);
    int status;

    if (!job)
        return problem_set("no memory for the pipeline");
    job->options = *options;
    job->data = data;
    status = nets_init(&job->nets, (enum net)options->net, options->stages,
                       options->batch, 1);
    if (status == 0)
        status = make_infeed(next_batch, job, "training images", options->batch,
                             options->replicas, &job->infeed);
    if (status == 0)
        status = make_pipeline(job);
    if (status == 0)
        status = first_values(job);
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
    pipeline_exchange_free(job->exchange);
    ipu_pipeline_free(job->pipeline);
    ipu_infeed_free(job->infeed);
    free(job->values);
    free(job);
}

int job_start(struct job *job)
{
    return pipeline_exchange_start(job->exchange, job->pipeline);
}

int job_train(struct job *job, int64_t updates, double *loss)
{
    job->losses = (struct losses){0};
    for (int64_t i = 0; i < updates; i++) {
        int status = pipeline_exchange_run(job->exchange);

        if (status < 0)
            return status;
    }
    *loss = losses_mean(&job->losses);
    return 0;
}

/* ------------------------------------------------------------------- testing
 */

struct test {
    struct dataset *data;
    int batch;
    int64_t next;  /* step: the infeed's thread alone */
    int64_t count; /* images, real ones */
    int64_t correct;
};

static int next_test(void *context, void *const *buffers)
{
    struct test *test = context;
    int32_t *labels = buffers[1];
    int rows = dataset_test_batch(test->data, test->next++, test->batch,
                                  buffers[0], labels);

    for (int i = rows; i < test->batch; i++)
        labels[i] = -1;
    return 1;
}

static int look(void *context, int32_t replica, int64_t mini_batch,
                int32_t count, const void *const *data)
{
    struct test *test = context;
    const float *logits = data[0];
    const int32_t *labels = data[1];

    (void)replica, (void)mini_batch, (void)count;
    for (int i = 0; i < test->batch; i++, logits += CLASS_COUNT) {
        int best = 0;

        for (int k = 1; k < CLASS_COUNT; k++)
            best = logits[k] > logits[best] ? k : best;
        test->count += labels[i] >= 0;
        test->correct += labels[i] == best;
    }
    return 0;
}

static int copy_weights(struct job *job, ipu_pipeline *to)
{
    for (int i = 0; i < job->nets.nweights; i++) {
        const struct nets_weight *w = &job->nets.weights[i];
        size_t bytes = (size_t)w->count * sizeof *job->values;

        if (ipu_pipeline_read(job->pipeline, 0, w->name, job->values, bytes) <
                0 ||
            ipu_pipeline_write(to, w->name, job->values, bytes) < 0)
            return device_problem();
    }
    return 0;
}

static int run_test(struct job *job, struct test *test, struct nets *nets,
                    ipu_infeed *infeed)
{
    int64_t smallest = job->data->test.count / job->data->size + 1;
    int64_t batches = (smallest + test->batch - 1) / test->batch;
    ipu_pipeline_options o;
    ipu_pipeline *pipeline = NULL;
    int status;

    describe(nets, IPU_SCHEDULE_GROUPED, &o);
    o.count = nets_positions(nets);
    o.repeat_count = (batches + o.count - 1) / o.count;
    o.infeed = infeed;
    o.threads = job->options.threads;
    o.sink = look;
    o.sink_context = test;
    status = device_status(ipu_pipeline_new(&o, &pipeline));
    if (status == 0)
        status = copy_weights(job, pipeline);
    if (status == 0)
        status = device_status(ipu_pipeline_run(pipeline));
    ipu_pipeline_free(pipeline);
    return status;
}

int job_test(struct job *job, int64_t *correct, int64_t *images)
{
    struct test test = {.data = job->data, .batch = job->options.batch};
    ipu_infeed *infeed = NULL;
    struct nets nets;
    int status = nets_init(&nets, (enum net)job->options.net,
                           job->options.stages, job->options.batch, 0);

    if (status == 0)
        status = make_infeed(next_test, &test, "test images", test.batch, 1,
                             &infeed);
    if (status == 0)
        status = run_test(job, &test, &nets, infeed);
    ipu_infeed_free(infeed);
    *correct = test.correct;
    *images = test.count;
    return status;
}

/* --------------------------------------------------------------- afterwards */

int job_stats(const struct job *job, struct partition_stats *stats)
{
    return pipeline_exchange_account(job->exchange, stats);
}

int job_hash(const struct job *job, uint64_t *hash)
{
    uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */

    for (int i = 0; i < job->nets.nweights; i++) {
        const struct nets_weight *w = &job->nets.weights[i];
        size_t bytes = (size_t)w->count * sizeof *job->values;

        if (ipu_pipeline_read(job->pipeline, 0, w->name, job->values, bytes) <
            0)
            return device_problem();
        for (size_t k = 0; k < bytes; k++)
            h = (h ^ ((const unsigned char *)job->values)[k]) *
                UINT64_C(1099511628211);
    }
    *hash = h;
    return 0;
}

int job_profile(const struct job *job)
{
    const struct profile_program program = {"training", NULL, NULL,
                                            job->pipeline};

    return profile_finish(job->options.profile, "pipelined", 1, &program);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replicas.c - ipu-replicas: runs the same program on several IPUs, each with a
 * different part of the data.
 *
 * The number of replicas is that of the system's IPUs divided by those that the
 * program takes (shards). Each trains its own copy of a perceptron in a loop on
 * the device, on separate batches. A cross-replica optimiser averages their
 * gradients before it changes the weights, so that these stay equal in all of
 * them; --apart leaves that out, and they drift apart.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chapter/digits_source.h"
#include "chapter/perceptron.h"
#include "options/line.h"
#include "options/values.h"
#include "output/device_problem.h"
#include "output/problem.h"
#include "output/profile.h"

struct options {
    const char *data, *profile;
    int64_t ipus, shards, steps, batch, threads;
    int apart;
};

enum { IPUS = 256, SHARDS, STEPS, BATCH, THREADS, APART, PROFILE };

static const struct argp_option table[] = {
    {"ipus", IPUS, "N", 0, "IPUs of the system, a multiple of --shards (4)", 0},
    {"shards", SHARDS, "N", 0,
     "IPUs that the program takes: 1, or 2, one for each layer (1)", 0},
    {"steps", STEPS, "N", 0, "iterations (100)", 0},
    {"batch-size", BATCH, "N", 0, "images of a replica and iteration (32)", 0},
    {"apart", APART, NULL, 0,
     "without the cross-replica optimiser: each replica learns by itself", 0},
    {"threads", THREADS, "N", 0,
     "threads that replicas run on; 0: one for each, if there are cores (0)",
     0},
    {"data", 'd', "DIR", 0, "directory of MNIST files (digits are drawn)", 0},
    LINE_PROFILE_ROW(PROFILE),
    LINE_ROWS,
    {0}};

static int take_option(void *context, int key, const char *value)
{
    struct options *o = context;

    switch (key) {
    case IPUS: return value_whole("--ipus", value, 1, 64, &o->ipus);
    case SHARDS: return value_whole("--shards", value, 1, 2, &o->shards);
    case STEPS: return value_whole("--steps", value, 1, 1000000, &o->steps);
    case BATCH: return value_whole("--batch-size", value, 1, 65536, &o->batch);
    case THREADS: return value_whole("--threads", value, 0, 64, &o->threads);
    case PROFILE: return value_path("--profile", value, &o->profile);
    case 'd': return value_path("--data", value, &o->data);
    default: o->apart = 1; return 0;
    }
}

/* -------------------------------------------------------------- the program */

struct run {
    const struct options *options;
    int nreplicas;
    struct digits_source source;
    ipu_infeed *infeed;
    ipu_outfeed *outfeed;
    ipu_graph *graph;
    ipu_executable *executable;
    ipu_replicas *replicas;
};

/* Builds an iteration. inputs: pixels, labels. */
static int build_body(ipu_graph *g, void *context, int32_t ninputs,
                      const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    const struct run *run = context;
    const struct options *o = run->options;
    ipu_tensor w[PERCEPTRON_VARIABLES], dw[PERCEPTRON_VARIABLES], loss;
    ipu_tensor rate = ipu_fill(g, IPU_FLOAT32, 0, NULL, PERCEPTRON_RATE);
    int status =
        perceptron_build(g, (int)o->shards, in[0], in[1], w, &loss, dw);

    (void)ninputs, (void)noutputs, (void)out;
    if (status >= 0 && !o->apart)
        status = ipu_cross_replica_gradients(g, PERCEPTRON_VARIABLES, dw, dw);
    for (int i = 0; i < PERCEPTRON_VARIABLES && status >= 0; i++)
        status = ipu_sgd(g, w[i], dw[i], rate, NULL);
    return status < 0 ? status
                      : ipu_outfeed_enqueue(g, run->outfeed, 1, NULL, &loss);
}

/* Makes both queues, which have a part for each replica. */
static int make_queues(struct run *run)
{
    ipu_infeed_options in = digits_source_options(&run->source, "digits");
    ipu_outfeed_options out;

    in.replicas = run->nreplicas;
    ipu_outfeed_options_init(&out, sizeof out);
    out.name = "losses";
    out.replicas = run->nreplicas;
    if (ipu_infeed_new(&in, &run->infeed) < 0 ||
        ipu_outfeed_new(&out, &run->outfeed) < 0)
        return device_problem();
    return device_status(ipu_infeed_start(run->infeed));
}

static int make_program(struct run *run)
{
    int status = ipu_graph_new(&run->graph);

    if (status >= 0)
        status = ipu_repeat(run->graph, run->options->steps, build_body, run, 0,
                            NULL, run->infeed, NULL);
    if (status >= 0)
        status = ipu_compile(run->graph, NULL, &run->executable);
    return device_status(status);
}

/* Makes the replicas, which begin with the same weights. */
static int make_replicas(struct run *run)
{
    ipu_replicas_options o;

    ipu_replicas_options_init(&o, sizeof o);
    o.ipus = (int32_t)run->options->ipus;
    o.shards = (int32_t)run->options->shards;
    o.threads = (int32_t)run->options->threads;
    if (ipu_replicas_new(run->executable, &o, &run->replicas) < 0)
        return device_problem();
    for (int i = 0; i < PERCEPTRON_VARIABLES; i++) {
        int64_t count;
        float *values = perceptron_draw(i, &count);
        int status = PROBLEM;

        if (values)
            status = device_status(
                ipu_replicas_write(run->replicas, perceptron_names[i], values,
                                   (size_t)count * sizeof *values));
        free(values);
        if (status < 0)
            return status;
    }
    return 0;
}

/* ------------------------------------------------------------- what comes out
 */

/* Computes the mean over the replicas of each iteration's losses. */
static int print_losses(const struct run *run)
{
    ipu_results *results;
    const void *data = NULL;
    const float *losses;
    int status = ipu_outfeed_dequeue(run->outfeed, 1, &results);

    if (status < 0)
        return device_status(status);
    status = ipu_results_tensor(results, NULL, NULL, NULL, &data);
    losses = data;
    for (int64_t i = 0; i < run->options->steps && status >= 0; i++) {
        double sum = 0;

        for (int r = 0; r < run->nreplicas; r++)
            sum += (double)*losses++;
        printf("step %lld loss = %.4f\n", (long long)i, sum / run->nreplicas);
    }
    ipu_results_free(results);
    return device_status(status);
}

/* Compares the weights of the replicas, and prints the result. */
static void print_equal(const struct run *run, int passed_over)
{
    const char *why = NULL, *name;

    printf("weights are equal in all replicas\n");
    for (int i = 0; i < passed_over; i++) {
        name = ipu_replicas_own(run->replicas, i, &why);
        printf("not compared: %s: %s\n", name, why);
    }
}

static int print_end(const struct run *run)
{
    ipu_replicas_info info = {.size = sizeof info};
    int passed_over;

    if (ipu_replicas_stats(run->replicas, &info) < 0)
        return device_problem();
    printf("%d replica%s of %lld IPU%s: %.3g s, %lld cycles; gradients: %lld "
           "means, %lld bytes sent by each replica in a run\n",
           run->nreplicas, run->nreplicas == 1 ? "" : "s",
           (long long)run->options->shards,
           run->options->shards == 1 ? "" : "s", info.seconds,
           (long long)info.total_cycles, (long long)info.done,
           (long long)info.sent_bytes);
    passed_over = ipu_replicas_check_equal(run->replicas);
    if (passed_over >= 0)
        print_equal(run, passed_over);
    else if (run->options->apart)
        printf("weights differ: %s\n", ipu_last_error());
    else
        return device_problem();
    return 0;
}

static int write_profile(const struct run *run)
{
    const struct profile_program program = {"replica", run->executable, NULL,
                                            NULL};

    return profile_finish(run->options->profile, "ipu-replicas", 1, &program);
}

static int run_all(struct run *run)
{
    const struct options *o = run->options;
    int status = profile_check(o->profile);

    run->nreplicas = ipu_replica_count((int32_t)o->ipus, (int32_t)o->shards);
    if (status == 0)
        status = device_status(run->nreplicas);
    if (status == 0)
        status = digits_source_init(&run->source, o->data, (int)o->batch);
    if (status == 0)
        status = make_queues(run);
    if (status == 0)
        status = make_program(run);
    if (status == 0)
        status = make_replicas(run);
    if (status == 0)
        status = device_status(ipu_replicas_run(run->replicas));
    if (status == 0)
        status = print_losses(run);
    if (status == 0)
        status = print_end(run);
    return status == 0 ? write_profile(run) : status;
}

int main(int argc, char **argv)
{
    struct options o = {.ipus = 4, .shards = 1, .steps = 100, .batch = 32};
    const struct line line = {
        "ipu-replicas",
        "Train a perceptron in replicas on several software IPUs, with a "
        "cross-replica optimiser.\v"
        "Exit status: 0 trained, 1 failed, 64 wrong command line.",
        table,
        take_option,
        &o,
        NULL,
        NULL};
    struct run run = {.options = &o};
    int status = line_parse(&line, argc, argv);

    if (status != LINE_RUN)
        return line_settle(&line, status);
    status = run_all(&run);
    ipu_replicas_free(run.replicas);
    ipu_executable_free(run.executable);
    ipu_graph_free(run.graph);
    ipu_infeed_free(run.infeed);
    ipu_outfeed_free(run.outfeed);
    digits_source_fini(&run.source);
    return line_end(&line, status);
}

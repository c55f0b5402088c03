/* SPDX-License-Identifier: Apache-2.0 */
/*
 * losses.c - ipu-losses: reads the losses of a training loop while it runs.
 *
 * A perceptron of 784, 128 and 10 neurons learns digits. Forward pass, backward
 * pass and update are the body of a loop that runs on the device without coming
 * back to the host. Each iteration takes a batch from an iterator and enqueues
 * its loss, which a thread dequeues and prints while the loop continues.
 *
 * With --per-run N the loop has N iterations and is run several times; between
 * the runs the host sums the losses of the last one and prints their mean.
 */
#include <pthread.h>
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
    int64_t steps, batch;
    int64_t per_run; /* 0: one run, and a thread */
};

enum { PROFILE = 256 };

static const struct argp_option table[] = {
    {"data", 'd', "DIR", 0, "directory of MNIST files (digits are drawn)", 0},
    {"steps", 's', "N", 0, "iterations in all (100)", 0},
    {"batch-size", 'b', "N", 0, "images of an iteration (32)", 0},
    {"per-run", 'r', "N", 0,
     "iterations of a run; the mean loss of each is printed (all in one run, "
     "each loss is printed)",
     0},
    LINE_PROFILE_ROW(PROFILE),
    LINE_ROWS,
    {0}};

static int take_option(void *context, int key, const char *value)
{
    struct options *o = context;

    switch (key) {
    case 'd': return value_path("--data", value, &o->data);
    case 's': return value_whole("--steps", value, 1, 1000000, &o->steps);
    case 'b': return value_whole("--batch-size", value, 1, 65536, &o->batch);
    case 'r': return value_whole("--per-run", value, 1, 1000000, &o->per_run);
    default: return value_path("--profile", value, &o->profile);
    }
}

static int check_options(const struct options *o)
{
    if (o->per_run && o->steps % o->per_run)
        return problem_set("--per-run %lld: it must divide --steps %lld",
                           (long long)o->per_run, (long long)o->steps);
    return 0;
}

/* -------------------------------------------------------------- the device */

/* Builds a step of SGD on a batch. inputs: pixels, labels. */
static int build_body(ipu_graph *g, void *outfeed, int32_t ninputs,
                      const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    ipu_tensor w[PERCEPTRON_VARIABLES], dw[PERCEPTRON_VARIABLES], loss;
    ipu_tensor rate = ipu_fill(g, IPU_FLOAT32, 0, NULL, PERCEPTRON_RATE);
    int status = perceptron_build(g, 1, in[0], in[1], w, &loss, dw);

    (void)ninputs, (void)noutputs, (void)out;
    for (int i = 0; i < PERCEPTRON_VARIABLES && status >= 0; i++)
        status = ipu_sgd(g, w[i], dw[i], rate, NULL);
    return status < 0 ? status
                      : ipu_outfeed_enqueue(g, outfeed, 1, NULL, &loss);
}

static int write_weights(ipu_engine *engine)
{
    for (int i = 0; i < PERCEPTRON_VARIABLES; i++) {
        int64_t count;
        float *values = perceptron_draw(i, &count);
        int status = values
                         ? ipu_engine_write(engine, perceptron_names[i], values,
                                            (size_t)count * sizeof *values)
                         : 0;

        if (status < 0)
            device_problem();
        free(values);
        if (status < 0 || !values)
            return PROBLEM;
    }
    return 0;
}

/* ---------------------------------------------------------------- the host */

struct device {
    ipu_infeed *iterator;
    ipu_outfeed *outfeed;
    ipu_graph *graph;
    ipu_executable *executable;
    ipu_engine *engine;
};

static int device_init(struct device *d, const struct options *o,
                       struct digits_source *source)
{
    const ipu_infeed_options in = digits_source_options(source, "digits");
    ipu_outfeed_options out;

    ipu_outfeed_options_init(&out, sizeof out);
    out.name = "losses";
    if (ipu_iterator_new(&in, &d->iterator) < 0 ||
        ipu_outfeed_new(&out, &d->outfeed) < 0 ||
        ipu_graph_new(&d->graph) < 0 ||
        ipu_repeat(d->graph, o->per_run ? o->per_run : o->steps, build_body,
                   d->outfeed, 0, NULL, d->iterator, NULL) < 0 ||
        ipu_compile(d->graph, NULL, &d->executable) < 0 ||
        ipu_engine_new(d->executable, &d->engine) < 0)
        return device_problem();
    return write_weights(d->engine);
}

static void device_fini(struct device *d)
{
    ipu_engine_free(d->engine);
    ipu_executable_free(d->executable);
    ipu_graph_free(d->graph);
    ipu_infeed_free(d->iterator);
    ipu_outfeed_free(d->outfeed);
}

static double loss_of(ipu_results *results)
{
    const void *data = NULL;
    double loss = 0;

    if (ipu_results_tensor(results, NULL, NULL, NULL, &data) >= 0)
        loss = (double)*(const float *)data;
    ipu_results_free(results);
    return loss;
}

struct reader {
    ipu_outfeed *outfeed;
    int64_t steps;
};

/* Prints losses until there were as many as steps, or the run that enqueues
 * them has failed. */
static void *read_losses(void *argument)
{
    const struct reader *r = argument;
    ipu_results *results;

    for (int64_t i = 0; i < r->steps; i++) {
        if (ipu_outfeed_next(r->outfeed, -1, &results) <= 0)
            break;
        printf("step %lld loss = %.4f\n", (long long)i, loss_of(results));
    }
    return NULL;
}

static int run_with_reader(struct device *d, const struct options *o)
{
    struct reader reader = {d->outfeed, o->steps};
    pthread_t thread;
    int status;

    if (pthread_create(&thread, NULL, read_losses, &reader) != 0)
        return problem_set("a thread cannot be made");
    status = ipu_engine_run(d->engine);
    if (status < 0)
        device_problem();
    pthread_join(thread, NULL);
    return status;
}

static int run_and_add_up(struct device *d, const struct options *o)
{
    for (int64_t begin = 0; begin < o->steps; begin += o->per_run) {
        ipu_results *results;
        double total = 0;

        if (ipu_engine_run(d->engine) < 0)
            return device_problem();
        while (ipu_outfeed_next(d->outfeed, 0, &results) > 0)
            total += loss_of(results);
        printf("steps %lld to %lld mean loss = %.4f\n", (long long)begin,
               (long long)(begin + o->per_run - 1), total / (double)o->per_run);
    }
    return 0;
}

static int end_run(const struct device *d, const struct options *o)
{
    const struct profile_program program = {"training", d->executable,
                                            d->engine, NULL};

    return profile_finish(o->profile, "ipu-losses", 1, &program);
}

static int train_network(const struct options *o, struct digits_source *source)
{
    struct device d = {0};
    int status = device_init(&d, o, source);

    if (status >= 0)
        status = profile_start(o->profile, d.engine);
    if (status >= 0)
        status = o->per_run ? run_and_add_up(&d, o) : run_with_reader(&d, o);
    if (status >= 0)
        status = end_run(&d, o);
    device_fini(&d);
    return status;
}

int main(int argc, char **argv)
{
    struct options o = {.steps = 100, .batch = 32};
    const struct line line = {
        "ipu-losses",
        "Train a perceptron in a loop on the software IPU and print losses "
        "while it runs.\v"
        "Exit status: 0 trained, 1 failed, 64 wrong command line.",
        table,
        take_option,
        &o,
        NULL,
        NULL};
    struct digits_source source = {0};
    int status = line_parse(&line, argc, argv);

    if (status == LINE_RUN)
        status = check_options(&o);
    if (status != LINE_RUN)
        return line_settle(&line, status);
    status = profile_check(o.profile);
    if (status == 0)
        status = digits_source_init(&source, o.data, (int)o.batch);
    if (status == 0)
        status = train_network(&o, &source);
    digits_source_fini(&source);
    return line_end(&line, status);
}

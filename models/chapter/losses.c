/* SPDX-License-Identifier: Apache-2.0 */
/*
 * losses.c - ipu-losses: losses of a training loop, read while it runs.
 *
 * A perceptron of 784, 128 and 10 neurons learns digits: all of it, forward,
 * backward and update, is the body of a loop that runs on the device without
 * coming back to the host. Each iteration takes a batch from an iterator and
 * enqueues its loss, which a thread dequeues and prints while the loop goes on.
 *
 * With --per-run N the loop has N iterations and is run several times; between
 * the runs the host adds up the losses of the last one and prints their mean.
 */
#include <argp.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chapter/digits_source.h"
#include "chapter/number.h"
#include "common/problem.h"

enum { HIDDEN = 128, DRAWN = 4096 };

struct options {
    const char *data;
    int steps, batch;
    int per_run; /* 0: one run, and a thread */
};

static const struct argp_option flags[] = {
    {"data", 'd', "DIR", 0, "MNIST files (digits are drawn)", 0},
    {"steps", 's', "N", 0, "iterations in all (100)", 0},
    {"batch", 'b', "N", 0, "images of an iteration (32)", 0},
    {"per-run", 'r', "N", 0,
     "iterations of a run; the mean loss of each is printed (all in one run, "
     "each loss is printed)",
     0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct options *o = state->input;

    switch (key) {
    case 'd': o->data = text; return 0;
    case 's': return chapter_number(state, "--steps", text, &o->steps);
    case 'b': return chapter_number(state, "--batch", text, &o->batch);
    case 'r': return chapter_number(state, "--per-run", text, &o->per_run);
    case ARGP_KEY_END:
        if (o->per_run && o->steps % o->per_run)
            argp_failure(state, EXIT_FAILURE, 0,
                         "--per-run %d: it must divide --steps %d", o->per_run,
                         o->steps);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp parser = {
    .options = flags,
    .parser = parse,
    .doc = "Train a perceptron in a loop on the software IPU and print losses "
           "while it runs.",
};

/* -------------------------------------------------------------- the device */

/* The weights, in the order of names. */
static const char *const names[] = {"w1", "b1", "w2", "b2"};
static const int32_t ndims[] = {2, 1, 2, 1};
static const int64_t shapes[][2] = {
    {IMAGE_PIXELS, HIDDEN}, {HIDDEN}, {HIDDEN, CLASSES}, {CLASSES}};

/* One step of SGD on a batch. inputs: pixels, labels. */
static int body(ipu_graph *g, void *outfeed, int32_t ninputs,
                const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    ipu_tensor w[4], dw[4], rate = ipu_fill(g, IPU_FLOAT32, 0, NULL, 0.1);
    ipu_tensor hidden, logits, loss;
    int status;

    (void)ninputs, (void)noutputs, (void)out;
    for (int i = 0; i < 4; i++)
        w[i] = ipu_variable(g, names[i], IPU_FLOAT32, ndims[i], shapes[i]);
    hidden = ipu_relu(g, ipu_bias_add(g, ipu_matmul(g, in[0], w[0]), w[1]));
    logits = ipu_bias_add(g, ipu_matmul(g, hidden, w[2]), w[3]);
    loss = ipu_mean(g, ipu_softmax_cross_entropy(g, logits, in[1]), 1,
                    (const int32_t[]){0}, 0);
    status = ipu_gradients(g, loss, 4, w, dw);
    for (int i = 0; i < 4 && status >= 0; i++)
        status = ipu_sgd(g, w[i], dw[i], rate, NULL);
    return status < 0 ? status
                      : ipu_outfeed_enqueue(g, outfeed, 1, NULL, &loss);
}

/* Uniform, so that a layer keeps the size of what it is given. */
static int write_weights(ipu_engine *engine)
{
    uint64_t state = 1;

    for (int i = 0; i < 4; i += 2) {
        int64_t count = shapes[i][0] * shapes[i][1];
        float *w = malloc((size_t)count * sizeof *w);
        double most = sqrt(6.0 / (double)shapes[i][0]);
        int status;

        if (!w)
            return problem_set("no memory for weights");
        for (int64_t k = 0; k < count; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            w[k] = (float)(most * ((double)(state >> 11) / (1ll << 52) - 1));
        }
        status =
            ipu_engine_write(engine, names[i], w, (size_t)count * sizeof *w);
        free(w);
        if (status < 0)
            return problem_set("%s", ipu_last_error());
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
        ipu_repeat(d->graph, o->per_run ? o->per_run : o->steps, body,
                   d->outfeed, 0, NULL, d->iterator, NULL) < 0 ||
        ipu_compile(d->graph, NULL, &d->executable) < 0 ||
        ipu_engine_new(d->executable, &d->engine) < 0)
        return problem_set("%s", ipu_last_error());
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
    int steps;
};

/* Print what comes until there were as many losses as steps, or the run that
 * gives them has failed. */
static void *read_losses(void *argument)
{
    const struct reader *r = argument;
    ipu_results *results;

    for (int i = 0; i < r->steps; i++) {
        if (ipu_outfeed_next(r->outfeed, -1, &results) <= 0)
            break;
        printf("step %d loss = %.4f\n", i, loss_of(results));
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
        problem_set("%s", ipu_last_error());
    pthread_join(thread, NULL);
    return status;
}

static int run_and_add_up(struct device *d, const struct options *o)
{
    for (int begin = 0; begin < o->steps; begin += o->per_run) {
        ipu_results *results;
        double total = 0;

        if (ipu_engine_run(d->engine) < 0)
            return problem_set("%s", ipu_last_error());
        while (ipu_outfeed_next(d->outfeed, 0, &results) > 0)
            total += loss_of(results);
        printf("steps %d to %d mean loss = %.4f\n", begin,
               begin + o->per_run - 1, total / o->per_run);
    }
    return 0;
}

static int train(const struct options *o, struct digits_source *source)
{
    struct device d = {0};
    int status = device_init(&d, o, source);

    if (status >= 0)
        status = o->per_run ? run_and_add_up(&d, o) : run_with_reader(&d, o);
    device_fini(&d);
    if (status >= 0 && fflush(stdout) != 0)
        status = problem_set("standard output is closed");
    return status;
}

int main(int argc, char **argv)
{
    struct options o = {.steps = 100, .batch = 32};
    struct digits_source source;
    int status;

    if (argp_parse(&parser, argc, argv, 0, NULL, &o) != 0)
        return EXIT_FAILURE;
    status = digits_source_init(&source, o.data,
                                o.batch > DRAWN ? o.batch : DRAWN, o.batch);
    if (status == 0)
        status = train(&o, &source);
    digits_source_fini(&source);
    if (status < 0)
        fprintf(stderr, "ipu-losses: %s\n", problem_text());
    return status < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

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

#include "chapter/loop.h"
#include "chapter/source.h"
#include "options/line.h"
#include "output/device_problem.h"
#include "output/profile.h"

struct options {
    const char *data, *profile;
    int64_t steps, batch;
    int64_t per_run; /* 0: one run, and a thread */
};

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

static int run_with_reader(struct loop *loop, const struct options *o)
{
    struct reader reader = {loop->outfeed, o->steps};
    pthread_t thread;
    int status;

    if (pthread_create(&thread, NULL, read_losses, &reader) != 0)
        return problem_set("a thread cannot be made");
    status = device_status(ipu_engine_run(loop->engine));
    pthread_join(thread, NULL);
    return status;
}

static int run_and_add_up(struct loop *loop, const struct options *o)
{
    for (int64_t begin = 0; begin < o->steps; begin += o->per_run) {
        ipu_results *results;
        double total = 0;

        if (ipu_engine_run(loop->engine) < 0)
            return device_problem();
        while (ipu_outfeed_next(loop->outfeed, 0, &results) > 0)
            total += loss_of(results);
        printf("steps %lld to %lld mean loss = %.4f\n", (long long)begin,
               (long long)(begin + o->per_run - 1), total / (double)o->per_run);
    }
    return 0;
}

static int run_all(struct perceptron *p, const struct options *o)
{
    int status = profile_check(o->profile);

    if (status == 0)
        status = perceptron_init(p, source_digits(o->data, o->batch),
                                 o->per_run ? o->per_run : o->steps, 1);
    if (status == 0)
        status = loop_load(&p->loop, o->profile);
    for (int i = 0; i < p->nvariables && status == 0; i++)
        status = device_status(ipu_engine_write(
            p->loop.engine, p->variables[i].name, perceptron_values(p, i),
            (size_t)p->variables[i].count * sizeof(float)));
    if (status == 0)
        status = o->per_run ? run_and_add_up(&p->loop, o)
                            : run_with_reader(&p->loop, o);
    return status < 0 ? status
                      : loop_profile(&p->loop, o->profile, "ipu-losses");
}

int main(int argc, char **argv)
{
    struct options o = {.steps = 100, .batch = 32};
    const struct line_row rows[] = {
        {"data", 'd', "DIR", "directory of MNIST files (digits are drawn)",
         LINE_PATH(o.data)},
        {"steps", 's', "N", "iterations in all (100)",
         LINE_WHOLE(o.steps, 1, 1000000)},
        {"batch-size", 'b', "N", "images of an iteration (32)",
         LINE_WHOLE(o.batch, 1, 65536)},
        {"per-run", 'r', "N",
         "iterations of a run; the mean loss of each is printed (all in one "
         "run, each loss is printed)",
         LINE_WHOLE(o.per_run, 1, 1000000)},
        LINE_PROFILE(o.profile),
        {0}};
    const struct line line = {
        .program = "ipu-losses",
        .doc = "Train a perceptron in a loop on the software IPU and print "
               "losses while it runs.\v"
               "Exit status: 0 trained, 1 failed, 64 wrong command line.",
        .rows = rows};
    struct perceptron p = {.shards = 1};
    int status = line_parse(&line, argc, argv);

    if (status == LINE_RUN && o.per_run && o.steps % o.per_run)
        status = problem_set("--per-run %lld: it must divide --steps %lld",
                             (long long)o.per_run, (long long)o.steps);
    if (status != LINE_RUN)
        return line_settle(&line, status);
    status = run_all(&p, &o);
    perceptron_fini(&p);
    return line_end(&line, status);
}

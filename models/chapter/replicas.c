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

#include "chapter/loop.h"
#include "chapter/source.h"
#include "options/line.h"
#include "output/device_problem.h"
#include "output/profile.h"

struct run {
    const char *data, *profile;
    int64_t steps, batch;
    bool apart;
    int nreplicas;
    struct perceptron perceptron;
    ipu_replicas_options of;
    ipu_replicas *replicas;
};

/* Compiles the program, with the cross-replica optimiser or without it, and
 * runs it on replicas that begin with the same weights. */
static int run_replicas(struct run *run)
{
    struct perceptron *p = &run->perceptron;
    int status;

    p->shards = run->of.shards;
    p->averages = !run->apart;
    run->nreplicas = ipu_replica_count(run->of.ipus, run->of.shards);
    if (run->nreplicas < 0)
        return device_problem();
    if (perceptron_init(p, source_digits(run->data, run->batch), run->steps,
                        run->nreplicas) < 0)
        return PROBLEM;
    status = ipu_replicas_new(p->loop.executable, &run->of, &run->replicas);
    for (int i = 0; i < p->nvariables && status >= 0; i++)
        status = ipu_replicas_write(
            run->replicas, p->variables[i].name, perceptron_values(p, i),
            (size_t)p->variables[i].count * sizeof(float));
    return device_status(status < 0 ? status : ipu_replicas_run(run->replicas));
}

/* Computes the mean over the replicas of each iteration's losses. */
static int print_losses(const struct run *run)
{
    ipu_results *results;
    const void *losses = NULL;
    int status = ipu_outfeed_dequeue(run->perceptron.loop.outfeed, 1, &results);

    if (status < 0)
        return device_status(status);
    status = ipu_results_tensor(results, NULL, NULL, NULL, &losses);
    for (int64_t i = 0; i < run->steps && status >= 0; i++) {
        double sum = 0;

        for (int r = 0; r < run->nreplicas; r++)
            sum += (double)((const float *)losses)[i * run->nreplicas + r];
        printf("step %lld loss = %.4f\n", (long long)i, sum / run->nreplicas);
    }
    ipu_results_free(results);
    return device_status(status);
}

/* Prints what the run takes on the chips, and whether the weights are equal. */
static int print_end(const struct run *run)
{
    ipu_replicas_info info = {.size = sizeof info};
    int passed_over;

    if (ipu_replicas_stats(run->replicas, &info) < 0)
        return device_problem();
    printf("%d replica%s of %d IPU%s: %.3g s, %lld cycles; gradients: %lld "
           "means, %lld bytes sent by each replica in a run\n",
           run->nreplicas, run->nreplicas == 1 ? "" : "s", run->of.shards,
           run->of.shards == 1 ? "" : "s", info.seconds,
           (long long)info.total_cycles, (long long)info.done,
           (long long)info.sent_bytes);
    passed_over = ipu_replicas_check_equal(run->replicas);
    if (passed_over < 0 && !run->apart)
        return device_problem();
    if (passed_over < 0)
        printf("weights differ: %s\n", ipu_last_error());
    else
        printf("weights are equal in all replicas\n");
    for (int i = 0; i < passed_over; i++) {
        const char *why, *name = ipu_replicas_own(run->replicas, i, &why);

        printf("not compared: %s: %s\n", name, why);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct run o = {.steps = 100, .batch = 32};
    const struct line_row rows[] = {
        {"ipus", 0, "N", "IPUs of the system, a multiple of --shards (4)",
         LINE_WHOLE(o.of.ipus, 1, 64)},
        {"shards", 0, "N",
         "IPUs that the program takes: 1, or 2, one for each layer (1)",
         LINE_WHOLE(o.of.shards, 1, 2)},
        {"steps", 0, "N", "iterations (100)", LINE_WHOLE(o.steps, 1, 1000000)},
        {"batch-size", 0, "N", "images of a replica and iteration (32)",
         LINE_WHOLE(o.batch, 1, 65536)},
        {"apart", 0, NULL,
         "without the cross-replica optimiser: each replica learns by itself",
         LINE_FLAG(o.apart)},
        {"threads", 0, "N",
         "threads that replicas run on; 0: one each, if there are cores (0)",
         LINE_WHOLE(o.of.threads, 0, 64)},
        {"data", 'd', "DIR", "directory of MNIST files (digits are drawn)",
         LINE_PATH(o.data)},
        LINE_PROFILE(o.profile),
        {0}};
    const struct line line = {
        .program = "ipu-replicas",
        .doc = "Train a perceptron in replicas on several software IPUs, with "
               "a cross-replica optimiser.\v"
               "Exit status: 0 trained, 1 failed, 64 wrong command line.",
        .rows = rows};
    int status;

    ipu_replicas_options_init(&o.of, sizeof o.of);
    o.of.ipus = 4;
    status = line_parse(&line, argc, argv);
    if (status != LINE_RUN)
        return line_settle(&line, status);
    status = profile_check(o.profile);
    if (status == 0)
        status = run_replicas(&o);
    if (status == 0)
        status = print_losses(&o);
    if (status == 0)
        status = print_end(&o);
    if (status == 0)
        status = loop_profile(&o.perceptron.loop, o.profile, "ipu-replicas");
    ipu_replicas_free(o.replicas);
    perceptron_fini(&o.perceptron);
    return line_end(&line, status);
}

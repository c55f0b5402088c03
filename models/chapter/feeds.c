/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feeds.c - ipu-feeds: runs a loop on the device between a queue of inputs and
 * one of outputs.
 *
 * A data set of two tensors, each 800 ones, is fed to a loop of ten iterations
 * on the device. Each iteration adds them, subtracts them, and enqueues both
 * results, which the host dequeues when the loop has ended. The counter is
 * carried from iteration to iteration.
 */
#include <ipu.h>
#include <stdio.h>

#include "options/line.h"
#include "options/values.h"
#include "output/device_problem.h"
#include "output/profile.h"

enum { ITERATIONS = 10, WIDTH = 800 };

static int next_ones(void *context, void *const *buffers)
{
    (void)context;
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < WIDTH; i++)
            ((float *)buffers[t])[i] = 1;
    return 1; /* the data have no end */
}

/* The body of the loop. inputs: counter, x1, x2; output: counter. */
static int build_body(ipu_graph *g, void *outfeed, int32_t ninputs,
                      const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    static const char *const names[] = {"d1", "d2"};
    const ipu_tensor d[] = {ipu_add(g, in[1], in[2]),
                            ipu_subtract(g, in[1], in[2])};

    (void)ninputs, (void)noutputs;
    out[0] = ipu_add(g, in[0], ipu_fill(g, IPU_INT32, 0, NULL, 1));
    return ipu_outfeed_enqueue(g, outfeed, 2, names, d);
}

static int make_queues(ipu_infeed **infeed, ipu_outfeed **outfeed)
{
    const ipu_feed_tensor tensors[] = {
        {.name = "x1", .dtype = IPU_FLOAT32, .ndim = 1, .shape = {WIDTH}},
        {.name = "x2", .dtype = IPU_FLOAT32, .ndim = 1, .shape = {WIDTH}}};
    ipu_infeed_options in;
    ipu_outfeed_options out;
    int status;

    ipu_infeed_options_init(&in, sizeof in);
    in.name = "ones";
    in.ntensors = 2;
    in.tensors = tensors;
    in.source.next = next_ones;
    ipu_outfeed_options_init(&out, sizeof out);
    out.name = "results";
    status = ipu_infeed_new(&in, infeed);
    return status < 0 ? status : ipu_outfeed_new(&out, outfeed);
}

/* Builds and compiles the program. */
static int build_program(ipu_graph *g, ipu_infeed *infeed, ipu_outfeed *outfeed)
{
    ipu_tensor counter = ipu_fill(g, IPU_INT32, 0, NULL, 0);
    int status = ipu_repeat(g, ITERATIONS, build_body, outfeed, 1, &counter,
                            infeed, &counter);

    return status < 0 ? status : ipu_output(g, "counter", counter);
}

static int run_program(ipu_engine *engine, ipu_infeed *infeed)
{
    int32_t counter = 0;
    int status =
        ipu_engine_connect(engine, "counter", &counter, sizeof counter);

    if (status >= 0)
        status = ipu_infeed_start(infeed);
    if (status >= 0)
        status = ipu_engine_run(engine);
    if (status >= 0)
        printf("counter %d\n", (int)counter);
    return status;
}

static int print_values(const ipu_results *results, const char *name)
{
    int64_t shape[IPU_MAX_RESULT_DIMS];
    const void *data;
    int ndim = ipu_results_tensor(results, name, NULL, shape, &data);

    if (ndim < 0)
        return ndim;
    printf("%s [", name);
    for (int i = 0; i < ndim; i++)
        printf("%s%lld", i ? ", " : "", (long long)shape[i]);
    printf("], first %g, last %g\n", (double)((const float *)data)[0],
           (double)((const float *)data)[shape[0] * shape[1] - 1]);
    return 0;
}

static int print_results(ipu_outfeed *outfeed)
{
    ipu_results *results;
    int status = ipu_outfeed_dequeue(outfeed, 1, &results);

    if (status < 0)
        return status;
    status = print_values(results, "d1");
    if (status >= 0)
        status = print_values(results, "d2");
    ipu_results_free(results);
    return status;
}

struct feeds {
    const char *profile;
    ipu_infeed *infeed;
    ipu_outfeed *outfeed;
    ipu_graph *graph;
    ipu_executable *executable;
    ipu_engine *engine;
};

static int run_all(struct feeds *f)
{
    int status = make_queues(&f->infeed, &f->outfeed);

    if (status >= 0)
        status = ipu_graph_new(&f->graph);
    if (status >= 0)
        status = build_program(f->graph, f->infeed, f->outfeed);
    if (status >= 0)
        status = ipu_compile(f->graph, NULL, &f->executable);
    if (status >= 0)
        status = ipu_engine_new(f->executable, &f->engine);
    if (status >= 0 && f->profile)
        status = ipu_engine_profile(f->engine, 1);
    if (status >= 0)
        status = run_program(f->engine, f->infeed);
    if (status >= 0)
        status = print_results(f->outfeed);
    return device_status(status);
}

static int write_profile(const struct feeds *f)
{
    const struct profile_program program = {"loop", f->executable, f->engine,
                                            NULL};

    return profile_finish(f->profile, "ipu-feeds", 1, &program);
}

static int take_option(void *context, int key, const char *value)
{
    struct feeds *f = context;

    (void)key;
    return value_path("--profile", value, &f->profile);
}

static const struct argp_option table[] = {
    LINE_PROFILE_ROW('p'), LINE_ROWS, {0}};

int main(int argc, char **argv)
{
    struct feeds f = {0};
    const struct line line = {
        "ipu-feeds",
        "Run a loop of ten iterations on the software IPU, which takes its "
        "data from a queue and gives its results to another.\v"
        "Exit status: 0 done, 1 failed, 64 wrong command line.",
        table,
        take_option,
        &f,
        NULL,
        NULL};
    int status = line_parse(&line, argc, argv);

    if (status != LINE_RUN)
        return line_settle(&line, status);
    status = profile_check(f.profile);
    if (status == 0)
        status = run_all(&f);
    if (status == 0)
        status = write_profile(&f);
    ipu_engine_free(f.engine);
    ipu_executable_free(f.executable);
    ipu_graph_free(f.graph);
    ipu_infeed_free(f.infeed);
    ipu_outfeed_free(f.outfeed);
    return line_end(&line, status);
}

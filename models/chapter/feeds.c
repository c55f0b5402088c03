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
#include <hvd_dataset.h>
#include <stdio.h>

#include "chapter/loop.h"
#include "options/line.h"
#include "output/device_problem.h"
#include "output/profile.h"

enum { ITERATIONS = 10, WIDTH = 800 };

/* One element, again and again. */
static hvd_dataset *open_ones(void)
{
    static const hvd_component components[] = {{"x1", HVD_FLOAT32, 1, {WIDTH}},
                                               {"x2", HVD_FLOAT32, 1, {WIDTH}}};
    static float ones[WIDTH];
    const void *const arrays[] = {ones, ones};

    for (int i = 0; i < WIDTH; i++)
        ones[i] = 1;
    return hvd_dataset_repeat(
        hvd_dataset_memory(2, components, arrays, 1, NULL, NULL), -1);
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

static int compile_program(struct loop *loop)
{
    ipu_tensor counter;
    int status = loop_init(loop, open_ones(), "results", 1);

    if (status < 0)
        return status;
    counter = ipu_fill(loop->graph, IPU_INT32, 0, NULL, 0);
    status = ipu_repeat(loop->graph, ITERATIONS, build_body, loop->outfeed, 1,
                        &counter, loop->infeed, &counter);
    if (status >= 0)
        status = ipu_output(loop->graph, "counter", counter);
    return status < 0 ? device_problem() : loop_compile(loop);
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

static int run_program(struct loop *loop)
{
    int32_t counter = 0;

    if (ipu_engine_connect(loop->engine, "counter", &counter, sizeof counter) <
            0 ||
        ipu_engine_run(loop->engine) < 0)
        return device_problem();
    printf("counter %d\n", (int)counter);
    return device_status(print_results(loop->outfeed));
}

int main(int argc, char **argv)
{
    const char *profile = NULL;
    const struct line_row rows[] = {
        {"profile", 'p', "DIR", LINE_PROFILE_HELP, LINE_PATH(profile)}, {0}};
    const struct line line = {
        .program = "ipu-feeds",
        .doc = "Run a loop of ten iterations on the software IPU, which takes "
               "its data from a queue and gives its results to another.\v"
               "Exit status: 0 done, 1 failed, 64 wrong command line.",
        .rows = rows};
    struct loop loop = {0};
    int status = line_parse(&line, argc, argv);

    if (status != LINE_RUN)
        return line_settle(&line, status);
    status = profile_check(profile);
    if (status == 0)
        status = compile_program(&loop);
    if (status == 0)
        status = loop_load(&loop, profile);
    if (status == 0)
        status = run_program(&loop);
    if (status == 0)
        status = loop_profile(&loop, profile, "ipu-feeds");
    loop_fini(&loop);
    return line_end(&line, status);
}

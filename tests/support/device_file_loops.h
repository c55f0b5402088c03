/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_file_loops.h - a program with loops, queues and remote buffers, and
 * the queues that are connected to it when it has been loaded, for tests of
 * files.
 */
#ifndef HVD_TESTS_DEVICE_FILE_LOOPS_H
#define HVD_TESTS_DEVICE_FILE_LOOPS_H

#include "device_file.h"
#include "feeds.h"

enum { LOOPS_RUNS = 4, LOOPS_ROWS = 8, LOOPS_WIDE = 1200 };

struct loops_queues {
    struct source steps, source; /* one for each iteration, one for each run */
    ipu_infeed *data, *first;
    ipu_outfeed *results, *last;
};

static inline struct loops_queues *loops_queues_new(void)
{
    struct loops_queues *q = calloc(1, sizeof *q);
    ipu_feed_tensor tensors[2];
    ipu_infeed_options in;
    ipu_outfeed_options out;

    q->steps = source_of(0.5f, 0.25f);
    in = infeed_options(&q->steps, tensors, 2, 2);
    MUST(ipu_infeed_new(&in, &q->data));
    q->source = source_of(1, 1);
    in = infeed_options(&q->source, tensors, 1, 2);
    in.name = "first";
    MUST(ipu_infeed_new(&in, &q->first));
    out = outfeed_options(IPU_OUTFEED_ALL);
    MUST(ipu_outfeed_new(&out, &q->results));
    out = outfeed_options(IPU_OUTFEED_LAST);
    out.name = "last";
    MUST(ipu_outfeed_new(&out, &q->last));
    return q;
}

/* Programs may still use the queues: their data sets stay alive. */
static inline void loops_queues_let_go(struct loops_queues *q)
{
    ipu_infeed_free(q->data);
    ipu_infeed_free(q->first);
    ipu_outfeed_free(q->results);
    ipu_outfeed_free(q->last);
}

static inline void loops_queues_free(struct loops_queues *q)
{
    loops_queues_let_go(q);
    free(q);
}

/* These tensors of the outer graph are used by the loops' bodies. */
struct loops_outer {
    ipu_tensor variable, wide, scale, row;
    ipu_remote_buffer rows;
    ipu_outfeed *results;
};

static inline ipu_tensor loops_int(ipu_graph *g, double value)
{
    return ipu_fill(g, IPU_INT32, 0, NULL, value);
}

static inline int loops_below(ipu_graph *g, void *context, int32_t ninputs,
                              const ipu_tensor *in, int32_t noutputs,
                              ipu_tensor *out)
{
    (void)context, (void)ninputs, (void)noutputs;
    out[0] = ipu_less(g, in[0], loops_int(g, 3));
    return 0;
}

static inline int loops_count(ipu_graph *g, void *context, int32_t ninputs,
                              const ipu_tensor *in, int32_t noutputs,
                              ipu_tensor *out)
{
    struct loops_outer *o = context;

    (void)ninputs, (void)noutputs;
    out[0] = ipu_add(g, in[0], loops_int(g, 1));
    out[1] = ipu_multiply(g, in[1], o->scale);
    return 0;
}

/* The inputs are the number of the iteration, a sum, x1, x2. */
static inline int loops_body(ipu_graph *g, void *context, int32_t ninputs,
                             const ipu_tensor *in, int32_t noutputs,
                             ipu_tensor *out)
{
    static const char *const names[] = {"sum", "tries"};
    const int32_t axis = 0;
    struct loops_outer *o = context;
    ipu_tensor inner[2], row, bias;

    (void)ninputs, (void)noutputs;
    inner[0] = loops_int(g, 0);
    inner[1] = ipu_add(g, ipu_multiply(g, in[2], o->variable), in[3]);
    MUST(ipu_while(g, 5, loops_below, loops_count, o, 2, inner, NULL, inner));
    MUST(ipu_remote_store(g, o->rows, in[0], inner[1]));
    row = ipu_remote_load(g, o->rows, in[0]);
    bias = ipu_mean(g, o->wide, 1, &axis, 0);
    out[0] = ipu_add(g, in[0], ipu_counter(g, "iterations"));
    out[0] = ipu_subtract(g, out[0], ipu_subtract(g, out[0], in[0]));
    out[0] = ipu_add(g, out[0], loops_int(g, 1));
    out[1] =
        ipu_add(g, in[1], ipu_add(g, row, ipu_broadcast(g, bias, 1, SHAPE(2))));
    MUST(ipu_assign(g, o->variable, ipu_tanh(g, out[1])));
    MUST(ipu_host_call(g, "seen", out[1], device_no_call, NULL));
    return ipu_outfeed_enqueue(g, o->results, 2, names,
                               (const ipu_tensor[]){out[1], inner[0]});
}

/* The program has outputs "sum" [2], "variable" [2]; variables "variable" [2],
 * "iterations"; remote buffer "rows" [8][2]; a host call "seen" in each
 * iteration. */
static inline void file_build_loops(ipu_graph *g, struct loops_queues *q)
{
    static float wide[LOOPS_WIDE];
    const float scale[2] = {0.5f, -1.5f};
    struct loops_outer o = {.results = q->results};
    ipu_tensor carried[2], first, sum;

    for (int i = 0; i < LOOPS_WIDE; i++)
        wide[i] = (float)(i % 7) - 2.5f;
    o.variable = ipu_variable(g, "variable", IPU_FLOAT32, 1, SHAPE(2));
    o.rows =
        ipu_remote_buffer_new(g, "rows", IPU_FLOAT32, LOOPS_ROWS, 1, SHAPE(2));
    /* Bodies copy the first constant, and are bound to the second. */
    o.scale = ipu_constant(g, IPU_FLOAT32, 1, SHAPE(2), scale);
    o.wide = ipu_constant(g, IPU_FLOAT32, 1, SHAPE(LOOPS_WIDE), wide);
    MUST(ipu_infeed_dequeue(g, q->first, &first));
    carried[0] = loops_int(g, 1);
    carried[1] = ipu_scale(g, first, 2, 0.125);
    MUST(ipu_repeat(g, LOOPS_RUNS, loops_body, &o, 2, carried, q->data,
                    carried));
    sum = ipu_add(g, carried[1],
                  o.variable); /* the variable as the loop has left it */
    MUST(ipu_remote_store(g, o.rows, carried[0], sum));
    MUST(ipu_outfeed_enqueue(g, q->last, 1, NULL, &sum));
    MUST(ipu_output(g, "sum", sum));
    MUST(ipu_output(g, "variable now", o.variable));
}

static inline void loops_connect(ipu_executable *x, struct loops_queues *q)
{
    MUST(ipu_executable_connect_infeed(x, q->data));
    MUST(ipu_executable_connect_infeed(x, q->first));
    MUST(ipu_executable_connect_outfeed(x, q->results));
    MUST(ipu_executable_connect_outfeed(x, q->last));
}

#endif

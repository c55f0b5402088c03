/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adder.h - a loop between an infeed and an outfeed, for tests of queues.
 */
#ifndef HVD_TESTS_ADDER_H
#define HVD_TESTS_ADDER_H

#include "device.h"
#include "feeds.h"

/* The loop of the tests: total = total + x, w = w + x, x to the outfeed. */
struct adder {
    struct device d;
    struct source source;
    ipu_infeed *infeed;
    ipu_outfeed *outfeed;
    ipu_tensor w;
    float total;
};

static inline int add_up(ipu_graph *g, void *context, int32_t ninputs,
                         const ipu_tensor *in, int32_t noutputs,
                         ipu_tensor *out)
{
    const struct adder *a = context;
    ipu_tensor x = ipu_reduce_sum(g, in[1], 1);

    (void)ninputs, (void)noutputs;
    out[0] = ipu_add(g, in[0], x);
    MUST(ipu_assign(g, a->w, ipu_add(g, a->w, x)));
    return a->outfeed ? ipu_outfeed_enqueue(g, a->outfeed, 1, NULL, &out[0])
                      : 0;
}

/* Elements 1, 2, ... up to last (0: without end). */
static inline void adder_init(struct adder *a, int64_t count, int last,
                              const ipu_outfeed_options *options)
{
    ipu_tensor zero, total;

    *a = (struct adder){.d = device_new(), .source = source_of(1, 1)};
    a->source.last = last;
    a->infeed = infeed_of(&a->source, 1, 1);
    if (options)
        MUST(ipu_outfeed_new(options, &a->outfeed));
    a->w = ipu_variable(a->d.graph, "w", IPU_FLOAT32, 0, NULL);
    zero = ipu_fill(a->d.graph, IPU_FLOAT32, 0, NULL, 0);
    MUST(ipu_repeat(a->d.graph, count, add_up, a, 1, &zero, a->infeed, &total));
    MUST(ipu_output(a->d.graph, "total", total));
    device_load(&a->d);
    device_connect(&a->d, "total", &a->total, 1);
    MUST(ipu_infeed_start(a->infeed));
}

static inline float adder_w(struct adder *a)
{
    float w;

    MUST(ipu_engine_read(a->d.engine, "w", &w, sizeof w));
    return w;
}

static inline void adder_free(struct adder *a)
{
    device_free(&a->d);
    ipu_infeed_free(a->infeed);
    ipu_outfeed_free(a->outfeed);
    ck_assert_int_eq(a->source.closed, 1);
}

#endif

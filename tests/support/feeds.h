/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feeds.h - a data set and queues, for tests.
 *
 * The data set's element number n (from 1) is filled with first + (n - 1) *
 * step. It can end, fail or block at an element.
 */
#ifndef HVD_TESTS_FEEDS_H
#define HVD_TESTS_FEEDS_H

#include <sched.h>
#include <stdatomic.h>

#include "device.h"

struct source {
    float first, step;
    int32_t ntensors;
    int64_t count; /* elements of each tensor */
    int last;      /* number of the last element; 0: it never ends */
    int fail_at;  /* number of the element for which next returns -5; 0: none */
    int block_at; /* number of the element before which next waits for release;
                     0: none */
    atomic_int release;
    atomic_int given; /* elements, since it was rewound */
    int rewound, closed;
};

static inline struct source source_of(float first, float step)
{
    return (struct source){.first = first, .step = step};
}

static inline int source_next(void *context, void *const *buffers)
{
    struct source *s = context;
    int n = atomic_load(&s->given) + 1;

    if (n == s->block_at)
        while (!atomic_load(&s->release))
            sched_yield();
    if (n == s->fail_at)
        return -5;
    if (s->last && n > s->last)
        return 0;
    for (int32_t t = 0; t < s->ntensors; t++)
        for (int64_t i = 0; i < s->count; i++)
            ((float *)buffers[t])[i] = s->first + s->step * (float)(n - 1);
    atomic_store(&s->given, n);
    return 1;
}

static inline int source_rewind(void *context)
{
    struct source *s = context;

    atomic_store(&s->given, 0);
    s->rewound++;
    return 0;
}

static inline void source_close(void *context)
{
    struct source *s = context;

    s->closed++;
}

/* Describes ntensors tensors "x1", "x2" of count floats each; tensors has room
 * for 2 and must live as long as the options. */
static inline ipu_infeed_options infeed_options(struct source *s,
                                                ipu_feed_tensor *tensors,
                                                int32_t ntensors, int64_t count)
{
    static const char *const called[] = {"x1", "x2"};
    ipu_infeed_options o;

    s->ntensors = ntensors;
    s->count = count;
    for (int32_t i = 0; i < ntensors; i++)
        tensors[i] = (ipu_feed_tensor){.name = called[i],
                                       .dtype = IPU_FLOAT32,
                                       .ndim = 1,
                                       .shape = {count}};
    ipu_infeed_options_init(&o, sizeof o);
    o.name = "data";
    o.ntensors = ntensors;
    o.tensors = tensors;
    o.source = (ipu_source){source_next, source_rewind, source_close, s};
    return o;
}

static inline ipu_infeed *infeed_of(struct source *s, int32_t ntensors,
                                    int64_t count)
{
    ipu_feed_tensor tensors[2];
    const ipu_infeed_options o = infeed_options(s, tensors, ntensors, count);
    ipu_infeed *infeed;

    MUST(ipu_infeed_new(&o, &infeed));
    return infeed;
}

static inline ipu_outfeed_options outfeed_options(ipu_outfeed_mode mode)
{
    ipu_outfeed_options o;

    ipu_outfeed_options_init(&o, sizeof o);
    o.name = "results";
    o.mode = mode;
    return o;
}

static inline ipu_outfeed *outfeed_of(ipu_outfeed_mode mode)
{
    const ipu_outfeed_options o = outfeed_options(mode);
    ipu_outfeed *outfeed;

    MUST(ipu_outfeed_new(&o, &outfeed));
    return outfeed;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replicated.h - replicas of one program, connected and run, for tests.
 */
#ifndef HVD_TESTS_REPLICATED_H
#define HVD_TESTS_REPLICATED_H

#include "device.h"

enum { COUNT = 1031 };

static struct device d;
static ipu_replicas_options options;
static ipu_replicas *replicas;

static inline void set_up(void)
{
    d = device_new();
    ipu_replicas_options_init(&options, sizeof options);
    replicas = NULL;
}

static inline void tear_down(void)
{
    ipu_replicas_free(replicas);
    device_free(&d);
}

static inline void start(int count)
{
    options.ipus = count;
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    MUST(ipu_replicas_new(d.executable, &options, &replicas));
    ck_assert_int_eq(ipu_replicas_count(replicas), count);
}

static inline void connect(const char *name, void *data, size_t count)
{
    MUST(ipu_replicas_connect(replicas, name, data, count * 4));
}

static inline ipu_replicas_info stats(void)
{
    ipu_replicas_info info = {.size = sizeof info};

    MUST(ipu_replicas_stats(replicas, &info));
    return info;
}

#endif

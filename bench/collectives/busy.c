/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/busy.h"

#include <stdlib.h>

enum { VALUES = 256, PASSES = 64 };

void busy_unit(void)
{
    float values[VALUES];

    for (int i = 0; i < VALUES; i++)
        values[i] = (float)i;
    for (int pass = 0; pass < PASSES; pass++) {
        for (int i = 0; i < VALUES; i++)
            values[i] = values[i] * 0.999f + 0.5f;
        /* The compiler must keep each pass. */
        __asm__ volatile("" ::"r"(values) : "memory");
    }
}

static void *compute_until_stopped(void *argument)
{
    struct busy *busy = argument;

    while (!atomic_load_explicit(&busy->stop, memory_order_relaxed))
        busy_unit();
    return NULL;
}

int busy_start(struct busy *busy, int n)
{
    *busy = (struct busy){.threads = calloc((size_t)n, sizeof(pthread_t))};
    if (!busy->threads)
        return -1;
    while (busy->n < n) {
        if (pthread_create(&busy->threads[busy->n], NULL, compute_until_stopped,
                           busy) != 0) {
            busy_stop(busy);
            return -1;
        }
        busy->n++;
    }
    return 0;
}

void busy_stop(struct busy *busy)
{
    atomic_store_explicit(&busy->stop, 1, memory_order_relaxed);
    for (int i = 0; i < busy->n; i++)
        pthread_join(busy->threads[i], NULL);
    free(busy->threads);
    busy->threads = NULL;
    busy->n = 0;
}

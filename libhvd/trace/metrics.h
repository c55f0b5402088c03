/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h - counters of the library's work. A request changes a few relaxed
 * atomics, which any thread may read at any time (hvd__metrics_copy in
 * metrics.c loads all of them). They publish nothing else.
 */
#ifndef HVD_TRACE_METRICS_H
#define HVD_TRACE_METRICS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "hvd.h"

/* The life of a request, in hvd__now_ns; 0: not reached. */
struct hvd__times {
    int64_t submitted_ns;
    int64_t decided_ns; /* this rank knew that all ranks had submitted it */
    int64_t started_ns; /* a lane was free */
    int64_t packed_ns;  /* data was packed, if it had to be */
    int64_t moved_ns;   /* the data has arrived */
    int64_t done_ns;
};

struct hvd__kind_counters {
    atomic_int_fast64_t submitted, completed, failed, bytes;
    atomic_int_fast64_t waiting_ns, queued_ns, moving_ns, latency_ns;
    atomic_int_fast64_t latency[HVD_LATENCY_BUCKETS];
};

struct hvd__metrics {
    atomic_int_fast64_t batches, batched, fused, fused_bytes;
    atomic_int_fast64_t messages, message_bytes, refused;
    atomic_int_fast64_t blocked_ns, computing_ns, sent_bytes;
    struct hvd__kind_counters kinds[HVD_NUM_KINDS];
};

static inline void hvd__count(atomic_int_fast64_t *counter, int64_t by)
{
    atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

/* Adds to a counter that only the driver changes, which is cheaper than an
 * atomic addition. */
static inline void hvd__count_alone(atomic_int_fast64_t *counter, int64_t by)
{
    atomic_store_explicit(
        counter, atomic_load_explicit(counter, memory_order_relaxed) + by,
        memory_order_relaxed);
}

/* Counts n requests that ended with the same status at the same times; bytes is
 * the sum of their sizes. Only the driver calls it. */
void hvd__metrics_completed(struct hvd__metrics *metrics, hvd_kind kind,
                            int64_t n, int64_t bytes, int status,
                            const struct hvd__times *times);

void hvd__metrics_read(const struct hvd__metrics *metrics, hvd_metrics *copy);

/* Prints in the text exposition format of Prometheus; rank is a label. The text
 * is cut to size. Returns the length of the whole, without the NUL. */
size_t hvd__metrics_print(const hvd_metrics *metrics, int rank, char *text,
                          size_t size);

/* Replaces the file by the text, so that no reader sees half of it. If first is
 * true, also removes files that killed processes left. HVD_ERR_FILE says why it
 * could not be written. */
int hvd__metrics_write(const hvd_metrics *metrics, int rank, const char *path,
                       bool first);

#endif

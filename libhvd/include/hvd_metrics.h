/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd_metrics.h - counters of what was done, and the timeline: a part of hvd.h,
 * which includes it.
 */
#ifndef HVD_METRICS_H
#define HVD_METRICS_H

#include <stdint.h>

#include "hvd_constants.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

enum { HVD_LATENCY_BUCKETS = 28 };

/* Counters of one kind of the program's requests, on this rank, since hvd_init.
 * Requests for starting and for process sets are not counted. */
typedef struct hvd_kind_metrics {
    int64_t submitted;
    int64_t completed;
    int64_t failed;
    int64_t bytes;      /* inputs of requests that completed */
    int64_t waiting_ns; /* from submission until all ranks had submitted */
    int64_t queued_ns;  /* from then until it was begun */
    int64_t moving_ns;  /* from then until it was done */
    int64_t latency_ns; /* the sum; of blocking calls for a few bytes, one in
                           some is timed, and stands for the next */
    int64_t latency[HVD_LATENCY_BUCKETS]; /* requests that took less than 2^i
                                             microseconds and not less than
                                             2^(i-1); the last: all others */
} hvd_kind_metrics;

typedef struct hvd_metrics {
    uint32_t size; /* sizeof(hvd_metrics), set by the caller */
    int32_t reserved;
    int64_t batches;       /* run by this rank */
    int64_t batched;       /* requests in them */
    int64_t fused;         /* batches of more than one request */
    int64_t fused_bytes;   /* inputs in those */
    int64_t messages;      /* messages of the negotiation sent */
    int64_t message_bytes; /* bytes of those */
    int64_t refused;       /* submissions of this rank that were refused */
    int64_t blocked_ns;    /* time of threads in hvd_wait and blocking calls */
    hvd_kind_metrics kinds[HVD_NUM_KINDS]; /* by hvd_kind */
    int64_t computing_ns; /* part of moving_ns: arithmetic of reductions of
                             16 KiB or more */
    int64_t sent_bytes;   /* bytes of tensors sent to other ranks over MPI;
                             ranks of a host share memory and send none */
} hvd_metrics;

/* Reads the counters. Not collective; never blocks. */
int hvd_get_metrics(hvd_metrics *metrics);

/* Writes them as text that Prometheus reads, cut to size bytes with the NUL;
 * text may be NULL if size is 0. Returns the length of all of it. HVD_METRICS
 * names a file to be kept up to date with it. */
int hvd_metrics_text(char *text, int64_t size);

/*
 * Writes what every rank does to one file, as JSON for Chrome's tracing or
 * Perfetto, until hvd_stop_timeline or hvd_shutdown. HVD_TIMELINE does so from
 * hvd_init on. Collective and blocking: all ranks call it in the same order;
 * rank 0's path counts. A regular file there is replaced, nothing else.
 * Returns, on all ranks, HVD_ERR_FILE if the file cannot be written;
 * HVD_ERR_ARGUMENT if the path is NULL, empty or too long, or if a timeline is
 * being written already. The world goes on.
 */
int hvd_start_timeline(const char *path);
/* Stops the timeline, if there is one. Not collective. */
int hvd_stop_timeline(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif

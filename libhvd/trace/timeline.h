/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.h - writes the timeline, which shows what every rank did when, as
 * one file for Chrome's tracing or Perfetto.
 */
#ifndef HVD_TRACE_TIMELINE_H
#define HVD_TRACE_TIMELINE_H

#include <stdbool.h>

#include "trace/metrics.h"

/* A request that is over. */
struct hvd__span {
    char name[96];  /* for people, cut */
    char shape[64]; /* "float32 [17,3]" */
    hvd_kind kind;
    int32_t status;
    int32_t batch; /* requests of its batch, itself included */
    bool packed;
    bool shared; /* moved in shared memory */
    int64_t bytes;
    struct hvd__times times;
};

struct hvd__timeline;

/* Makes the file, empty but valid, in place of an old one: one rank does so
 * before all open it. HVD_ERR_FILE says why it cannot be written. */
int hvd__timeline_create(const char *path, int nranks);

/* Opens the file for this rank. offset_ns is added to its clock to get that of
 * rank 0. On failure, HVD_ERR_FILE or HVD_ERR_MEMORY, *timeline is NULL. */
int hvd__timeline_open(const char *path, int rank, const char *host,
                       int64_t offset_ns, struct hvd__timeline **timeline);

/* Has the moments marked at which this rank begins a batch: Horovod's cycles.
 * To be called before the first span. */
void hvd__timeline_mark_cycles(struct hvd__timeline *timeline);

/* Records a copy of a span. Any thread may call it. When there is no room until
 * the next flush, it is dropped and counted. */
void hvd__timeline_record(struct hvd__timeline *timeline,
                          const struct hvd__span *span);

/* Writes the spans recorded so far; the file is valid JSON afterwards, whatever
 * happens next. If the file cannot be written, all ranks stop writing, and the
 * first of them to notice logs it. */
void hvd__timeline_flush(struct hvd__timeline *timeline);

/* Flushes a last time and closes. Accepts NULL. */
void hvd__timeline_close(struct hvd__timeline *timeline);

/*
 * Returns the difference of two clocks from n samples. A sample has this rank's
 * time before, the other rank's time at some moment between, and this rank's
 * time after. The sample with the
 * shortest round trip is used (Cristian, Probabilistic clock synchronization,
 * 1989).
 */
int64_t hvd__clock_offset(const int64_t *before, const int64_t *theirs,
                          const int64_t *after, int n);

#endif

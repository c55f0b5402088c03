/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_writer.h - the thread that writes metrics and a timeline while the
 * world runs. It exists only if one of them is enabled.
 */
#ifndef HVD_TRACE_TRACE_WRITER_H
#define HVD_TRACE_TRACE_WRITER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "trace/timeline.h"

struct hvd__trace_writer {
    pthread_mutex_t lock; /* guards timeline and stop */
    pthread_cond_t wake;
    struct hvd__timeline *timeline; /* owned; NULL: none */
    atomic_bool listens;            /* there is a timeline */
    bool stop;
    bool has_thread;
    pthread_t thread;
    const struct hvd__metrics *metrics; /* borrowed */
    char metrics_path[600];             /* "": this rank writes none */
    bool metrics_written;               /* at least once */
    int64_t metrics_interval_ns;
    bool marks_cycles; /* of timelines that begin from now on */
    int rank;
};

void hvd__trace_writer_init(struct hvd__trace_writer *writer);
void hvd__trace_writer_fini(struct hvd__trace_writer *writer);

/* Sets the path of the metrics. %r in it becomes the rank; without %r only rank
 * 0 writes them. */
void hvd__trace_writer_name_metrics(struct hvd__trace_writer *writer,
                                    const char *setting);
/* Starts the thread, if it does not run yet. */
int hvd__trace_writer_start(struct hvd__trace_writer *writer);
/* Begins a timeline of this rank in an existing file. offset plus this rank's
 * clock is rank 0's clock. */
int hvd__trace_writer_open(struct hvd__trace_writer *writer, const char *path,
                           int64_t offset);
/* Ends the timeline, if there is one. */
void hvd__trace_writer_close(struct hvd__trace_writer *writer);
/* Writes the last records and ends the thread. */
void hvd__trace_writer_stop(struct hvd__trace_writer *writer);

static inline bool hvd__trace_writer_listens(
    const struct hvd__trace_writer *writer)
{
    return atomic_load_explicit(&writer->listens, memory_order_relaxed);
}

/* Records a copy of a span, if there is a timeline. */
void hvd__trace_writer_record(struct hvd__trace_writer *writer,
                              const struct hvd__span *span);

#endif

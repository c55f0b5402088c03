/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/trace_writer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/thread.h"

/* The interval at which the timeline is written. An abort loses no more than
 * that. */
#define FLUSH_NS INT64_C(50000000)

void hvd__trace_writer_init(struct hvd__trace_writer *writer)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->wake, &attributes);
    pthread_condattr_destroy(&attributes);
}

void hvd__trace_writer_fini(struct hvd__trace_writer *writer)
{
    pthread_cond_destroy(&writer->wake);
    pthread_mutex_destroy(&writer->lock);
}

/* --------------------------------------------------------------- the thread */

static void write_metrics(struct hvd__trace_writer *s)
{
    hvd_metrics copy = {.size = sizeof copy};

    if (!s->metrics_path[0])
        return;
    hvd__metrics_read(s->metrics, &copy);
    if (hvd__metrics_write(&copy, s->rank, s->metrics_path,
                           !s->metrics_written) == HVD_OK) {
        s->metrics_written = true;
        return;
    }
    hvd__log(HVD__LOG_WARNING, "%s; no more of them", hvd_last_error());
    s->metrics_path[0] = '\0';
}

static void sleep_for(struct hvd__trace_writer *s, int64_t ns)
{
    int64_t until = hvd__now_ns() + ns;
    struct timespec t = {.tv_sec = until / 1000000000,
                         .tv_nsec = until % 1000000000};

    pthread_cond_timedwait(&s->wake, &s->lock, &t);
}

static void *write_files(void *argument)
{
    struct hvd__trace_writer *s = argument;
    int64_t written_ns = hvd__now_ns();

    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        sleep_for(s, s->timeline ? FLUSH_NS : s->metrics_interval_ns);
        /* The lock is held because other threads may stop the timeline.
         * hvd__trace_writer_record waits here only for the exchange of two
         * pointers. */
        if (s->timeline)
            hvd__timeline_flush(s->timeline);
        if (hvd__now_ns() - written_ns < s->metrics_interval_ns && !s->stop)
            continue;
        written_ns = hvd__now_ns();
        pthread_mutex_unlock(&s->lock);
        write_metrics(s);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

int hvd__trace_writer_start(struct hvd__trace_writer *s)
{
    if (s->has_thread)
        return HVD_OK;
    HVD_TRY(hvd__thread_start(&s->thread, "hvd-trace", write_files, s));
    s->has_thread = true;
    return HVD_OK;
}

int hvd__trace_writer_open(struct hvd__trace_writer *s, const char *path,
                           int64_t offset)
{
    char host[64] = "";
    struct hvd__timeline *timeline;

    gethostname(host, sizeof host - 1);
    HVD_TRY(hvd__timeline_open(path, s->rank, host, offset, &timeline));
    if (s->marks_cycles)
        hvd__timeline_mark_cycles(timeline);
    pthread_mutex_lock(&s->lock);
    s->timeline = timeline;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    atomic_store(&s->listens, true);
    return hvd__trace_writer_start(s);
}

void hvd__trace_writer_close(struct hvd__trace_writer *s)
{
    struct hvd__timeline *timeline;

    atomic_store(&s->listens, false);
    pthread_mutex_lock(&s->lock);
    timeline = s->timeline;
    s->timeline = NULL;
    pthread_mutex_unlock(&s->lock);
    hvd__timeline_close(timeline);
}

void hvd__trace_writer_stop(struct hvd__trace_writer *s)
{
    if (s->has_thread) {
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        pthread_cond_signal(&s->wake);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
        s->has_thread = false;
        write_metrics(s);
    }
    hvd__trace_writer_close(s);
}

void hvd__trace_writer_record(struct hvd__trace_writer *s,
                              const struct hvd__span *span)
{
    pthread_mutex_lock(&s->lock);
    if (s->timeline)
        hvd__timeline_record(s->timeline, span);
    pthread_mutex_unlock(&s->lock);
}

/* %r in the path becomes the rank; without it only rank 0 writes. */
void hvd__trace_writer_name_metrics(struct hvd__trace_writer *s,
                                    const char *setting)
{
    const char *mark = strstr(setting, "%r");

    if (mark)
        snprintf(s->metrics_path, sizeof s->metrics_path, "%.*s%d%s",
                 (int)(mark - setting), setting, s->rank, mark + 2);
    else if (s->rank == 0)
        snprintf(s->metrics_path, sizeof s->metrics_path, "%s", setting);
}

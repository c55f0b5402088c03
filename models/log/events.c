/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.c - TensorBoard's event files: records (record.h) of tensorflow.Event.
 * Scalars, histograms and images are in the older form, without metadata, which
 * every reader knows. The numbers are those of the fields in event.proto,
 * summary.proto and tensor.proto.
 */
#include "log/sink.h"

#include "files/protobuf.h"
#include "files/record.h"
#include "output/problem.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { /* fields of Event */
       EVENT_TIME = 1,
       EVENT_STEP = 2,
       EVENT_VERSION = 3,
       EVENT_GRAPH = 4,
       EVENT_SUMMARY = 5,
       EVENT_SESSION = 7
};
enum { /* fields of Summary.Value */
       VALUE_TAG = 1,
       VALUE_SCALAR = 2,
       VALUE_IMAGE = 4,
       VALUE_HISTOGRAM = 5,
       VALUE_TENSOR = 8,
       VALUE_METADATA = 9
};
enum { DT_STRING = 7, SESSION_START = 1 };

static void add_histogram(struct bytes *value, const struct log_histogram *h)
{
    const double numbers[] = {h->min, h->max, (double)h->count, h->sum,
                              h->sum_squares};
    size_t size = (size_t)h->buckets * sizeof(double);
    struct bytes part = {0};

    for (uint32_t i = 0; i < 5; i++)
        protobuf_add_double(&part, i + 1, numbers[i]);
    protobuf_add_bytes(&part, 6, h->limits, size);
    protobuf_add_bytes(&part, 7, h->counts, size);
    protobuf_add_message(value, VALUE_HISTOGRAM, &part);
}

static void add_image(struct bytes *value, const struct log_entry *entry)
{
    struct bytes part = {0};

    protobuf_add_varint(&part, 1, (uint64_t)entry->height);
    protobuf_add_varint(&part, 2, (uint64_t)entry->width);
    protobuf_add_varint(&part, 3, (uint64_t)entry->channels);
    protobuf_add_bytes(&part, 4, entry->png->data, entry->png->count);
    protobuf_add_message(value, VALUE_IMAGE, &part);
}

/* Adds a tensor of one string, [1], and says that it is a text. */
static void add_text(struct bytes *value, const char *text)
{
    struct bytes tensor = {0}, shape = {0}, dim = {0};
    struct bytes metadata = {0}, plugin = {0};

    protobuf_add_varint(&dim, 1, 1);
    protobuf_add_message(&shape, 2, &dim);
    protobuf_add_varint(&tensor, 1, DT_STRING);
    protobuf_add_message(&tensor, 2, &shape);
    protobuf_add_text(&tensor, 8, text);
    protobuf_add_message(value, VALUE_TENSOR, &tensor);
    protobuf_add_text(&plugin, 1, "text");
    protobuf_add_message(&metadata, 1, &plugin);
    protobuf_add_message(value, VALUE_METADATA, &metadata);
}

static void add_summary(struct bytes *event, const struct log_entry *entry)
{
    struct bytes summary = {0}, value = {0};

    protobuf_add_text(&value, VALUE_TAG, entry->tag->name);
    switch (entry->kind) {
    case LOG_SCALAR:
        protobuf_add_float(&value, VALUE_SCALAR, (float)entry->value);
        break;
    case LOG_HISTOGRAM: add_histogram(&value, entry->histogram); break;
    case LOG_IMAGE: add_image(&value, entry); break;
    default: add_text(&value, entry->text); break;
    }
    protobuf_add_message(&summary, 1, &value);
    protobuf_add_message(event, EVENT_SUMMARY, &summary);
}

static void put(void *state, const struct log_entry *entry)
{
    struct log_file *file = state;
    struct bytes event = {0}, session = {0};

    protobuf_add_double(&event, EVENT_TIME, entry->time);
    protobuf_add_varint(&event, EVENT_STEP, (uint64_t)entry->step);
    if (entry->kind == LOG_GRAPH) {
        protobuf_add_bytes(&event, EVENT_GRAPH, entry->graph->data,
                           entry->graph->count);
    } else if (entry->kind == LOG_START) {
        protobuf_add_varint(&session, 1, SESSION_START);
        protobuf_add_message(&event, EVENT_SESSION, &session);
    } else {
        add_summary(&event, entry);
    }
    record_add(&file->pending, event.data, event.count);
    file->pending.failed |= event.failed;
    bytes_fini(&event);
}

/* The first event says what follows, and has no step. */
static void put_version(struct log_file *file, double now)
{
    struct bytes event = {0};

    protobuf_add_double(&event, EVENT_TIME, now);
    protobuf_add_text(&event, EVENT_VERSION, "brain.Event:2");
    record_add(&file->pending, event.data, event.count);
    file->pending.failed |= event.failed;
    bytes_fini(&event);
}

static void events_close(void *state)
{
    if (state)
        log_file_close(state);
    free(state);
}

static int events_open(const char *folder, const hvd_log_options *options,
                       void **state)
{
    static atomic_int opened; /* tells the logs of one process apart */
    struct log_file *file = calloc(1, sizeof *file);
    char host[HOST_NAME_MAX + 1] = "", name[HOST_NAME_MAX + 100];
    time_t now = time(NULL);
    int status;

    (void)options;
    if (!file)
        return log_no_memory();
    gethostname(host, sizeof host - 1);
    snprintf(name, sizeof name, "events.out.tfevents.%010lld.%s.%ld.%d",
             (long long)now, host, (long)getpid(),
             atomic_fetch_add(&opened, 1));
    status = log_file_open(file, folder, name, 1);
    if (!status) {
        put_version(file, (double)now);
        status = log_file_flush(file);
    }
    if (status < 0)
        events_close(file);
    else
        *state = file;
    return status;
}

static int events_flush(void *state)
{
    return log_file_flush(state);
}

const struct log_sink log_events = {.name = "tensorboard",
                                    .format = HVD_LOG_TENSORBOARD,
                                    .open = events_open,
                                    .put = put,
                                    .flush = events_flush,
                                    .close = events_close};

/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/metrics.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "disk/disk.h"

/* ----------------------------------------------------------------- counting */

/* Returns the bucket of a latency: bucket i holds those below 2^i
 * microseconds. */
static int bucket_of(int64_t ns)
{
    int64_t us = ns / 1000;
    int i = us > 0 ? 64 - __builtin_clzll((uint64_t)us) : 0;

    return i < HVD_LATENCY_BUCKETS ? i : HVD_LATENCY_BUCKETS - 1;
}

/* Adds n times the span to a counter. */
static void count_span(atomic_int_fast64_t *counter, int64_t n, int64_t from,
                       int64_t to)
{
    if (from > 0 && to > from)
        hvd__count_alone(counter, n * (to - from));
}

void hvd__metrics_completed(struct hvd__metrics *metrics, hvd_kind kind,
                            int64_t n, int64_t bytes, int status,
                            const struct hvd__times *t)
{
    struct hvd__kind_counters *c = &metrics->kinds[kind];
    int64_t latency = t->done_ns - t->submitted_ns;

    hvd__count_alone(status < 0 ? &c->failed : &c->completed, n);
    if (status == HVD_OK)
        hvd__count_alone(&c->bytes, bytes);
    count_span(&c->waiting_ns, n, t->submitted_ns, t->decided_ns);
    count_span(&c->queued_ns, n, t->decided_ns, t->started_ns);
    count_span(&c->moving_ns, n, t->started_ns, t->done_ns);
    count_span(&c->latency_ns, n, t->submitted_ns, t->done_ns);
    hvd__count_alone(&c->latency[bucket_of(latency)], n);
}

static int64_t read_one(const atomic_int_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void hvd__metrics_read(const struct hvd__metrics *m, hvd_metrics *copy)
{
    copy->batches = read_one(&m->batches);
    copy->batched = read_one(&m->batched);
    copy->fused = read_one(&m->fused);
    copy->fused_bytes = read_one(&m->fused_bytes);
    copy->messages = read_one(&m->messages);
    copy->message_bytes = read_one(&m->message_bytes);
    copy->refused = read_one(&m->refused);
    copy->blocked_ns = read_one(&m->blocked_ns);
    copy->computing_ns = read_one(&m->computing_ns);
    copy->sent_bytes = read_one(&m->sent_bytes);
    for (int kind = 0; kind < HVD_NUM_KINDS; kind++) {
        const struct hvd__kind_counters *from = &m->kinds[kind];
        hvd_kind_metrics *to = &copy->kinds[kind];

        to->submitted = read_one(&from->submitted);
        to->completed = read_one(&from->completed);
        to->failed = read_one(&from->failed);
        to->bytes = read_one(&from->bytes);
        to->waiting_ns = read_one(&from->waiting_ns);
        to->queued_ns = read_one(&from->queued_ns);
        to->moving_ns = read_one(&from->moving_ns);
        to->latency_ns = read_one(&from->latency_ns);
        for (int i = 0; i < HVD_LATENCY_BUCKETS; i++)
            to->latency[i] = read_one(&from->latency[i]);
    }
}

/* ----------------------------------------------------------------- printing */

/* A text that may be longer than its room: the length counts on. */
struct page {
    char *text;
    size_t size;
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void add(struct page *page,
                                                      const char *format, ...)
{
    size_t at = page->length < page->size ? page->length : page->size;
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = vsnprintf(page->text ? page->text + at : NULL, page->size - at, format,
                  arguments);
    va_end(arguments);
    page->length += n > 0 ? (size_t)n : 0;
}

/* Adds nanoseconds as seconds; in integers, since floats have a comma in some
 * locales. */
static void add_seconds(struct page *page, int64_t ns)
{
    add(page, "%" PRId64 ".%09d", ns / 1000000000, (int)(ns % 1000000000));
}

static void head(struct page *page, const char *name, const char *type,
                 const char *help)
{
    add(page, "# HELP hvd_%s %s\n# TYPE hvd_%s %s\n", name, help, name, type);
}

static void counter(struct page *page, int rank, const char *name,
                    const char *help, int64_t value)
{
    head(page, name, "counter", help);
    add(page, "hvd_%s{rank=\"%d\"} %" PRId64 "\n", name, rank, value);
}

/* Adds one counter of every kind of request; seconds: it counts nanoseconds. */
static void by_kind(struct page *page, const hvd_metrics *m, int rank,
                    const char *name, const char *help, size_t offset,
                    bool seconds)
{
    head(page, name, "counter", help);
    for (int kind = 0; kind < HVD_NUM_KINDS; kind++) {
        int64_t value;

        if (!hvd_kind_name(kind))
            continue;
        memcpy(&value, (const char *)&m->kinds[kind] + offset, sizeof value);
        add(page, "hvd_%s{rank=\"%d\",op=\"%s\"} ", name, rank,
            hvd_kind_name(kind));
        if (seconds)
            add_seconds(page, value);
        else
            add(page, "%" PRId64, value);
        add(page, "\n");
    }
}

static void histogram(struct page *page, const hvd_metrics *m, int rank)
{
    head(page, "latency_seconds", "histogram",
         "From submission to completion of a request.");
    for (int kind = 0; kind < HVD_NUM_KINDS; kind++) {
        const hvd_kind_metrics *k = &m->kinds[kind];
        const char *name = hvd_kind_name(kind);
        int64_t sum = 0;

        for (int i = 0; name && i < HVD_LATENCY_BUCKETS; i++) {
            int64_t us = INT64_C(1) << i;

            sum += k->latency[i];

            if (i < HVD_LATENCY_BUCKETS - 1)
                add(page,
                    "hvd_latency_seconds_bucket{rank=\"%d\",op=\"%s\","
                    "le=\"%" PRId64 ".%06d\"} %" PRId64 "\n",
                    rank, name, us / 1000000, (int)(us % 1000000), sum);
            else
                add(page,
                    "hvd_latency_seconds_bucket{rank=\"%d\",op=\"%s\","
                    "le=\"+Inf\"} %" PRId64 "\n",
                    rank, name, sum);
        }
        if (!name)
            continue;
        add(page, "hvd_latency_seconds_sum{rank=\"%d\",op=\"%s\"} ", rank,
            name);
        add_seconds(page, k->latency_ns);
        add(page,
            "\nhvd_latency_seconds_count{rank=\"%d\",op=\"%s\"} %" PRId64 "\n",
            rank, name, sum);
    }
}

#define OF_KIND(field) offsetof(hvd_kind_metrics, field)

size_t hvd__metrics_print(const hvd_metrics *m, int rank, char *text,
                          size_t size)
{
    struct page page = {.text = text, .size = size};

    by_kind(&page, m, rank, "submitted_total", "Requests submitted.",
            OF_KIND(submitted), false);
    by_kind(&page, m, rank, "completed_total", "Requests that succeeded.",
            OF_KIND(completed), false);
    by_kind(&page, m, rank, "failed_total", "Requests that failed.",
            OF_KIND(failed), false);
    by_kind(&page, m, rank, "bytes_total",
            "Bytes of the inputs of requests that succeeded.", OF_KIND(bytes),
            false);
    by_kind(&page, m, rank, "waiting_seconds_total",
            "From submission until all ranks had submitted it.",
            OF_KIND(waiting_ns), true);
    by_kind(&page, m, rank, "queued_seconds_total",
            "From then until a lane was free.", OF_KIND(queued_ns), true);
    by_kind(&page, m, rank, "moving_seconds_total",
            "From then until it was done.", OF_KIND(moving_ns), true);
    histogram(&page, m, rank);
    counter(&page, rank, "batches_total", "Batches carried out.", m->batches);
    counter(&page, rank, "batched_total", "Requests in them.", m->batched);
    counter(&page, rank, "fused_batches_total", "Batches of more than one.",
            m->fused);
    counter(&page, rank, "fused_bytes_total", "Bytes of inputs in those.",
            m->fused_bytes);
    counter(&page, rank, "messages_total", "Messages of the negotiation sent.",
            m->messages);
    counter(&page, rank, "message_bytes_total", "Bytes of those.",
            m->message_bytes);
    counter(&page, rank, "sent_bytes_total",
            "Bytes of tensors sent to other ranks over MPI.", m->sent_bytes);
    counter(&page, rank, "refused_total", "Submissions refused.", m->refused);
    head(&page, "blocked_seconds_total", "counter",
         "Time of threads in hvd_wait and blocking calls.");
    add(&page, "hvd_blocked_seconds_total{rank=\"%d\"} ", rank);
    add_seconds(&page, m->blocked_ns);
    add(&page, "\n");
    head(&page, "computing_seconds_total", "counter",
         "Time in the arithmetic of reductions of 16 KiB or more.");
    add(&page, "hvd_computing_seconds_total{rank=\"%d\"} ", rank);
    add_seconds(&page, m->computing_ns);
    add(&page, "\n");
    return page.length;
}

/* ------------------------------------------------------------------ writing */

/* The file is replaced every few seconds and need not survive a loss of power;
 * the reader of a FIFO is not waited for for long. */
int hvd__metrics_write(const hvd_metrics *m, int rank, const char *path,
                       bool first)
{
    int flags = DISK__DIRECT | DISK__BRIEFLY | (first ? DISK__SWEEP : 0);
    size_t length = hvd__metrics_print(m, rank, NULL, 0);
    char *text = malloc(length + 1);
    int status;

    if (!text)
        return hvd__fail_memory(length + 1);
    hvd__metrics_print(m, rank, text, length + 1);
    status = disk__replace(path, text, length, flags);
    free(text);
    if (status >= 0)
        return HVD_OK;
    return hvd__fail(HVD_ERR_FILE, "cannot write metrics to '%s': %s", path,
                     disk__text(status));
}

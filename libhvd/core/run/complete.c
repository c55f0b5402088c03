/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/complete.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "core/run/engine.h"

static _Thread_local bool in_callback;

bool hvd__in_callback(void)
{
    return in_callback;
}

/* Returns true if the metrics count the request like another. */
static bool is_like(const struct hvd__request *request,
                    const struct hvd__request *first)
{
    return !hvd__request_is_own(request) &&
           request->signature.kind == first->signature.kind &&
           request->state.status == first->state.status &&
           request->submission->state.since_ns ==
               first->submission->state.since_ns &&
           request->submission->state.decided_ns ==
               first->submission->state.decided_ns &&
           request->state.started_ns == first->state.started_ns &&
           request->state.done_ns == first->state.done_ns;
}

/* Records a request in the timeline. */
static void record_span(struct hvd__engine *engine,
                        const struct hvd__request *request,
                        const struct hvd__times *times)
{
    const char *name = request->submission->name;
    struct hvd__span span = {
        .kind = request->signature.kind,
        .status = request->state.status,
        .batch = request->state.batched,
        .packed = request->state.packed,
        .shared = request->state.shared,
        .bytes = (int64_t)request->bytes,
        .times = *times,
    };

    if (request->label)
        snprintf(span.name, sizeof span.name, "%.40s/%.40s", name,
                 request->label);
    else
        snprintf(span.name, sizeof span.name, "%.*s", (int)sizeof span.name - 1,
                 name[0] < ' ' ? "unnamed" : name);
    hvd__signature_print(&request->signature, span.shape, sizeof span.shape);
    hvd__trace_writer_record(&engine->writer, &span);
}

/* Records, for the metrics and the timeline, the first of a list of requests
 * that are complete, and those after it that are like it. Returns the first
 * that is not. */
static const struct hvd__request *record_requests(
    struct hvd__engine *engine, const struct hvd__request *first)
{
    const struct hvd__submission *submission = first->submission;
    const struct hvd__request *request = first->state.next;
    const struct hvd__times times = {
        .submitted_ns = submission->state.since_ns,
        .decided_ns = submission->state.decided_ns,
        .started_ns = first->state.started_ns,
        .packed_ns = first->state.packed_ns,
        .moved_ns = first->state.moved_ns,
        .done_ns = first->state.done_ns ? first->state.done_ns : hvd__now_ns(),
    };
    size_t bytes = first->bytes;
    int64_t n = 1;

    if (hvd__request_is_own(first))
        return request;
    if (hvd__trace_writer_listens(&engine->writer))
        record_span(engine, first, &times);
    else
        for (; request && is_like(request, first);
             request = request->state.next, n++)
            bytes += request->bytes;
    hvd__metrics_completed(&engine->metrics, first->signature.kind, n,
                           (int64_t)bytes, first->state.status, &times);
    return request;
}

/* Calls the callback and wakes the waiter. The request must be out of the
 * request table. */
static void conclude_request(struct hvd__engine *engine,
                             struct hvd__request *request)
{
    int status = request->state.status, fd;

    if (request->callback) {
        if (status < 0)
            hvd__fail_text(status, hvd__request_text(request));
        in_callback = true;
        request->callback(request->callback_context, status);
        in_callback = false;
    }
    hvd__table_finish(&engine->table, request);
    fd = atomic_load(&engine->completion_fd);
    /* hvd_completion_fd becomes readable; a full counter is so, too. */
    if (fd >= 0 && write(fd, &(uint64_t){1}, sizeof(uint64_t)) < 0)
        return;
}

void hvd__complete_all(struct hvd__engine *engine,
                       struct hvd__request *requests)
{
    const struct hvd__request *unrecorded = requests;
    const bool logs = hvd__log_hears(HVD__LOG_TRACE);

    hvd__table_remove(&engine->table, requests);
    while (requests) {
        struct hvd__request *next = requests->state.next;

        if (requests == unrecorded)
            unrecorded = record_requests(engine, requests);
        if (logs)
            hvd__log(HVD__LOG_TRACE, "completed '%s': %s",
                     requests->submission->name, hvd__request_text(requests));
        conclude_request(engine, requests);
        requests = next;
    }
}

void hvd__complete(struct hvd__engine *engine, struct hvd__request *request,
                   int status, const char *text)
{
    request->state.status = status;
    /* If memory runs out, the waiter gets the short text instead. */
    free(request->state.message);
    request->state.message = text ? strdup(text) : NULL;
    request->state.next = NULL;
    hvd__complete_all(engine, request);
}

void hvd__complete_quick(struct hvd__engine *engine,
                         const struct hvd__request *request, int64_t latency_ns)
{
    /* The metrics use only the difference of these times. */
    const struct hvd__times times = {.submitted_ns = 1,
                                     .done_ns = 1 + latency_ns};

    hvd__count_alone(&engine->metrics.batches, 1);
    hvd__count_alone(&engine->metrics.batched, 1);
    hvd__metrics_completed(&engine->metrics, request->signature.kind, 1,
                           (int64_t)request->bytes, HVD_OK, &times);
}

void hvd__complete_submission(struct hvd__engine *engine,
                              struct hvd__submission *submission, int status,
                              const char *text)
{
    int left = submission->state.nleft;

    /* The last request that is not done keeps the submission alive. */
    for (int i = 0; left > 0; i++) {
        char message[HVD__MESSAGE_MAX];
        struct hvd__text out = hvd__text_at(message, sizeof message);

        if (atomic_load(&submission->requests[i].state.done))
            continue;
        left--;
        if (text[0] == ' ' || text[0] == ':')
            hvd__text_add_name(&out, submission->name);
        hvd__text_add(&out, "%s", text);
        hvd__complete(engine, &submission->requests[i], status, message);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c - the memory of a submission and of its requests, from hvd_submit
 * until it is freed or reused. The request table (core/table) and the thread
 * that submits call it; a submission belongs to one thread at a time.
 */
#include "core/request/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"

static void begin_use(struct hvd__submission *submission, int n)
{
    submission->state.nrequests = submission->state.nleft = n;
    atomic_init(&submission->state.nrefs, n);
    for (int i = 0; i < n; i++) {
        submission->requests[i].submission = submission;
        submission->requests[i].state.slot = -1;
    }
}

void hvd__submission_reset(struct hvd__submission *submission)
{
    submission->set = NULL;
    submission->key = 0;
    submission->fingerprint = 0;
    submission->priority = 0;
    submission->place = 0;
    submission->is_recycled = false;
    submission->may_recur = false; /* so given and name_bytes are unused */
    submission->state = (struct hvd__submission_state){0};
    submission->name[0] = '\0';
    memset(submission->requests, 0, sizeof *submission->requests);
    begin_use(submission, 1);
}

void hvd__submission_remember(struct hvd__submission *submission,
                              const hvd_request *given, size_t bytes)
{
    const struct hvd__request *request = &submission->requests[0];

    /* Rows and codes must be counted each time, and some kinds allocate memory
     * each time. Programs must not find requests with the library's own names.
     */
    if (submission->name[0] == HVD__OWN || given->kind == HVD_JOIN ||
        hvd__kind_has(given->kind, HVD__HAS_ROWS) ||
        given->compression != HVD_COMPRESSION_NONE || request->scratch)
        return;
    submission->may_recur = true;
    submission->name_bytes = (uint16_t)bytes;
    submission->given = *given;
}

_Static_assert(sizeof(hvd_request) == 128, "a new field is compared below");

/* Compares all fields but name, shape and callback. Scales are equal if their
 * bits are: -0.0 is not 0.0. The caller has just written dtype and op, one by
 * one: a compiler that loads both at once makes the processor wait for them. */
static bool is_same(const hvd_request *a, const hvd_request *b)
{
    if (a->op != b->op)
        return false;
    return a->size == b->size && a->kind == b->kind && a->dtype == b->dtype &&
           a->root == b->root && a->ndim == b->ndim && a->input == b->input &&
           a->output == b->output &&
           memcmp(&a->prescale, &b->prescale, sizeof a->prescale) == 0 &&
           memcmp(&a->postscale, &b->postscale, sizeof a->postscale) == 0 &&
           a->process_set == b->process_set && a->priority == b->priority &&
           a->flags == b->flags && a->compression == b->compression &&
           a->capacity == b->capacity && a->splits == b->splits &&
           a->counts == b->counts;
}

bool hvd__submission_is_like(const struct hvd__submission *submission,
                             const hvd_request *given, const char *name)
{
    const int64_t *shape = submission->requests[0].signature.shape;

    if (!is_same(&submission->given, given) ||
        (given->ndim > 0 && !given->shape))
        return false;
    for (int32_t i = 0; i < given->ndim; i++)
        if (shape[i] != given->shape[i])
            return false;
    /* A submission without a name has a number as its name. */
    return submission->name_bytes > 0 ? strcmp(submission->name, name) == 0
                                      : name[0] == '\0';
}

void hvd__submission_renew(struct hvd__submission *submission,
                           const hvd_request *given)
{
    struct hvd__request *request = &submission->requests[0];

    submission->state = (struct hvd__submission_state){0};
    request->state = (struct hvd__request_state){0};
    submission->name[submission->name_bytes] = '\0';
    request->callback = given->callback;
    request->callback_context = given->callback_context;
    begin_use(submission, 1);
}

struct hvd__submission *hvd__submission_new(int n)
{
    size_t bytes = sizeof(struct hvd__submission) +
                   (size_t)n * sizeof(struct hvd__request);
    struct hvd__submission *submission = aligned_alloc(HVD__LINE, bytes);

    if (!submission)
        return NULL;
    memset(submission, 0, bytes);
    begin_use(submission, n);
    return submission;
}

int64_t hvd__request_split(const struct hvd__request *request, int rank,
                           int nranks)
{
    return request->splits ? request->splits[rank] : request->rows / nranks;
}

void hvd__request_write_splits(const struct hvd__request *request, int nranks,
                               unsigned char *to)
{
    for (int rank = 0; rank < nranks; rank++) {
        int64_t split = hvd__request_split(request, rank, nranks);

        memcpy(to + (size_t)rank * sizeof split, &split, sizeof split);
    }
}

/* Nearly all requests own nothing, and a test is cheaper than a call of free.
 */
static inline void free_if_any(void *memory)
{
    if (memory)
        free(memory);
}

struct hvd__submission *hvd__request_fini(struct hvd__request *request)
{
    struct hvd__submission *submission = request->submission;

    free_if_any(request->splits);
    free_if_any(request->state.carried);
    free_if_any(request->label);
    free_if_any(request->state.message);
    if (request->own_output)
        hvd_free(request->own_output);
    free_if_any(request->own_input);
    free_if_any(request->scratch);
    /* The last user needs no locked instruction. */
    if (atomic_load(&submission->state.nrefs) > 1 &&
        atomic_fetch_sub(&submission->state.nrefs, 1) > 1)
        return NULL;
    free_if_any(submission->state.message);
    return submission;
}

void hvd__request_free(struct hvd__request *request)
{
    if (request)
        free(hvd__request_fini(request));
}

void hvd__submission_free(struct hvd__submission *submission)
{
    int n = submission ? submission->state.nrequests : 0;

    for (int i = 0; i < n; i++)
        hvd__request_free(&submission->requests[i]);
}

uint64_t hvd__join_key(void)
{
    return hvd__fingerprint(0, HVD__JOIN_NAME, strlen(HVD__JOIN_NAME));
}

void hvd__text_add_name(struct hvd__text *text, const char *name)
{
    if (name[0] == HVD__UNNAMED)
        hvd__text_add(text, "unnamed operation %s", name + 1);
    else
        hvd__text_add(text, "'%s'", name[0] == HVD__OWN ? name + 1 : name);
}

void hvd__request_fail(struct hvd__request *request, int status,
                       const char *format, ...)
{
    char message[HVD__MESSAGE_MAX];
    struct hvd__text out = hvd__text_at(message, sizeof message);
    va_list args;

    hvd__text_add_name(&out, request->submission->name);
    if (request->label)
        hvd__text_add(&out, " member '%s'", request->label);
    hvd__text_add(&out, ": ");
    va_start(args, format);
    vsnprintf(message + out.used, sizeof message - out.used, format, args);
    va_end(args);
    request->state.status = status;
    free(request->state.message);
    request->state.message = strdup(message);
}

const char *hvd__request_text(const struct hvd__request *request)
{
    return request->state.message ? request->state.message
                                  : hvd_strerror(request->state.status);
}

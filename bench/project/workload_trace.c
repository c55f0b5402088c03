/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload_trace.c - finds the workload in a timeline (workload.h), which is
 * Chrome's trace event format as libhvd/trace/timeline.c writes it.
 *
 * Gradients are the allreduces of one rank whose names recur. The first of them
 * is submitted once in each step, and so marks the steps:
 *
 *     submitted   a     b  c                         a     b  c
 *     completed         a       b c                        a      b c
 *                 |--------|----|--------------------|
 *                  backward wait  update, forward, and the backward pass until
 *                                 its first gradient
 *
 * What lies between two gradients is computing, and so is what lies between the
 * last result and the first gradient of the next step; only the wait is not.
 * Nothing tells the update from the forward pass, so all of that counts as
 * forward. Gradients that one rank has submitted while it also communicated are
 * as late as that made them.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "project/workload.h"
#include "tables/stats.h"

/* An allreduce of the rank. Times are seconds. */
struct span {
    const char *name; /* borrowed from the JSON */
    int64_t bytes;
    double from, to;
    int place; /* its tensor in the workload; -1: none */
};

struct reader {
    struct workload *workload;
    const char *name;
    int rank;
    struct span *spans; /* owned, by time of submission */
    int n;
    const char **rows; /* owned, [nrows]: names of the trace's rows, which are
                          those of the requests; borrowed from the JSON */
    int nrows;
    int nsteps;
    char *error;
    size_t size;
};

/* The first steps are not like the others. */
enum { WARM_UP = 2 };

static int refuse(const struct reader *r, const char *what)
{
    snprintf(r->error, r->size, "%s: %s", r->name, what);
    return -1;
}

/* libhvd writes an event to a line, from the second line on. */
static int refuse_event(const struct reader *r, size_t i, const char *what)
{
    snprintf(r->error, r->size, "%s:%zu: event %zu: %s", r->name, i + 2, i + 1,
             what);
    return -1;
}

static bool is_text(const json_t *value, const char *text)
{
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

enum { MOST_ROWS = 1 << 20 };

/* Notes the name of a row. */
static int read_row(struct reader *r, const json_t *event, size_t i)
{
    json_int_t row = json_integer_value(json_object_get(event, "tid"));
    const json_t *name =
        json_object_get(json_object_get(event, "args"), "name");

    if (row < 0 || row >= MOST_ROWS || !json_is_string(name))
        return refuse_event(r, i, "thread_name without a tid and a name");
    if (row >= r->nrows) {
        int n = (int)row + 64;
        const char **grown = realloc(r->rows, (size_t)n * sizeof *grown);

        if (!grown)
            return refuse(r, "out of memory");
        for (int k = r->nrows; k < n; k++)
            grown[k] = NULL;
        r->rows = grown;
        r->nrows = n;
    }
    r->rows[row] = json_string_value(name);
    return 0;
}

/* Reads an event, if it is an allreduce of the rank or names a row. */
static int read_event(struct reader *r, const json_t *event, size_t i)
{
    const json_t *from, *duration, *bytes;
    json_int_t row;

    if (!json_is_object(event))
        return refuse_event(r, i, "it is not an object");
    if (json_integer_value(json_object_get(event, "pid")) != r->rank)
        return 0;
    if (is_text(json_object_get(event, "name"), "thread_name"))
        return read_row(r, event, i);
    if (!is_text(json_object_get(event, "ph"), "X") ||
        !is_text(json_object_get(event, "name"), "ALLREDUCE"))
        return 0;
    from = json_object_get(event, "ts");
    duration = json_object_get(event, "dur");
    bytes = json_object_get(json_object_get(event, "args"), "bytes");
    row = json_integer_value(json_object_get(event, "tid"));
    if (!json_is_number(from) || !json_is_number(duration))
        return refuse_event(r, i, "ts and dur are not numbers");
    if (!json_is_integer(bytes))
        return refuse_event(r, i, "args has no bytes");
    if (row < 0 || row >= r->nrows || !r->rows[row])
        return refuse_event(r, i, "its row has no name");
    if (json_number_value(duration) < 0 || json_integer_value(bytes) < 0)
        return refuse_event(r, i, "dur or bytes is negative");
    r->spans[r->n++] = (struct span){
        .name = r->rows[row],
        .bytes = json_integer_value(bytes),
        .from = 1e-6 * json_number_value(from),
        .to = 1e-6 * (json_number_value(from) + json_number_value(duration)),
        .place = -1,
    };
    return 0;
}

static int by_submission(const void *a, const void *b)
{
    const struct span *x = a, *y = b;

    return (x->from > y->from) - (x->from < y->from);
}

static int by_name(const void *a, const void *b)
{
    const struct span *x = *(struct span *const *)a;
    const struct span *y = *(struct span *const *)b;
    int order = strcmp(x->name, y->name);

    return order ? order : (x > y) - (x < y);
}

/* ------------------------------------------------------------------ gradients
 */

/* Requests without a name, such as those of blocking calls, share a row. */
static bool is_unnamed(const struct span *span)
{
    return strcmp(span->name, "unnamed") == 0;
}

/* Adds the names that recur as often as most do, with the least time for the
 * first of each name as a place in the order. */
static int find_gradients(struct reader *r)
{
    struct span **sorted = calloc((size_t)r->n + 1, sizeof(struct span *));
    int most = 0, status = 0;

    if (!sorted)
        return refuse(r, "out of memory");
    for (int i = 0; i < r->n; i++)
        sorted[i] = &r->spans[i];
    qsort(sorted, (size_t)r->n, sizeof *sorted, by_name);
    for (int pass = 0; pass < 2 && status == 0; pass++)
        for (int i = 0, end; i < r->n && status == 0; i = end) {
            for (end = i;
                 end < r->n && strcmp(sorted[end]->name, sorted[i]->name) == 0;)
                end++;
            if (is_unnamed(sorted[i]) || sorted[i]->bytes == 0)
                continue;
            if (pass == 0) {
                most = end - i > most ? end - i : most;
            } else if (end - i >= most - 1 && most > 1) {
                for (int k = i; k < end; k++)
                    sorted[k]->place = r->workload->n;
                status =
                    workload_add(r->workload, sorted[i]->name,
                                 strlen(sorted[i]->name), sorted[i]->bytes, 0);
            }
        }
    free(sorted);
    r->nsteps = most;
    if (status < 0)
        return refuse(r, "out of memory");
    if (r->workload->n == 0 || most <= WARM_UP + 1) {
        snprintf(r->error, r->size,
                 "%s: rank %d has no named allreduces that recur in more than "
                 "%d steps: record a longer training, on two ranks or more",
                 r->name, r->rank, WARM_UP + 1);
        return -1;
    }
    return 0;
}

/* ----------------------------------------------------------------------- steps
 */

/* What the steps took: [nsteps] each. */
struct figures {
    double *forward, *backward;
    double *ready; /* [tensors * nsteps], seconds after the first */
    int n;
};

/* Notes a step, which begins with spans[i] and ends before spans[next], where
 * the first gradient comes again. */
static void note_step(struct reader *r, struct figures *f, int i, int next)
{
    double start = r->spans[i].from, submitted = start, done = start;

    for (int k = i; k < next; k++) {
        const struct span *span = &r->spans[k];

        if (span->place < 0)
            continue;
        submitted = span->from > submitted ? span->from : submitted;
        done = span->to > done ? span->to : done;
        f->ready[span->place * r->nsteps + f->n] = span->from - start;
    }
    done = done > submitted ? done : submitted;
    f->backward[f->n] = submitted - start;
    f->forward[f->n++] = r->spans[next].from - done;
}

static void take_medians(struct reader *r, struct figures *f)
{
    struct workload *w = r->workload;
    size_t n = (size_t)f->n;

    w->forward = stats_median(f->forward, n);
    w->backward = stats_median(f->backward, n);
    for (int i = 0; i < w->n; i++) {
        w->tensors[i].ready = stats_median(f->ready + i * r->nsteps, n);
        if (w->tensors[i].ready > w->backward)
            w->backward = w->tensors[i].ready;
    }
}

static int find_steps(struct reader *r)
{
    size_t n = (size_t)r->nsteps, tensors = (size_t)r->workload->n;
    struct figures f = {.forward = calloc(n, sizeof(double)),
                        .backward = calloc(n, sizeof(double)),
                        .ready = calloc(n * tensors, sizeof(double))};
    int first = -1, last = -1, seen = 0, status = 0;

    if (!f.forward || !f.backward || !f.ready)
        status = refuse(r, "out of memory");
    for (int i = 0; i < r->n && status == 0; i++) {
        if (r->spans[i].place < 0)
            continue;
        if (first < 0)
            first = r->spans[i].place;
        if (r->spans[i].place != first)
            continue;
        if (last >= 0 && seen++ >= WARM_UP)
            note_step(r, &f, last, i);
        last = i;
    }
    if (status == 0 && f.n == 0)
        status = refuse(r, "no step that is whole");
    if (status == 0)
        take_medians(r, &f);
    free(f.forward);
    free(f.backward);
    free(f.ready);
    return status;
}

static int read_events(struct reader *r, const json_t *events)
{
    if (!json_is_array(events))
        return refuse(r, "there is no list traceEvents: not a timeline");
    r->spans = calloc(json_array_size(events) + 1, sizeof *r->spans);
    if (!r->spans)
        return refuse(r, "out of memory");
    for (size_t i = 0; i < json_array_size(events); i++)
        if (read_event(r, json_array_get(events, i), i) < 0)
            return -1;
    qsort(r->spans, (size_t)r->n, sizeof *r->spans, by_submission);
    if (find_gradients(r) < 0)
        return -1;
    return find_steps(r);
}

int workload_read_trace(struct workload *workload, const char *name,
                        const char *text, size_t length, int rank, char *error,
                        size_t size)
{
    struct reader r = {.workload = workload,
                       .name = name,
                       .rank = rank,
                       .error = error,
                       .size = size};
    json_error_t fault;
    json_t *root = json_loadb(text, length, 0, &fault);
    int status;

    *workload = (struct workload){0};
    if (!root) {
        snprintf(error, size, "%s:%d: %s", name, fault.line, fault.text);
        return -1;
    }
    status = read_events(&r, json_object_get(root, "traceEvents"));
    if (status < 0)
        workload_fini(workload);
    else
        workload_sort(workload);
    free(r.spans);
    free(r.rows);
    json_decref(root);
    return status;
}

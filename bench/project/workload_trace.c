/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload_trace.c - finds the workload in a timeline (workload.h), which is
 * Chrome's trace event format as libhvd/trace/timeline.c writes it.
 *
 * Gradients are the allreduces whose names recur on all ranks. The k-th
 * submission of each is that of step k. A gradient is ready when the last rank
 * has submitted it, since no rank goes on without the others:
 *
 *     rank 0    a     b  c                         a     b  c
 *     rank 1     a     b   c                        a    b   c
 *     results        a       b   c                      a       b  c
 *                |---------|-----|-------------------|
 *                 backward  wait  update, forward, and the backward pass until
 *                                 its first gradient
 *
 * What lies between two gradients is computing, and so is what lies between the
 * last result and the first gradient of the next step; only the wait is not.
 * Nothing tells the update from the forward pass, so all of that counts as
 * forward. Gradients that one rank has submitted while it also communicated are
 * as late as that made them.
 *
 * The computing of one rank in a step is what lies between its last result and
 * its last gradient. A step waits for the slowest rank: how much the ranks
 * differ in it says what more ranks would wait. All figures are means over the
 * steps, of which those are left out that do something else besides, such as
 * reading test images.
 */
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "project/workload.h"
#include "tables/stats.h"

/* A row of the trace: the name of a request. */
struct row {
    int64_t rank, number;
    const char *name; /* borrowed from the JSON */
};

/* An allreduce. Times are seconds. */
struct span {
    const char *name; /* borrowed from the JSON */
    int64_t rank, bytes;
    double from, to;
};

/* When a rank submits its last gradient of a step, and has its last result. */
struct turn {
    double last, done;
};

struct reader {
    struct workload *workload;
    const char *name;
    int rank;              /* -1: all */
    struct row *rows;      /* owned, by rank and number */
    struct span *spans;    /* owned, by name, rank and time */
    struct span *agreeing; /* owned, likewise: until ranks have agreed */
    int nrows, nspans, nagreeing;
    int nsteps, nranks;
    double *submitted;  /* owned, [tensors][nsteps]: by the last rank */
    double *agreed;     /* owned, likewise */
    struct turn *turns; /* owned, [nsteps][nranks] */
    bool *is_left_out;  /* owned, [nsteps] */
    char *error;
    size_t size;
};

/* The first steps are not like the others, nor are those that compute so many
 * times as long as the median. */
enum { WARM_UP = 2, TOO_LONG = 2 };

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

/* ------------------------------------------------------------------- events */

static int by_number(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static int by_name(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    if (order == 0)
        order = (x->rank > y->rank) - (x->rank < y->rank);
    return order ? order : (x->from > y->from) - (x->from < y->from);
}

static int64_t integer_of(const json_t *event, const char *key)
{
    return json_integer_value(json_object_get(event, key));
}

static bool is_wanted(const struct reader *r, const json_t *event)
{
    return r->rank < 0 || integer_of(event, "pid") == r->rank;
}

/* Notes the name of a row. */
static int read_row(struct reader *r, const json_t *event, size_t i)
{
    const json_t *name;

    if (!json_is_object(event))
        return refuse_event(r, i, "it is not an object");
    if (!is_text(json_object_get(event, "name"), "thread_name"))
        return 0;
    name = json_object_get(json_object_get(event, "args"), "name");
    if (!json_is_string(name))
        return refuse_event(r, i, "thread_name without a name");
    r->rows[r->nrows++] = (struct row){.rank = integer_of(event, "pid"),
                                       .number = integer_of(event, "tid"),
                                       .name = json_string_value(name)};
    return 0;
}

/* Returns the list of spans that an event belongs to; NULL: none. */
static struct span *list_of(struct reader *r, const json_t *event, int **n)
{
    const json_t *name = json_object_get(event, "name");

    if (!is_text(json_object_get(event, "ph"), "X") || !is_wanted(r, event))
        return NULL;
    if (is_text(name, "ALLREDUCE"))
        return *n = &r->nspans, r->spans;
    if (is_text(name, "NEGOTIATE_ALLREDUCE"))
        return *n = &r->nagreeing, r->agreeing;
    return NULL;
}

/* Notes an event, if it is an allreduce, or the agreement on one, which does
 * not tell its bytes. */
static int read_span(struct reader *r, const json_t *event, size_t i)
{
    const struct row key = {.rank = integer_of(event, "pid"),
                            .number = integer_of(event, "tid")};
    const json_t *from = json_object_get(event, "ts");
    const json_t *duration = json_object_get(event, "dur");
    const json_t *bytes =
        json_object_get(json_object_get(event, "args"), "bytes");
    const struct row *row;
    int *n = NULL;
    struct span *list = list_of(r, event, &n);

    if (!list)
        return 0;
    row = bsearch(&key, r->rows, (size_t)r->nrows, sizeof key, by_number);
    if (!json_is_number(from) || !json_is_number(duration))
        return refuse_event(r, i, "ts and dur are not numbers");
    if (list == r->spans && !json_is_integer(bytes))
        return refuse_event(r, i, "args has no bytes");
    if (json_number_value(duration) < 0 || json_integer_value(bytes) < 0)
        return refuse_event(r, i, "dur or bytes is negative");
    if (!row)
        return refuse_event(r, i, "its row has no name");
    /* Requests without a name, such as those of blocking calls, share a row. */
    if (strcmp(row->name, "unnamed") == 0 ||
        (list == r->spans && json_integer_value(bytes) == 0))
        return 0;
    list[(*n)++] = (struct span){
        .name = row->name,
        .rank = key.rank,
        .bytes = json_integer_value(bytes),
        .from = 1e-6 * json_number_value(from),
        .to = 1e-6 * (json_number_value(from) + json_number_value(duration)),
    };
    return 0;
}

/* ---------------------------------------------------------------- gradients */

/* Returns the end of the spans from i on that have the same name and, if
 * per_rank is true, rank. */
static int end_of(const struct reader *r, int i, bool per_rank)
{
    const struct span *first = &r->spans[i];

    while (++i < r->nspans && strcmp(r->spans[i].name, first->name) == 0 &&
           (!per_rank || r->spans[i].rank == first->rank))
        continue;
    return i;
}

/* Returns the least number of times that a rank has had a name, which begins at
 * spans[i]. */
static int recurrence(const struct reader *r, int i)
{
    int end = end_of(r, i, false), least = r->nspans;

    for (int next; i < end; i = next) {
        next = end_of(r, i, true);
        least = next - i < least ? next - i : least;
    }
    return least;
}

/* Adds the names that recur as often as any, or once less: the timeline may end
 * in a step. */
static int find_gradients(struct reader *r)
{
    int most = 0;

    for (int i = 0; i < r->nspans; i = end_of(r, i, false))
        if (recurrence(r, i) > most)
            most = recurrence(r, i);
    r->nsteps = most;
    for (int i = 0; i < r->nspans; i = end_of(r, i, false)) {
        const struct span *span = &r->spans[i];
        int n = recurrence(r, i);

        if (n < most - 1 || n < 2)
            continue;
        r->nsteps = n < r->nsteps ? n : r->nsteps;
        if (workload_add(r->workload, span->name, strlen(span->name),
                         span->bytes, i) < 0)
            return refuse(r, "out of memory");
    }
    if (r->workload->n > 0 && r->nsteps > WARM_UP + 1)
        return 0;
    snprintf(r->error, r->size,
             "%s: no named allreduces recur in more than %d steps%s: record a "
             "longer training, on two ranks or more",
             r->name, WARM_UP + 1, r->rank < 0 ? "" : " of this rank");
    return -1;
}

/* -------------------------------------------------------------------- steps */

static struct turn *turn_of(const struct reader *r, int k, int rank)
{
    return &r->turns[(size_t)k * (size_t)r->nranks + (size_t)rank];
}

/* Finds when the last rank has submitted a tensor in each step, and what each
 * rank does there; its spans begin at spans[i]. */
static void note_submissions(struct reader *r, int tensor, int i)
{
    double *submitted = r->submitted + (size_t)tensor * (size_t)r->nsteps;
    int end = end_of(r, i, false), rank = 0;

    for (int next; i < end && rank < r->nranks; i = next, rank++) {
        next = end_of(r, i, true);
        for (int k = 0; k < r->nsteps; k++) {
            const struct span *span = &r->spans[i + k];
            struct turn *turn = turn_of(r, k, rank);

            submitted[k] = fmax(submitted[k], span->from);
            turn->last = fmax(turn->last, span->from);
            turn->done = fmax(turn->done, span->to);
        }
    }
}

/* Finds when the last rank has learnt that a tensor is agreed on. The agreement
 * on a span begins with it. */
static void note_agreements(struct reader *r, int tensor, int i)
{
    double *agreed = r->agreed + (size_t)tensor * (size_t)r->nsteps;
    int end = end_of(r, i, false);

    for (int next; i < end; i = next) {
        next = end_of(r, i, true);
        for (int k = 0; k < r->nsteps; k++) {
            const struct span *found =
                bsearch(&r->spans[i + k], r->agreeing, (size_t)r->nagreeing,
                        sizeof *found, by_name);

            if (found)
                agreed[k] = fmax(agreed[k], found->to);
        }
    }
}

static double submitted_at(const struct reader *r, int tensor, int k)
{
    return r->submitted[(size_t)tensor * (size_t)r->nsteps + (size_t)k];
}

/* Returns the mean of a figure over the steps that count. figure(r, tensor, k)
 * returns that of a step. */
static double mean_of(const struct reader *r, int tensor,
                      double (*figure)(const struct reader *r, int tensor,
                                       int k))
{
    double sum = 0;
    int n = 0;

    for (int k = WARM_UP; k < r->nsteps; k++) {
        if (r->is_left_out[k])
            continue;
        sum += figure(r, tensor, k);
        n++;
    }
    return sum / n;
}

static double first_of(const struct reader *r, int k)
{
    double first = submitted_at(r, 0, k);

    for (int i = 1; i < r->workload->n; i++)
        first = fmin(first, submitted_at(r, i, k));
    return first;
}

static double ready_of(const struct reader *r, int tensor, int k)
{
    return submitted_at(r, tensor, k) - first_of(r, k);
}

static double backward_of(const struct reader *r, int tensor, int k)
{
    double last = 0;

    (void)tensor;
    for (int i = 0; i < r->workload->n; i++)
        last = fmax(last, ready_of(r, i, k));
    return last;
}

static double forward_of(const struct reader *r, int tensor, int k)
{
    double end = first_of(r, k - 1) + backward_of(r, tensor, k - 1);

    for (int rank = 0; rank < r->nranks; rank++)
        end = fmax(end, turn_of(r, k - 1, rank)->done);
    return first_of(r, k) - end;
}

/* Returns how long a rank computes in step k. */
static double computing_of(const struct reader *r, int rank, int k)
{
    const struct turn *before = turn_of(r, k - 1, rank);

    return turn_of(r, k, rank)->last - fmax(before->done, before->last);
}

/* The computing of a rank in the mean over the ranks, its variance among them,
 * and the computing of the slowest. */
static double even_of(const struct reader *r, int tensor, int k)
{
    double sum = 0;

    (void)tensor;
    for (int rank = 0; rank < r->nranks; rank++)
        sum += computing_of(r, rank, k);
    return sum / r->nranks;
}

static double variance_of(const struct reader *r, int tensor, int k)
{
    double even = even_of(r, tensor, k), sum = 0;

    for (int rank = 0; rank < r->nranks; rank++)
        sum += pow(computing_of(r, rank, k) - even, 2);
    return sum / (r->nranks - 1);
}

/* Returns how late ranks have learnt in the mean that a tensor is agreed on
 * which the last rank has submitted, of all tensors of step k but its last:
 * during these the ranks compute. */
static double attention_of(const struct reader *r, int tensor, int k)
{
    double sum = 0, last = backward_of(r, tensor, k);
    int n = 0;

    for (int i = 0; i < r->workload->n; i++) {
        double agreed = r->agreed[(size_t)i * (size_t)r->nsteps + (size_t)k];

        if (ready_of(r, i, k) >= last)
            continue;
        sum += fmax(0, agreed - submitted_at(r, i, k));
        n++;
    }
    return n > 0 ? sum / n : 0;
}

static void leave_out_long(struct reader *r, double *values)
{
    double median;
    int n = 0;

    for (int k = WARM_UP; k < r->nsteps; k++)
        values[n++] = forward_of(r, 0, k) + backward_of(r, 0, k);
    median = stats_median(values, (size_t)n);
    for (int k = WARM_UP; k < r->nsteps; k++)
        r->is_left_out[k] =
            forward_of(r, 0, k) + backward_of(r, 0, k) > TOO_LONG * median;
}

static void measure_steps(struct reader *r)
{
    struct workload *w = r->workload;

    w->forward = fmax(0, mean_of(r, 0, forward_of));
    w->backward = mean_of(r, 0, backward_of);
    for (int i = 0; i < w->n; i++)
        w->tensors[i].ready = mean_of(r, i, ready_of);
    w->nranks = r->nranks;
    if (r->nranks < 2)
        return;
    w->deviation =
        sqrt(mean_of(r, 0, variance_of)) / fmax(1e-9, mean_of(r, 0, even_of));
    w->attention = mean_of(r, 0, attention_of);
}

/* Returns how many ranks have a name, which begins at spans[i]. */
static int count_ranks(const struct reader *r, int i)
{
    int end = end_of(r, i, false), n = 0;

    for (; i < end; i = end_of(r, i, true))
        n++;
    return n;
}

static int find_steps(struct reader *r)
{
    struct workload *w = r->workload;
    size_t n = (size_t)r->nsteps;
    double *values = calloc(n, sizeof *values);

    r->nranks = count_ranks(r, (int)w->tensors[0].ready);
    for (int i = 1; i < w->n; i++)
        if (count_ranks(r, (int)w->tensors[i].ready) < r->nranks)
            r->nranks = count_ranks(r, (int)w->tensors[i].ready);
    r->submitted = calloc(n * (size_t)w->n, sizeof *r->submitted);
    r->agreed = calloc(n * (size_t)w->n, sizeof *r->agreed);
    r->turns = calloc(n * (size_t)r->nranks + 1, sizeof *r->turns);
    r->is_left_out = calloc(n, sizeof *r->is_left_out);
    if (!r->submitted || !r->agreed || !r->turns || !r->is_left_out ||
        !values) {
        free(values);
        return refuse(r, "out of memory");
    }
    for (int i = 0; i < w->n; i++) {
        note_submissions(r, i, (int)w->tensors[i].ready);
        note_agreements(r, i, (int)w->tensors[i].ready);
    }
    leave_out_long(r, values);
    measure_steps(r);
    free(values);
    return 0;
}

static int read_events(struct reader *r, const json_t *events)
{
    size_t n = json_array_size(events);

    if (!json_is_array(events))
        return refuse(r, "there is no list traceEvents: not a timeline");
    r->spans = calloc(n + 1, sizeof *r->spans);
    r->agreeing = calloc(n + 1, sizeof *r->agreeing);
    r->rows = calloc(n + 1, sizeof *r->rows);
    if (!r->spans || !r->agreeing || !r->rows)
        return refuse(r, "out of memory");
    for (size_t i = 0; i < n; i++)
        if (read_row(r, json_array_get(events, i), i) < 0)
            return -1;
    qsort(r->rows, (size_t)r->nrows, sizeof *r->rows, by_number);
    for (size_t i = 0; i < n; i++)
        if (read_span(r, json_array_get(events, i), i) < 0)
            return -1;
    qsort(r->spans, (size_t)r->nspans, sizeof *r->spans, by_name);
    qsort(r->agreeing, (size_t)r->nagreeing, sizeof *r->agreeing, by_name);
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
    free(r.agreeing);
    free(r.submitted);
    free(r.agreed);
    free(r.turns);
    free(r.is_left_out);
    json_decref(root);
    return status;
}

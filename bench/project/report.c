/* SPDX-License-Identifier: Apache-2.0 */
#include "project/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MS(seconds) (1e3 * (seconds))

static const char *tensor_name(const struct projected *row, int tensor)
{
    return row->task->workload->tensors[tensor].name;
}

/* ------------------------------------------------------------------ reasons */

/* Returns the batch at whose end this one started, although it had been ready
 * before; -1: it waited for none. */
static int waited_for(const struct step_result *r, int batch)
{
    const struct step_batch *b = &r->batches[batch];

    for (int i = 0; i < r->n; i++)
        if (i != batch && r->batches[i].end > 0 &&
            fabs(r->batches[i].end - b->start) < 1e-9 &&
            b->ready < b->start - 1e-9 && r->batches[i].start < b->start)
            return i;
    return -1;
}

static int largest_tensor(const struct projected *row, int batch)
{
    const struct step_batch *b = &row->result->batches[batch];
    int largest = b->tensors[0];

    for (int i = 1; i < b->n; i++)
        if (row->task->workload->tensors[b->tensors[i]].bytes >
            row->task->workload->tensors[largest].bytes)
            largest = b->tensors[i];
    return largest;
}

/* Explains the batches before the last one that kept the network from it. */
static void explain_queue(const struct projected *row, int last,
                          void (*say)(void *context, const char *line),
                          void *context)
{
    const struct step_result *r = row->result;
    const struct workload *w = row->task->workload;
    int64_t bytes = 0;
    int first = last, n = 0, before, largest = -1;
    char line[512];

    for (int i = last; i >= 0 && n < r->n; i = before, n++) {
        int tensor = largest_tensor(row, i);

        first = i;
        before = waited_for(r, i);
        bytes += r->batches[i].bytes;
        if (largest < 0 || w->tensors[tensor].bytes > w->tensors[largest].bytes)
            largest = tensor;
    }
    if (n < 2)
        return;
    snprintf(line, sizeof line,
             "from %.3f ms of the backward pass on, %d batches of %.1f MB in "
             "all wait for each other; the largest tensor of them is '%.100s' "
             "(%.1f MB)",
             MS(r->batches[first].start), n, (double)bytes / 1e6,
             tensor_name(row, largest),
             (double)w->tensors[largest].bytes / 1e6);
    say(context, line);
}

void report_reasons(const struct projected *row,
                    void (*say)(void *context, const char *line), void *context)
{
    const struct step_result *r = row->result;
    const struct step_batch *last = step_last(r);
    double late = r->reduced - r->computed, own;
    double slowed = r->computed - r->backward;
    char line[512];

    if (!last || step_exposed(r) < 1e-9) {
        say(context, "nothing is exposed: all communication ends before the "
                     "backward pass and the updates that wait for it");
        return;
    }
    snprintf(line, sizeof line,
             "%.3f of %.3f ms of communication are hidden behind the backward "
             "pass; a step is %.3f ms longer than its computing",
             MS(r->hidden), MS(r->busy), MS(step_exposed(r)));
    say(context, line);
    if (slowed > 1e-6) {
        snprintf(line, sizeof line,
                 "%.3f ms: communication takes cores from computing",
                 MS(slowed));
        say(context, line);
    }
    if (late <= 0)
        return;
    own = fmax(
        0, fmin(late, last->ready + duration_all(last->alone) - r->computed));
    snprintf(line, sizeof line,
             "%.3f ms: the last batch, %d tensors up to '%.100s' (%.1f kB), is "
             "ready %.3f ms before the end of the backward pass, and takes "
             "%.3f ms by itself",
             MS(own), last->n, tensor_name(row, last->tensors[last->n - 1]),
             (double)last->bytes / 1e3, MS(fmax(0, r->computed - last->ready)),
             MS(duration_all(last->alone)));
    say(context, line);
    if (late - own > 1e-6) {
        snprintf(line, sizeof line,
                 "%.3f ms: it waits for ranks to agree, and for what was ready "
                 "before it",
                 MS(late - own));
        say(context, line);
        explain_queue(row, (int)(last - r->batches), say, context);
    }
}

/* ------------------------------------------------------------------- tables */

static void note(void *table, const char *line)
{
    table_note(table, line);
}

static const struct table_column step_columns[] = {
    {"hosts", 6, 0},
    {"ranks", 6, 0},
    {"step_ms", 10, 3},
    {"compute_ms", 10, 3},
    {"uneven_ms", 9, 3},
    {"exposed_ms", 10, 3},
    {"efficiency_percent", 10, 1},
    {"batches", 7, 0},
    {"rounds", 6, 0},
    {"busy_ms", 9, 3},
    {"hidden_ms", 9, 3},
    {"sent_MB", 9, 1},
    {"link_percent", 12, 1},
};

/* ranks: in all. uneven_ms: what a rank waits in the mean for slower ones to
 * have computed. sent_MB: by each host. link_percent: the share of the step in
 * which that keeps its link busy. */
static void print_step(struct table *table, const struct projected *row)
{
    const struct step_result *r = row->result;
    const struct library_shape *shape = &row->task->shape;

    table_number(table, shape->nhosts);
    table_number(table, (double)shape->nhosts * shape->nranks);
    table_number(table, MS(r->total));
    table_number(table, MS(step_computing(r)));
    table_number(table, MS(r->uneven));
    table_number(table, MS(step_exposed(r)));
    table_number(table, 100 * step_efficiency(r));
    table_number(table, r->n);
    table_number(table, r->nrounds);
    table_number(table, MS(r->busy));
    table_number(table, MS(r->hidden));
    table_number(table, r->link_bytes / 1e6);
    table_number(table,
                 100 * r->link_bytes / row->task->network.bandwidth / r->total);
}

void report_steps(FILE *out, enum table_format format, const char *title,
                  const struct projected *rows, int n)
{
    struct table table = {0};

    table_begin(&table, out, format, title, step_columns,
                sizeof step_columns / sizeof *step_columns);
    for (int i = 0; i < n; i++)
        print_step(&table, &rows[i]);
    if (n > 0)
        report_reasons(&rows[n - 1], note, &table);
    table_end(&table);
}

static const struct table_column batch_columns[] = {
    {"batch", 6, 0},       {"algorithm", -15, 0},   {"tensors", 7, 0},
    {"bytes", 12, 0},      {"ready_ms", 10, 3},     {"agreed_ms", 10, 3},
    {"start_ms", 10, 3},   {"end_ms", 10, 3},       {"alone_ms", 10, 3},
    {"exposed_ms", 10, 3}, {"last_tensor", -24, 0},
};

/* Times are from the start of the backward pass. ready_ms is that of the last
 * tensor. exposed_ms lies after the backward pass. */
void report_batches(FILE *out, enum table_format format, const char *title,
                    const struct projected *row)
{
    const struct step_result *r = row->result;
    struct table table = {0};

    table_begin(&table, out, format, title, batch_columns,
                sizeof batch_columns / sizeof *batch_columns);
    for (int i = 0; i < r->n; i++) {
        const struct step_batch *b = &r->batches[i];

        table_number(&table, i + 1);
        table_text(&table, b->algorithm);
        table_number(&table, b->n);
        table_number(&table, (double)b->bytes);
        table_number(&table, MS(b->ready));
        table_number(&table, MS(b->agreed));
        table_number(&table, MS(b->start));
        table_number(&table, MS(b->end));
        table_number(&table, MS(duration_all(b->alone)));
        table_number(&table, MS(fmax(0, b->end - fmax(b->start, r->computed))));
        table_text(&table, tensor_name(row, b->tensors[b->n - 1]));
    }
    report_reasons(row, note, &table);
    table_end(&table);
}

static const struct table_column allreduce_columns[] = {
    {"hosts", 6, 0},       {"ranks", 6, 0}, {"bytes", 12, 0},
    {"algorithm", -15, 0}, {"us", 12, 1},   {"latency_us", 12, 1},
    {"busbw_GBps", 11, 3},
};

/* One blocking allreduce: a round, and if its data does not go along, a batch.
 */
static int print_allreduce(struct table *table, const struct step_task *task,
                           struct library *library, int64_t bytes)
{
    const struct library_shape *s = &task->shape;
    bool along = library_goes_along(library, bytes);
    double p = (double)s->nhosts * s->nranks, all;
    struct library_data data = {0};
    struct duration time;
    struct plan plan;

    library_add(library, bytes, &data);
    plan = library_round(library, &data);
    time = network_time(&task->network, &plan, s->nhosts, s->nranks);
    all = duration_all(time);

    if (task->rules == STEP_RING) {
        plan = plan_ring((double)bytes, s->nhosts, s->nranks);
        time = network_time(&task->network, &plan, s->nhosts, s->nranks);
        all = duration_all(time);
    } else if (!along) {
        struct duration moved;

        plan = library_plan(library, bytes);
        moved = network_time(&task->network, &plan, s->nhosts, s->nranks);
        time.fixed += moved.fixed;
        all += duration_all(moved);
    }
    table_number(table, s->nhosts);
    table_number(table, p);
    table_number(table, (double)bytes);
    table_text(table, plan.algorithm);
    table_number(table, 1e6 * all);
    table_number(table, 1e6 * time.fixed);
    table_number(table, 2 * (p - 1) / p * (double)bytes / all / 1e9);
    return 0;
}

int report_allreduces(FILE *out, enum table_format format, const char *title,
                      const struct step_task *tasks, int n, int64_t least,
                      int64_t most, int factor)
{
    struct table table = {0};
    int status = 0;

    table_begin(&table, out, format, title, allreduce_columns,
                sizeof allreduce_columns / sizeof *allreduce_columns);
    for (int i = 0; i < n && status == 0; i++) {
        struct library *library =
            library_new(&tasks[i].shape, &tasks[i].network);

        if (!library)
            status = -1;
        for (int64_t bytes = least; bytes <= most && library; bytes *= factor)
            print_allreduce(&table, &tasks[i], library, bytes);
        library_free(library);
    }
    table_end(&table);
    return status;
}

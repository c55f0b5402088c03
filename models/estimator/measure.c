/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.c - gives metrics (hvd_metric.h) the rows of an evaluation. What a
 * metric counts is found before the first batch, by the names of outputs and
 * components, so that a mistake is known before anything has been computed.
 *
 * A row of the data may have several labels, such as the next letter at each
 * place of a text; then each of them is a row of the metric.
 */
#include "estimator/measure.h"

#include "metric/metric.h"
#include "net/make.h"
#include "output/problem.h"
#include "trainer/agree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *measure_name(const hvd_eval_metric *metric, char *name, size_t size)
{
    const hvd_metric_options *o = &metric->metric->options;

    if (metric->name)
        snprintf(name, size, "%s", metric->name);
    else if (o->kind == HVD_METRIC_TOP_K)
        snprintf(name, size, "top_%d", (int)o->k);
    else
        snprintf(name, size, "%s", hvd_metric_name(o->kind));
    return name;
}

static bool is_of_losses(hvd_metric_kind kind)
{
    return kind == HVD_METRIC_MEAN || kind == HVD_METRIC_PERPLEXITY;
}

static bool is_of_classes(hvd_metric_kind kind)
{
    return kind == HVD_METRIC_ACCURACY || kind == HVD_METRIC_TOP_K;
}

/* Sets *input to the place of a component, and *row to its elements in a row.
 */
static int find_input(const struct model *model, const char *metric,
                      const char *wanted, int *input, int64_t *row,
                      bool *is_int)
{
    bool needed;
    const char *name;

    for (int i = 0; net_input(model, i, &name, is_int, row, &needed); i++)
        if (strcmp(name, wanted) == 0) {
            *input = i;
            return 0;
        }
    return problem_fail(HVD_ERR_ARGUMENT,
                        "metric %s: the network was made for data without a "
                        "component '%s'",
                        metric, wanted);
}

/* Finds what predicts, and sets *row to its elements in a row of the data. */
static int find_output(struct measure *m, const struct model *model,
                       const hvd_eval_metric *of, const char *name,
                       int64_t capacity, int64_t *row)
{
    bool is_int = false;

    m->output = is_of_losses(m->metric->options.kind) ? -1 : 0;
    for (int i = 0; of->outputs && i < net_outputs(model); i++)
        if (strcmp(net_output(model, i), of->outputs) == 0)
            m->output = i;
    if (of->outputs && (m->output < 0 ||
                        strcmp(net_output(model, m->output), of->outputs) != 0))
        return problem_fail(HVD_ERR_ARGUMENT,
                            "metric %s: the network has no output '%s'", name,
                            of->outputs);
    *row = (m->output < 0 ? net_losses(model)
                          : net_output_elements(model, m->output, &is_int)) /
           capacity;
    return is_int ? problem_fail(HVD_ERR_ARGUMENT,
                                 "metric %s: the output '%s' is int32: a "
                                 "metric takes float32",
                                 name, net_output(model, m->output))
                  : 0;
}

static int find_labels(struct measure *m, const struct model *model,
                       const hvd_eval_metric *of, const char *name,
                       int64_t outputs)
{
    const bool classes = is_of_classes(m->metric->options.kind);
    const char *wanted = of->labels;
    bool needed;
    int64_t row;
    int status;

    m->labels = -1;
    m->rows = m->output < 0 && outputs > 0 ? outputs : 1;
    m->columns = outputs / m->rows;
    if (is_of_losses(m->metric->options.kind))
        return 0;
    if (!wanted && !net_input(model, 1, &wanted, &m->is_int, &row, &needed))
        return problem_fail(HVD_ERR_ARGUMENT,
                            "metric %s: the data has one component, and no "
                            "labels",
                            name);
    status = find_input(model, name, wanted, &m->labels, &row, &m->is_int);
    if (status < 0)
        return status;
    if (classes) {
        m->rows = row;
        m->columns = row > 0 ? outputs / row : 0;
    }
    if (classes ? !m->is_int || m->columns < 2 || m->columns * row != outputs
                : row != outputs)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "metric %s: a row has %lld predictions, and %lld "
                            "of %s in '%s': %s",
                            name, (long long)outputs, (long long)row,
                            m->is_int ? "int32" : "float32", wanted,
                            classes ? "it takes int32 labels, and a score for "
                                      "each class of each of them"
                                    : "it takes as many of both");
    return 0;
}

static int find_weights(struct measure *m, const struct model *model,
                        const hvd_eval_metric *of, const char *name)
{
    bool is_int;
    int64_t row;
    int status;

    m->weights = -1;
    if (!of->weights)
        return 0;
    status = find_input(model, name, of->weights, &m->weights, &row, &is_int);
    if (status < 0)
        return status;
    m->shares = row == 1;
    return !is_int && (row == 1 || row == m->rows)
               ? 0
               : problem_fail(HVD_ERR_ARGUMENT,
                              "metric %s: the weights '%s' must be float32, "
                              "one for each row or one for each label",
                              name, of->weights);
}

static int add_measure(struct measures *all, const hvd_eval_metric *of,
                       const struct model *model)
{
    struct measure *m = &all->list[all->count];
    int64_t outputs = 0;
    char name[64];
    int status;

    if (!of->metric)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "metric number %d of the spec is NULL", all->count);
    m->metric = all->metrics[all->count] = of->metric;
    measure_name(of, name, sizeof name);
    status = find_output(m, model, of, name, all->capacity, &outputs);
    if (status == 0)
        status = find_labels(m, model, of, name, outputs);
    if (status == 0)
        status = find_weights(m, model, of, name);
    if (status < 0)
        return status;
    hvd_metric_reset(of->metric);
    all->count++;
    return 0;
}

/* Returns how many numbers are made of a row: its weights, or its labels as
 * float32. */
static int64_t numbers_of(const struct measure *m)
{
    return is_of_classes(m->metric->options.kind) ? m->rows
                                                  : m->rows * m->columns;
}

int measures_init(struct measures *all, const hvd_eval_spec *spec,
                  const struct model *model, int64_t capacity)
{
    int64_t most = 1;
    int status = 0;

    *all = (struct measures){.capacity = capacity};
    for (int32_t i = 0; spec && i < spec->nmetrics && status == 0; i++) {
        status = add_measure(all, &spec->metrics[i], model);
        if (status == 0 && numbers_of(&all->list[i]) > most)
            most = numbers_of(&all->list[i]);
    }
    if (status < 0 || all->count == 0)
        return status;
    all->numbers = malloc((size_t)(most * capacity) * sizeof *all->numbers);
    return all->numbers ? 0
                        : problem_fail(HVD_ERR_MEMORY, "no memory for metrics");
}

void measures_fini(struct measures *all)
{
    free(all->numbers);
    *all = (struct measures){0};
}

/* Returns the weights of rows times m->rows labels; NULL: they are 1. */
static const float *weights_of(struct measures *all, const struct measure *m,
                               const struct trainer_results *r, int64_t rows)
{
    const float *weights = m->weights < 0 ? NULL : r->inputs[m->weights];

    if (!weights || !m->shares || m->rows == 1)
        return weights;
    for (int64_t i = 0; i < rows * m->rows; i++)
        all->numbers[i] = weights[i / m->rows];
    return all->numbers;
}

/* Returns labels as float32. A metric that takes such has one row of them for
 * each row of the data, so that its weights need no room. */
static const float *targets_of(struct measures *all, const struct measure *m,
                               const struct trainer_results *r, int64_t rows)
{
    const int32_t *labels = m->labels < 0 ? NULL : r->inputs[m->labels];

    if (!labels || !m->is_int)
        return (const float *)(const void *)labels;
    for (int64_t i = 0; i < rows * m->columns; i++)
        all->numbers[i] = (float)labels[i];
    return all->numbers;
}

int measures_add(struct measures *all, const struct trainer_results *r,
                 int64_t rows)
{
    int status = 0;

    for (int32_t i = 0; i < all->count && status == 0; i++) {
        const struct measure *m = &all->list[i];
        const float *y = m->output < 0 ? r->losses : r->outputs[m->output];
        const float *weights = weights_of(all, m, r, rows);

        if (is_of_classes(m->metric->options.kind))
            status =
                hvd_metric_update_classes(m->metric, y, r->inputs[m->labels],
                                          weights, rows * m->rows, m->columns);
        else
            status =
                hvd_metric_update(m->metric, y, targets_of(all, m, r, rows),
                                  weights, rows * m->rows, m->columns);
    }
    return status;
}

int measures_merge(struct measures *all)
{
    return all->count > 0
               ? hvd_metric_merge_ranks(all->metrics, all->count, agree_group())
               : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - the log of an estimator, which rank 0 writes. What it gets is that
 * of all ranks already. */
#include "estimator/estimator.h"
#include "estimator/measure.h"
#include "output/problem.h"

#include <hvd_log.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

int record_open(hvd_estimator *e)
{
    hvd_log_options options;
    char folder[PATH_MAX];

    if (!e->options.log_dir || hvd_rank() != 0 || e->log)
        return 0;
    hvd_log_options_init(&options, sizeof options);
    options.formats = e->options.log_formats;
    options.step = e->step;
    if (snprintf(folder, sizeof folder, "%s%s", e->options.log_dir,
                 e->watches ? "/eval" : "") >= (int)sizeof folder)
        return problem_fail(HVD_ERR_ARGUMENT, "log_dir: the path is too long");
    if (e->watches)
        mkdir(e->options.log_dir, 0777); /* the training may not have begun */
    return hvd_log_open(folder, &options, &e->log);
}

int record_training(const hvd_estimator *e, double loss, double rate,
                    double speed)
{
    const double rows = speed * (double)(e->capacity * e->options.replicas) *
                        (double)e->workers;
    int status = hvd_log_scalar(e->log, "train/loss", e->step, loss);

    if (status == 0)
        status = hvd_log_scalar(e->log, "train/learning_rate", e->step, rate);
    if (status == 0)
        status =
            hvd_log_scalar(e->log, "train/steps_per_second", e->step, speed);
    if (status == 0)
        status = hvd_log_scalar(e->log, "train/rows_per_second", e->step, rows);
    if (status == 0 && e->options.loss_scale > 0)
        status = hvd_log_scalar(e->log, "train/loss_scale", e->step,
                                e->numbers[NUMBER_SCALE]);
    return status;
}

int values_add(struct values *v, const char *name, double value)
{
    char *copy = v->names[v->count];

    if (snprintf(copy, sizeof v->names[0], "%s", name) >=
        (int)sizeof v->names[0])
        return problem_fail(HVD_ERR_ARGUMENT,
                            "the name %.64s... of a value has more than %zu "
                            "bytes",
                            name, sizeof v->names[0] - 1);
    v->list[v->count++] = (hvd_value){.name = copy, .value = value};
    return 0;
}

static int add(struct values *v, const hvd_eval_spec *spec, const char *what,
               double value)
{
    const char *name = spec && spec->name ? spec->name : NULL;
    char tag[600];

    snprintf(tag, sizeof tag, "eval%s%.256s/%.256s", name ? "_" : "",
             name ? name : "", what);
    return values_add(v, tag, value);
}

int values_of(struct values *v, const hvd_eval_spec *spec,
              const hvd_results *results)
{
    int status;

    v->count = 0;
    status = add(v, spec, "loss", results->loss);
    if (status == 0 && !isnan(results->accuracy))
        status = add(v, spec, "accuracy", results->accuracy);
    for (int32_t i = 0; spec && i < spec->nmetrics && status == 0; i++) {
        char metric[300];

        measure_name(&spec->metrics[i], metric, sizeof metric);
        if (strcmp(metric, "accuracy") != 0 || isnan(results->accuracy))
            status = add(v, spec, metric,
                         hvd_metric_result(spec->metrics[i].metric));
    }
    return status;
}

int record_values(const hvd_estimator *e, const struct values *v)
{
    int status = 0;

    for (int32_t i = 0; i < v->count && status == 0; i++)
        status = hvd_log_scalar(e->log, v->names[i], e->step, v->list[i].value);
    return status == 0 ? hvd_log_flush(e->log) : status;
}

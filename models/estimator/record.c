/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - the log of an estimator, which rank 0 writes. What it gets is that
 * of all ranks already. */
#include "estimator/estimator.h"
#include "estimator/measure.h"
#include "output/problem.h"

#include <hvd_log.h>
#include <math.h>

int record_open(hvd_estimator *e)
{
    hvd_log_options options;

    if (!e->options.log_dir || hvd_rank() != 0 || e->log)
        return 0;
    hvd_log_options_init(&options, sizeof options);
    options.formats = e->options.log_formats;
    options.step = e->step;
    return hvd_log_open(e->options.log_dir, &options, &e->log);
}

int record_training(const hvd_estimator *e, double loss, double rate,
                    double speed)
{
    const double rows = speed * (double)(e->capacity * e->options.replicas) *
                        (double)hvd_size();
    int status = hvd_log_scalar(e->log, "train/loss", e->step, loss);

    if (status == 0)
        status = hvd_log_scalar(e->log, "train/learning_rate", e->step, rate);
    if (status == 0)
        status =
            hvd_log_scalar(e->log, "train/steps_per_second", e->step, speed);
    if (status == 0)
        status = hvd_log_scalar(e->log, "train/rows_per_second", e->step, rows);
    return status;
}

static int record(const hvd_estimator *e, const char *name, const char *what,
                  double value)
{
    char tag[256];

    if (snprintf(tag, sizeof tag, "eval%s%s/%s", name ? "_" : "",
                 name ? name : "", what) >= (int)sizeof tag)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "the log: the names of an evaluation, %.32s..., "
                            "and of its metric, %.32s..., have more than 249 "
                            "bytes together",
                            name ? name : "", what);
    return hvd_log_scalar(e->log, tag, e->step, value);
}

int record_evaluation(const hvd_estimator *e, const hvd_eval_spec *spec,
                      const hvd_results *results)
{
    const char *name = spec ? spec->name : NULL;
    int status = record(e, name, "loss", results->loss);

    if (status == 0 && !isnan(results->accuracy))
        status = record(e, name, "accuracy", results->accuracy);
    for (int32_t i = 0; spec && i < spec->nmetrics && status == 0; i++) {
        char metric[256];

        measure_name(&spec->metrics[i], metric, sizeof metric);
        status =
            record(e, name, metric, hvd_metric_result(spec->metrics[i].metric));
    }
    return status == 0 ? hvd_log_flush(e->log) : status;
}

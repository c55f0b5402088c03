/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.c - evaluations and predictions: sums and counts of all ranks, so
 * that unequal shares count each row once. */
#include "estimator/estimator.h"
#include "estimator/measure.h"
#include "net/make.h"
#include "output/clock.h"
#include "output/problem.h"
#include "trainer/agree.h"

#include <math.h>
#include <string.h>

struct look {
    const hvd_estimator *estimator;
    const hvd_eval_spec *spec; /* may be NULL */
    struct measures measures;  /* none in a prediction */
    double loss, correct, rows;
};

void hvd_eval_spec_init(hvd_eval_spec *spec, size_t size)
{
    memset(spec, 0, size);
    spec->size = (uint32_t)size;
    spec->start_delay_secs = 120;
    spec->throttle_secs = 600;
    spec->wait_secs = 3600;
}

/* Returns how many of the rows have their largest logit where their class is.
 */
static int64_t count_correct(const struct trainer_results *r, int64_t classes)
{
    const float *logits = r->outputs[0];
    const int32_t *labels = r->inputs[1];
    int64_t correct = 0;

    for (int64_t i = 0; i < r->rows; i++, logits += classes) {
        int64_t best = 0;

        for (int64_t k = 1; k < classes; k++)
            if (logits[k] > logits[best])
                best = k;
        correct += best == labels[i];
    }
    return correct;
}

static int look_at(void *context, const struct trainer_results *r)
{
    struct look *look = context;
    const hvd_estimator *e = look->estimator;
    const void *outputs[16];
    int status = 0;

    look->rows += (double)r->rows;
    for (int64_t i = 0; r->losses && i < r->rows; i++)
        look->loss += (double)r->losses[i];
    if (r->losses && e->classes > 0)
        look->correct += (double)count_correct(r, e->classes);
    status = measures_add(&look->measures, r, r->rows / e->losses);
    if (status < 0)
        return problem_set("%s", hvd_last_error());
    if (e->program && e->program->visit)
        status = e->program->visit(e->program->context, r);
    if (!look->spec || !look->spec->visit)
        return status;
    for (int i = 0; i < net_outputs(r->model); i++)
        outputs[i] = r->outputs[i];
    status = look->spec->visit(look->spec->visit_context, r->rows / e->losses,
                               outputs, r->losses);
    return status < 0 ? problem_set("the visit of a batch returned %d", status)
                      : 0;
}

static int check_spec(const hvd_eval_spec *spec)
{
    if (!spec ||
        (spec->size >= sizeof *spec && spec->steps >= 0 &&
         spec->nmetrics >= 0 && spec->nmetrics <= HVD_EVAL_MOST_METRICS &&
         (spec->nmetrics == 0 || spec->metrics)))
        return 0;
    return problem_fail(HVD_ERR_ARGUMENT,
                        "evaluate: the spec must be set by "
                        "hvd_eval_spec_init, steps not be negative, and "
                        "nmetrics from 0 to %d, with an array of them",
                        HVD_EVAL_MOST_METRICS);
}

static int run(hvd_estimator *e, hvd_dataset *data, const hvd_eval_spec *spec,
               bool predicts, struct look *look)
{
    struct input in;
    int status = estimator_open(e, data, false, &in);

    if (status == 0)
        status = check_spec(spec);
    if (status == 0 && spec)
        in.most = spec->steps;
    /* A rank without data cannot make the trainer, but can use it. */
    status = estimator_prepare(e, status < 0 ? NULL : &in);
    if (status == 0 && e->input) /* in the middle of a training */
        status = trainer_settle(e->trainer);
    if (status == 0)
        status = estimator_agree(
            input_match(&in, trainer_model(e->trainer), predicts));
    if (status == 0 && !predicts)
        status = estimator_agree(measures_init(
            &look->measures, spec, trainer_model(e->trainer), e->capacity));
    if (status == 0)
        status = trainer_show(
            e->trainer,
            e->averages && !(spec && spec->trained) ? e->averages : NULL);
    if (status == 0)
        status = estimator_agree(trainer_visit(
            e->trainer, predicts, input_fill_test, &in, look_at, look));
    input_close(&in);
    return status;
}

/* Collective: makes results of what all ranks have seen. */
static int merge(struct look *look, hvd_results *found)
{
    const hvd_estimator *e = look->estimator;
    double sums[] = {look->loss, look->correct, look->rows};

    if (agree_sum(sums, 3) < 0)
        return problem_fail(HVD_ERR_PEER, "%s", problem_text());
    found->global_step = e->step;
    found->loss = sums[0] / sums[2];
    found->accuracy = e->classes > 0 ? sums[1] / sums[2] : (double)NAN;
    found->rows = (int64_t)sums[2];
    return measures_merge(&look->measures);
}

/* Collective: gives the log and the hooks what was found. */
static int tell(hvd_estimator *e, const hvd_eval_spec *spec,
                const hvd_results *found)
{
    struct values values;
    int status = values_of(&values, spec, found);

    values.step = e->step;
    if (e->watches && status == 0)
        status = evaluations_write(e, &values);
    if (e->options.log_dir)
        status = estimator_agree(
            status == 0 && e->log ? record_values(e, &values) : status);
    return status < 0
               ? status
               : hooks_call(e, MOMENT_AFTER_EVALUATION, (double)NAN, &values);
}

static int evaluate(hvd_estimator *e, hvd_dataset *data,
                    const hvd_eval_spec *spec, struct found *found)
{
    struct look look = {.estimator = e, .spec = spec};
    double start = clock_seconds();
    int status = run(e, data, spec, false, &look);

    if (status == 0)
        status = merge(&look, &found->evaluation);
    measures_fini(&look.measures);
    if (status == 0)
        status = tell(e, spec, &found->evaluation);
    found->evaluation.seconds = clock_seconds() - start;
    found->evaluated = status == 0;
    return status;
}

int hvd_estimator_evaluate(hvd_estimator *e, hvd_dataset *data,
                           const hvd_eval_spec *spec, hvd_results *results)
{
    struct found found;
    int status = ranks_begin(e, &found);

    if (status > 0)
        status = ranks_end(e, &found, evaluate(e, data, spec, &found));
    else
        hvd_dataset_free(data);
    found_tell(&found, NULL, results);
    return status;
}

int hvd_estimator_predict(hvd_estimator *e, hvd_dataset *data,
                          const hvd_eval_spec *spec)
{
    struct look look = {.estimator = e, .spec = spec};
    struct found found;
    int status = ranks_begin(e, &found);

    if (status > 0)
        return ranks_end(e, &found, run(e, data, spec, true, &look));
    hvd_dataset_free(data);
    return status;
}

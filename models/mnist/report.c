/* SPDX-License-Identifier: Apache-2.0 */
#include "mnist/report.h"

#include "networks/digit_networks.h"

#include <stddef.h>

void mnist_report_head(struct training_run *run)
{
    const struct outcome *outcome = &run->outcome;
    const struct options *o = run->options;
    hvd_progress *progress = run->command->progress;

    hvd_progress_line(
        progress, "data: %lld training and %lld test digits, %s%s",
        (long long)outcome->examples, (long long)outcome->evaluated,
        o->data ? "from " : "drawn", o->data ? o->data : "");
    hvd_progress_line(progress, "network: %s, %lld parameters%s",
                      network_names[o->network], (long long)outcome->parameters,
                      o->synchronised ? ", normalised over all replicas" : "");
}

void mnist_place(const struct training_run *run, char *text, size_t size)
{
    snprintf(text, size, "epoch %d/%d", (int)run->part, run->options->epochs);
}

void mnist_evaluation(const struct outcome_part *part, char *text, size_t size)
{
    snprintf(text, size, "  test accuracy %.2f %%", 100 * part->accuracy);
}

void mnist_report_results(struct training_run *run)
{
    struct outcome_part last = outcome_last(&run->outcome);

    hvd_progress_line(run->command->progress,
                      "test accuracy  %.2f %% (%lld of %lld), loss %.4f",
                      100 * last.accuracy, (long long)last.correct,
                      (long long)run->outcome.evaluated, last.loss);
}

json_t *mnist_settings(const struct training_run *run)
{
    const struct outcome *outcome = &run->outcome;
    const struct options *o = outcome->options;

    return json_pack("{s:s, s:b, s:s, s:s, s:I, s:I}", "model",
                     network_names[o->network], "sync_batch_norm",
                     o->synchronised, "data_kind", o->data ? "mnist" : "drawn",
                     "data", o->data ? o->data : "", "train_images",
                     (json_int_t)outcome->examples, "test_images",
                     (json_int_t)outcome->evaluated);
}

/* Returns an array with one field of every epoch. */
static json_t *pack_history(const struct outcome *outcome, size_t field)
{
    json_t *array = json_array();

    for (int i = 0; i < outcome->parts && array; i++) {
        const char *part = (const char *)&outcome->history[i];
        const double *value = (const double *)(const void *)(part + field);
        if (json_array_append_new(array, outcome_real_or_null(*value)) < 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

json_t *mnist_results(const struct training_run *run)
{
    const struct outcome *outcome = &run->outcome;
    struct outcome_part last = outcome_last(outcome);

    return json_pack(
        "{s:i, s:f, s:o, s:I, s:I, s:f, s:o, s:o, s:o}", "epochs",
        outcome->parts, "test_accuracy", last.accuracy, "test_loss",
        outcome_real_or_null(last.loss), "test_correct",
        (json_int_t)last.correct, "images", (json_int_t)outcome->trained,
        "images_per_second", outcome_speed(outcome), "train_loss",
        pack_history(outcome, offsetof(struct outcome_part, train_loss)),
        "test_loss_history",
        pack_history(outcome, offsetof(struct outcome_part, loss)),
        "test_accuracy_history",
        pack_history(outcome, offsetof(struct outcome_part, accuracy)));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "mnist/summary.h"

#include "model/digit_networks.h"
#include "output/problem.h"

#include <jansson.h>
#include <stddef.h>
#include <stdlib.h>

int summary_add_epoch(struct summary *summary,
                      const struct summary_epoch *epoch)
{
    size_t count = (size_t)summary->epochs + 1;
    struct summary_epoch *grown =
        realloc(summary->history, count * sizeof *grown);

    if (!grown)
        return problem_set("no memory for the history");
    grown[count - 1] = *epoch;
    summary->history = grown;
    summary->epochs++;
    return 0;
}

void summary_fini(struct summary *summary)
{
    free(summary->history);
    summary->history = NULL;
    summary->epochs = 0;
}

double summary_images_per_second(const struct summary *summary)
{
    double seconds = summary->outcome.times.training;

    return seconds > 0 ? (double)summary->images / seconds : 0;
}

/* Returns an array with one field of every epoch. */
static json_t *pack_history(const struct summary *summary, size_t field)
{
    json_t *array = json_array();

    for (int i = 0; i < summary->epochs && array; i++) {
        const char *epoch = (const char *)&summary->history[i];
        const double *value = (const double *)(const void *)(epoch + field);
        if (json_array_append_new(array, outcome_real_or_null(*value)) < 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

static json_t *pack_settings(const struct summary *summary)
{
    const struct options *o = summary->outcome.options;

    return json_pack("{s:s, s:s, s:s, s:i, s:I, s:I}", "model",
                     network_name((enum network)o->network), "data_kind",
                     o->data ? "mnist" : "drawn", "data",
                     o->data ? o->data : "", "epochs", summary->epochs,
                     "train_images", (json_int_t)summary->train_images,
                     "test_images", (json_int_t)summary->test_images);
}

static json_t *pack_results(const struct summary *summary)
{
    return json_pack(
        "{s:f, s:o, s:I, s:I, s:f, s:o, s:o, s:o}", "test_accuracy",
        summary->test_accuracy, "test_loss",
        outcome_real_or_null(summary->test_loss), "test_correct",
        (json_int_t)summary->test_correct, "images",
        (json_int_t)summary->images, "images_per_second",
        summary_images_per_second(summary), "train_loss",
        pack_history(summary, offsetof(struct summary_epoch, train_loss)),
        "test_loss_history",
        pack_history(summary, offsetof(struct summary_epoch, test_loss)),
        "test_accuracy_history",
        pack_history(summary, offsetof(struct summary_epoch, test_accuracy)));
}

int summary_write(const struct summary *summary, const char *path)
{
    return outcome_write(&summary->outcome, pack_settings(summary),
                         pack_results(summary), "--data", path);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON is built by jansson, packed in one tree a group, and written by
 * outfile. jansson's pack takes ownership of what it is given and reports a
 * missing part once, at the end.
 */
#include "common/summary.h"

#include "common/network.h"
#include "common/outfile.h"
#include "common/problem.h"

#include <hvd_strategy.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
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
    return summary->seconds > 0 ? (double)summary->images / summary->seconds
                                : 0;
}

double summary_fraction(const struct summary *summary, double part)
{
    return summary->seconds > 0 ? part / summary->seconds : 0;
}

/* A number, or null for what JSON cannot say. */
static json_t *real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* One field of every epoch. */
static json_t *pack_history(const struct summary *summary, size_t field)
{
    json_t *array = json_array();

    for (int i = 0; i < summary->epochs && array; i++) {
        const char *epoch = (const char *)&summary->history[i];
        const double *value = (const double *)(const void *)(epoch + field);
        if (json_array_append_new(array, real_or_null(*value)) < 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

static json_t *pack_settings(const struct summary *summary)
{
    const struct options *o = summary->options;

    return json_pack(
        "{s:s, s:s, s:s, s:i, s:i, s:I, s:i, s:s, s:f, s:f, s:f, s:i, s:I, "
        "s:b, "
        "s:s, s:i, s:I, s:I}",
        "model", network_name((enum network)o->network), "data_kind",
        o->data ? "mnist" : "drawn", "data", o->data ? o->data : "",
        "world_size", summary->world_size, "epochs", summary->epochs, "steps",
        (json_int_t)summary->steps, "batch_size", o->batch_size, "optimizer",
        optimizer_name(o->optimizer.optimizer), "lr", o->learning_rate,
        "weight_decay", o->optimizer.weight_decay, "clip", o->optimizer.clip,
        "accumulate", o->optimizer.accumulate, "seed", (json_int_t)o->seed,
        "serial", o->serial, "compression",
        hvd_compression_name(o->compression), "threads", o->threads,
        "train_images", (json_int_t)summary->train_images, "test_images",
        (json_int_t)summary->test_images);
}

static json_t *pack_results(const struct summary *summary)
{
    char hash[24];

    snprintf(hash, sizeof hash, "%016" PRIx64, summary->weights_hash);
    return json_pack(
        "{s:f, s:o, s:I, s:I, s:f, s:f, s:f, s:f, s:s, s:o, s:o, s:o}",
        "test_accuracy", summary->test_accuracy, "test_loss",
        real_or_null(summary->test_loss), "test_correct",
        (json_int_t)summary->test_correct, "images",
        (json_int_t)summary->images, "images_per_second",
        summary_images_per_second(summary), "seconds", summary->seconds,
        "total_seconds", summary->total_seconds, "comm_wait_fraction",
        summary_fraction(summary, summary->wait), "weights_hash", hash,
        "train_loss",
        pack_history(summary, offsetof(struct summary_epoch, train_loss)),
        "test_loss_history",
        pack_history(summary, offsetof(struct summary_epoch, test_loss)),
        "test_accuracy_history",
        pack_history(summary, offsetof(struct summary_epoch, test_accuracy)));
}

static json_t *pack(const struct summary *summary)
{
    double parts =
        summary->compute + summary->wait + summary->update + summary->data;
    json_t *root =
        json_pack("{s:s, s:s, s:I, s:{s:f, s:f, s:f, s:f, s:f}}", "program",
                  summary->program, "version", HVD_VERSION_STRING, "parameters",
                  (json_int_t)summary->parameters, "time_seconds", "compute",
                  summary->compute, "communication_wait", summary->wait,
                  "update", summary->update, "data", summary->data, "other",
                  fmax(summary->seconds - parts, 0));

    if (!root)
        return NULL;
    json_t *settings = pack_settings(summary);
    json_t *results = pack_results(summary);
    int failed = !settings || !results || json_object_update(root, settings) ||
                 json_object_update(root, results);
    json_decref(settings);
    json_decref(results);
    if (failed) {
        json_decref(root);
        return NULL;
    }
    return root;
}

int summary_write(const struct summary *summary, const char *path)
{
    struct outfile out;
    json_t *root = pack(summary);

    /* The one text that is not ours is the path of the data. */
    if (!root)
        return problem_set("--summary: the results cannot be written as JSON "
                           "(is the --data path UTF-8?)");
    int status = outfile_open(&out, "--summary", path);
    if (status == 0) {
        json_dumpf(root, out.file, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
        fputc('\n', out.file);
        status = outfile_commit(&out);
    }
    json_decref(root);
    return status;
}

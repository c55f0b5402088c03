/* SPDX-License-Identifier: Apache-2.0 */
#include "gpt/gpt_summary.h"

#include "common/outfile.h"
#include "common/problem.h"

#include <hvd_strategy.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

int gpt_summary_add(struct gpt_summary *summary,
                    const struct gpt_evaluation *evaluation)
{
    size_t count = (size_t)summary->evaluations + 1;
    struct gpt_evaluation *grown =
        realloc(summary->history, count * sizeof *grown);

    if (!grown)
        return problem_set("no memory for the history");
    grown[count - 1] = *evaluation;
    summary->history = grown;
    summary->evaluations++;
    return 0;
}

void gpt_summary_fini(struct gpt_summary *summary)
{
    free(summary->history);
    summary->history = NULL;
    summary->evaluations = 0;
}

double gpt_summary_speed(const struct gpt_summary *summary)
{
    return summary->seconds > 0 ? (double)summary->tokens / summary->seconds
                                : 0;
}

static json_t *pack_history(const struct gpt_summary *summary)
{
    json_t *array = json_array();

    for (int i = 0; i < summary->evaluations && array; i++) {
        const struct gpt_evaluation *e = &summary->history[i];
        json_t *one =
            json_pack("{s:I, s:f, s:f, s:f, s:f}", "step", (json_int_t)e->step,
                      "train_loss", e->train_loss, "validation_loss", e->loss,
                      "perplexity", exp(e->loss), "accuracy", e->accuracy);

        if (json_array_append_new(array, one) < 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

/* null if there are no stages. */
static json_t *pack_pipeline(const struct gpt_summary *summary)
{
    const struct cut *cut = &summary->options->cut;
    const struct cut_stats *s = &summary->cut;

    if (cut->stages == 0)
        return json_null();
    return json_pack(
        "{s:i, s:s, s:i, s:b, s:i, s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:I, "
        "s:I, s:I, s:I}",
        "stages", cut->stages, "schedule", cut_schedule_name(cut->schedule),
        "replicas", cut->replicas, "recompute", cut->recompute, "ipus", s->ipus,
        "mini_batches", (json_int_t)s->mini_batches, "updates",
        (json_int_t)s->updates, "slots", (json_int_t)s->slots, "idle_fraction",
        s->idle, "modelled_seconds", s->seconds, "stash_bytes",
        (json_int_t)s->stash_bytes, "tile_bytes", (json_int_t)s->tile_bytes,
        "bytes_per_tile", (json_int_t)s->bytes_per_tile, "inter_ipu_bytes",
        (json_int_t)s->inter_ipu_bytes, "averages", (json_int_t)s->averages,
        "early", (json_int_t)s->early);
}

static json_t *pack_settings(const struct gpt_summary *summary)
{
    const struct options *o = summary->options;
    const struct gpt_shape *g = &o->gpt;

    return json_pack(
        "{s:s, s:i, s:i, s:i, s:i, s:i, s:f, s:b, s:i, s:s, s:f, s:f, s:f, "
        "s:i, s:I, s:b, s:s, s:i, s:I, s:I, s:i, s:I, s:o}",
        "text", o->text ? o->text : "", "world_size", summary->world_size,
        "layers", g->layers, "heads", g->heads, "width", g->width, "context",
        g->context, "dropout", g->dropout, "tied", g->tied, "batch_size",
        o->batch_size, "optimizer", optimizer_name(o->optimizer.optimizer),
        "lr", o->learning_rate, "weight_decay", o->optimizer.weight_decay,
        "clip", o->optimizer.clip, "accumulate", o->optimizer.accumulate,
        "seed", (json_int_t)o->seed, "serial", o->serial, "compression",
        hvd_compression_name(o->compression), "threads", o->threads,
        "text_characters", (json_int_t)summary->text_count, "train_characters",
        (json_int_t)summary->train_count, "vocabulary", summary->characters,
        "validated_characters", (json_int_t)summary->evaluated, "pipeline",
        pack_pipeline(summary));
}

static json_t *pack_results(const struct gpt_summary *summary)
{
    const struct gpt_summary *s = summary;
    const struct gpt_evaluation *last = &s->history[s->evaluations - 1];
    double parts = s->compute + s->wait + s->update + s->data;
    char hash[24];

    snprintf(hash, sizeof hash, "%016" PRIx64, s->weights_hash);
    return json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, "
        "s:s, s:o, s:{s:f, s:f, s:f, s:f, s:f}}",
        "program", options_name(s->options->program), "version",
        HVD_VERSION_STRING, "parameters", (json_int_t)s->parameters, "steps",
        (json_int_t)s->steps, "tokens", (json_int_t)s->tokens,
        "tokens_per_second", gpt_summary_speed(s), "seconds", s->seconds,
        "total_seconds", s->total_seconds, "comm_wait_fraction",
        s->seconds > 0 ? s->wait / s->seconds : 0, "train_loss",
        last->train_loss, "validation_loss", last->loss, "perplexity",
        exp(last->loss), "accuracy", last->accuracy, "weights_hash", hash,
        "history", pack_history(s), "time_seconds", "compute", s->compute,
        "communication_wait", s->wait, "update", s->update, "data", s->data,
        "other", fmax(s->seconds - parts, 0));
}

int gpt_summary_write(const struct gpt_summary *summary, const char *path)
{
    json_t *root = pack_results(summary), *settings = pack_settings(summary);
    int failed = !root || !settings || json_object_update(root, settings);
    struct outfile out;

    json_decref(settings);
    if (failed) {
        json_decref(root);
        return problem_set("--summary: the results cannot be written as JSON "
                           "(is the --text path UTF-8?)");
    }
    int status = outfile_open(&out, "--summary", path);
    if (status == 0) {
        json_dumpf(root, out.file, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
        fputc('\n', out.file);
        status = outfile_commit(&out);
    }
    json_decref(root);
    return status;
}

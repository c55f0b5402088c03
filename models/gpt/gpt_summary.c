/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpt_summary.c - owns the history of evaluations, and writes the JSON of
 * --summary: the fields of all programs (outcome.c), settings, results, and the
 * pipeline if there is one.
 */
#include "gpt/gpt_summary.h"

#include "output/problem.h"

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
    double seconds = summary->outcome.times.training;

    return seconds > 0 ? (double)summary->tokens / seconds : 0;
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

/* Returns null if there are no stages. */
static json_t *pack_pipeline(const struct gpt_summary *summary)
{
    const struct partition *partition = &summary->outcome.options->partition;
    const struct partition_stats *s = &summary->outcome.partition;

    if (partition->stages == 0)
        return json_null();
    return json_pack(
        "{s:i, s:s, s:i, s:b, s:i, s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:I, "
        "s:I, s:I, s:I}",
        "stages", partition->stages, "schedule",
        partition_schedule_name(partition->schedule), "replicas",
        partition->replicas, "recompute", partition->recompute, "ipus", s->ipus,
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
    const struct options *o = summary->outcome.options;
    const struct gpt_shape *g = &o->gpt;

    return json_pack(
        "{s:s, s:i, s:i, s:i, s:i, s:f, s:b, s:I, s:I, s:i, s:I}", "text",
        o->text ? o->text : "", "layers", g->layers, "heads", g->heads, "width",
        g->width, "context", g->context, "dropout", g->dropout, "tied", g->tied,
        "text_characters", (json_int_t)summary->text_count, "train_characters",
        (json_int_t)summary->train_count, "vocabulary", summary->characters,
        "validated_characters", (json_int_t)summary->evaluated);
}

static json_t *pack_results(const struct gpt_summary *summary)
{
    const struct gpt_evaluation *last =
        &summary->history[summary->evaluations - 1];

    return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "tokens",
                     (json_int_t)summary->tokens, "tokens_per_second",
                     gpt_summary_speed(summary), "train_loss", last->train_loss,
                     "validation_loss", last->loss, "perplexity",
                     exp(last->loss), "accuracy", last->accuracy, "history",
                     pack_history(summary), "pipeline", pack_pipeline(summary));
}

int gpt_summary_write(const struct gpt_summary *summary, const char *path)
{
    return outcome_write(&summary->outcome, pack_settings(summary),
                         pack_results(summary), "--text", path);
}

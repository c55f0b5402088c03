/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - the lines of char_gpt, and its fields in the JSON of --summary:
 * settings, results, and the pipeline if there is one.
 */
#include "gpt/report.h"

#include <math.h>

static const struct text *text_of(const struct training_run *run)
{
    return &((const struct gpt *)run->own)->text;
}

/* ---------------------------------------------------------------- as lines */

void gpt_report_head(struct training_run *run)
{
    const struct options *o = run->options;
    const struct text *text = text_of(run);
    hvd_progress *progress = run->command->progress;

    hvd_progress_line(progress,
                      "text: %lld characters of %d kinds, %lld to train on, %s",
                      (long long)text->count, text->characters,
                      (long long)run->outcome.examples,
                      o->text ? o->text : "hvd's documentation");
    hvd_progress_line(progress,
                      "network: %d layers, %d heads, %d wide, context %d, %lld "
                      "parameters",
                      o->gpt.layers, o->gpt.heads, o->gpt.width, o->gpt.context,
                      (long long)run->outcome.parameters);
    if (o->partition.stages > 0)
        hvd_progress_line(
            progress,
            "pipeline: %d stages, %s, %d replica%s, %d mini-batches "
            "of each to an update%s",
            o->partition.stages, partition_schedules[o->partition.schedule],
            o->replicas, o->replicas > 1 ? "s" : "", o->optimizer.accumulate,
            o->partition.recompute ? ", recomputed" : "");
}

void gpt_place(const struct training_run *run, char *text, size_t size)
{
    int64_t made = run->outcome.steps, all = run->options->steps;

    snprintf(text, size, "step %lld/%lld", (long long)made, (long long)all);
}

void gpt_evaluation(const struct outcome_part *part, char *text, size_t size)
{
    snprintf(text, size, "  validation loss %.4f, perplexity %.2f", part->loss,
             exp(part->loss));
}

/* Returns the part with the lowest validation loss; of several, the first. */
static struct outcome_part best_of(const struct outcome *outcome)
{
    struct outcome_part best = outcome_last(outcome);

    for (int i = outcome->parts - 1; i >= 0; i--)
        if (outcome->history[i].loss <= best.loss)
            best = outcome->history[i];
    return best;
}

void gpt_report_results(struct training_run *run)
{
    struct outcome_part last = outcome_last(&run->outcome);
    struct outcome_part best = best_of(&run->outcome);

    hvd_progress_line(
        run->command->progress,
        "validation     loss %.4f, perplexity %.2f, %.2f %% of %lld "
        "characters foreseen",
        last.loss, exp(last.loss), 100 * last.accuracy,
        (long long)run->outcome.evaluated);
    if (run->outcome.parts > 1)
        hvd_progress_line(run->command->progress,
                          "best           loss %.4f, perplexity %.2f, after "
                          "step %lld of %lld",
                          best.loss, exp(best.loss), (long long)best.step,
                          (long long)last.step);
}

/* ----------------------------------------------------------------- as JSON */

static json_t *pack_history(const struct outcome *outcome)
{
    json_t *array = json_array();

    for (int i = 0; i < outcome->parts && array; i++) {
        const struct outcome_part *e = &outcome->history[i];
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
static json_t *pack_pipeline(const struct outcome *outcome)
{
    const struct partition *partition = &outcome->options->partition;
    const struct partition_stats *s = &outcome->partition;

    if (partition->stages == 0)
        return json_null();
    return json_pack(
        "{s:i, s:s, s:i, s:b, s:i, s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:I, "
        "s:I, s:I, s:I}",
        "stages", partition->stages, "schedule",
        partition_schedules[partition->schedule], "replicas",
        outcome->options->replicas, "recompute", partition->recompute, "ipus",
        s->ipus, "mini_batches", (json_int_t)s->mini_batches, "updates",
        (json_int_t)s->updates, "slots", (json_int_t)s->slots, "idle_fraction",
        s->idle, "modelled_seconds", s->seconds, "stash_bytes",
        (json_int_t)s->stash_bytes, "tile_bytes", (json_int_t)s->tile_bytes,
        "bytes_per_tile", (json_int_t)s->bytes_per_tile, "inter_ipu_bytes",
        (json_int_t)s->inter_ipu_bytes, "averages", (json_int_t)s->averages,
        "early", (json_int_t)s->early);
}

json_t *gpt_settings(const struct training_run *run)
{
    const struct outcome *outcome = &run->outcome;
    const struct options *o = outcome->options;
    const struct gpt_shape *g = &o->gpt;
    const struct text *text = text_of(run);

    return json_pack(
        "{s:s, s:i, s:i, s:i, s:i, s:f, s:b, s:I, s:I, s:i, s:I}", "text",
        o->text ? o->text : "", "layers", g->layers, "heads", g->heads, "width",
        g->width, "context", g->context, "dropout", g->dropout, "tied", g->tied,
        "text_characters", (json_int_t)text->count, "train_characters",
        (json_int_t)outcome->examples, "vocabulary", text->characters,
        "validated_characters", (json_int_t)outcome->evaluated);
}

json_t *gpt_results(const struct training_run *run)
{
    const struct outcome *outcome = &run->outcome;
    struct outcome_part last = outcome_last(outcome), best = best_of(outcome);

    return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:o, s:o}",
                     "tokens", (json_int_t)outcome->trained,
                     "tokens_per_second", outcome_speed(outcome), "train_loss",
                     last.train_loss, "validation_loss", last.loss,
                     "perplexity", exp(last.loss), "accuracy", last.accuracy,
                     "best_validation_loss", best.loss, "best_step",
                     (json_int_t)best.step, "history", pack_history(outcome),
                     "pipeline", pack_pipeline(outcome));
}

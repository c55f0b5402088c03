/* SPDX-License-Identifier: Apache-2.0 */
/*
 * char_gpt - trains a small transformer to write like a text, on every rank
 * that mpirun started, and then writes a sample. Each rank has its own software
 * IPU and its own pieces of the text; gradients are averaged while the backward
 * pass runs.
 */
#include "command/training_run.h"
#include "data/pieces.h"
#include "gpt/loop.h"
#include "gpt/sample.h"
#include "gpt/transformer.h"
#include "trainer/agree.h"

#include <math.h>

struct char_gpt {
    struct text text;
    struct pieces pieces;
    struct gpt_summary summary;
};

static int prepare_run(struct training_run *run)
{
    const struct options *o = run->options;
    const struct agree_number own[] = {
        {"--layers", o->gpt.layers},
        {"--heads", o->gpt.heads},
        {"--width", o->gpt.width},
        {"--context", o->gpt.context},
        {"--tie", o->gpt.tied},
        {"--dropout", (int64_t)(o->gpt.dropout * 1e15)},
        {"--warmup", o->warmup},
        {"--eval-windows", o->eval_windows},
        {"--stages", o->partition.stages},
        {"--schedule", o->partition.schedule},
        {"--replicas", o->partition.replicas},
        {"--recompute", o->partition.recompute},
    };

    return command_prepare(run->command, own, sizeof own / sizeof *own);
}

static int load_text(struct training_run *run)
{
    struct char_gpt *gpt = run->own;
    const struct options *o = run->options;

    int status = agree(text_load(o->text, &gpt->text));
    if (!status)
        status = agree_same("the text to learn", gpt->text.hash);
    if (!status)
        status = agree(pieces_init(
            &gpt->pieces, &gpt->text, o->gpt.context, o->batch_size,
            run->command->rank, run->command->size, o->seed, o->eval_windows));
    gpt->pieces.replicas = o->partition.replicas;
    if (!status && o->sample > 0)
        status = agree(sample_check(o, &gpt->text));
    gpt->summary.text_count = gpt->text.count;
    gpt->summary.train_count = gpt->text.train;
    gpt->summary.characters = gpt->text.characters;
    gpt->summary.evaluated = gpt->pieces.evaluated * gpt->pieces.context;
    return status;
}

static void make_model(struct training_run *run,
                       struct trainer_options *options, struct model **model)
{
    struct char_gpt *gpt = run->own;

    options->fill = pieces_fill;
    options->fill_context = &gpt->pieces;
    transformer_model(&run->options->gpt, run->options->batch_size,
                      gpt->text.characters, model);
}

static const struct gpt_summary *summary_of(const struct training_run *run)
{
    return &((const struct char_gpt *)run->own)->summary;
}

static void report_head(struct training_run *run)
{
    const struct options *o = run->options;
    const struct gpt_summary *s = summary_of(run);

    outcome_report_head(&run->command->progress, &s->outcome,
                        (int64_t)o->batch_size * o->gpt.context *
                            o->partition.replicas,
                        "characters");
    progress_line(&run->command->progress,
                  "text: %lld characters of %d kinds, %lld to train on, %s",
                  (long long)s->text_count, s->characters,
                  (long long)s->train_count,
                  o->text ? o->text : "hvd's documentation");
    progress_line(&run->command->progress,
                  "network: %d layers, %d heads, %d wide, context %d, %lld "
                  "parameters",
                  o->gpt.layers, o->gpt.heads, o->gpt.width, o->gpt.context,
                  (long long)s->outcome.parameters);
    if (o->partition.stages > 0)
        progress_line(
            &run->command->progress,
            "pipeline: %d stages, %s, %d replica%s, %d mini-batches "
            "of each to an update%s",
            o->partition.stages, partition_schedule_name(o->partition.schedule),
            o->partition.replicas, o->partition.replicas > 1 ? "s" : "",
            o->optimizer.accumulate,
            o->partition.recompute ? ", recomputed" : "");
}

/* Reports on the modelled chips; the other lines are measured here. */
static void report_partition(struct training_run *run)
{
    const struct partition_stats *c = &run->outcome->partition;

    progress_line(&run->command->progress,
                  "pipeline       %d modelled IPUs a rank: %.3g s, idle %.1f "
                  "%%, %lld slots, %lld update%s",
                  c->ipus, c->seconds, 100 * c->idle, (long long)c->slots,
                  (long long)c->updates, c->updates == 1 ? "" : "s");
    progress_line(
        &run->command->progress,
        "chips          fullest tile %lld of %lld bytes, most stashed "
        "on an IPU %lld bytes, %lld bytes between IPUs",
        (long long)c->tile_bytes, (long long)c->bytes_per_tile,
        (long long)c->stash_bytes, (long long)c->inter_ipu_bytes);
}

static void report_results(struct training_run *run)
{
    const struct gpt_summary *s = summary_of(run);
    const struct gpt_evaluation *last = &s->history[s->evaluations - 1];

    progress_line(&run->command->progress,
                  "validation     loss %.4f, perplexity %.2f, %.2f %% of %lld "
                  "characters foreseen",
                  last->loss, exp(last->loss), 100 * last->accuracy,
                  (long long)s->evaluated);
    progress_line(&run->command->progress,
                  "speed          %.0f tokens/s, %lld characters in %.2f s",
                  gpt_summary_speed(s), (long long)s->tokens,
                  s->outcome.times.training);
    outcome_report_times(&run->command->progress, &s->outcome);
    if (run->options->partition.stages > 0)
        report_partition(run);
    outcome_report_weights(&run->command->progress, &s->outcome);
}

static int run_loop(struct training_run *run)
{
    struct char_gpt *gpt = run->own;
    struct gpt_loop loop = {run->options, &gpt->pieces, run->trainer,
                            &run->command->progress, &gpt->summary};

    return gpt_loop_run(&loop);
}

static int write_summary(struct training_run *run, const char *path)
{
    return gpt_summary_write(summary_of(run), path);
}

static int print_sample(struct training_run *run)
{
    const struct char_gpt *gpt = run->own;
    int status;

    if (run->options->sample == 0)
        return 0;
    printf("\n");
    status = sample_write(run->options, &gpt->text,
                          trainer_values(run->trainer), stdout);
    printf("\n");
    return status;
}

static void free_data(struct training_run *run)
{
    struct char_gpt *gpt = run->own;

    text_fini(&gpt->text);
    gpt_summary_fini(&gpt->summary);
}

static const struct training_functions functions = {
    .program = OPTIONS_CHAR_GPT,
    .prepare = prepare_run,
    .load = load_text,
    .make_model = make_model,
    .report_head = report_head,
    .train = run_loop,
    .report_results = report_results,
    .write_summary = write_summary,
    .write_more = print_sample,
    .fini = free_data,
};

int main(int argc, char **argv)
{
    struct char_gpt gpt = {.summary.evaluations = 0};

    return training_main(&functions, &gpt.summary.outcome, &gpt, argc, argv);
}

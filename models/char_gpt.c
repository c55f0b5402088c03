/* SPDX-License-Identifier: Apache-2.0 */
/*
 * char_gpt - trains a small transformer to write like a text, on every rank
 * that mpirun started: each on its own software IPU with its own pieces of the
 * text, gradients averaged while the backward pass runs; then writes a sample.
 *
 * What only one rank can find wrong is agreed on by all before they go on, so
 * that all end, non-zero, and one of them says why.
 */
#include "command/command.h"
#include "gpt/loop.h"
#include "gpt/sample.h"
#include "gpt/transformer.h"
#include "output/clock.h"
#include "trainer/agree.h"

#include <math.h>

/* What the run needs, torn down together. */
struct run {
    struct command *command;
    const struct options *options; /* the command's */
    struct text text;
    struct pieces pieces;
    struct trainer *trainer;
    struct gpt_summary summary;
};

static int prepare(struct command *command)
{
    const struct options *o = command->options;
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

    return command_prepare(command, own, sizeof own / sizeof *own);
}

static int load_text(struct run *run)
{
    const struct options *o = run->options;

    int status = agree(text_load(o->text, &run->text));
    if (!status)
        status = agree_same("the text to learn", run->text.hash);
    if (!status)
        status = agree(pieces_init(
            &run->pieces, &run->text, o->gpt.context, o->batch_size,
            run->command->rank, run->command->size, o->seed, o->eval_windows));
    run->pieces.replicas = o->partition.replicas;
    if (!status && o->sample > 0)
        status = agree(sample_check(o, &run->text));
    return status;
}

static int make_network(struct run *run)
{
    struct trainer_options options = options_trainer(run->options);
    struct model *model = NULL;

    transformer_model(&run->options->gpt, run->options->batch_size,
                      run->text.characters, &model);
    options.rank = run->command->rank;
    options.progress = &run->command->progress;
    options.fill = pieces_fill;
    options.fill_context = &run->pieces;
    return trainer_new(model, &options, &run->trainer);
}

static void report_head(struct run *run)
{
    const struct options *o = run->options;
    const struct gpt_summary *s = &run->summary;

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

/* Of the modelled chips, beside what was measured here. */
static void report_partition(struct run *run)
{
    const struct partition_stats *c = &run->summary.partition;

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

static void report_results(struct run *run)
{
    const struct gpt_summary *s = &run->summary;
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

/* Rank 0 writes what was asked for. */
static int write_results(struct run *run)
{
    const struct options *o = run->options;
    int status = 0;

    if (run->command->rank == 0 && o->summary)
        status = gpt_summary_write(&run->summary, o->summary);
    if (status == 0)
        status = command_write_files(run->command, run->trainer);
    if (run->command->rank == 0 && o->sample > 0 && status == 0) {
        printf("\n");
        status =
            sample_write(o, &run->text, trainer_values(run->trainer), stdout);
        printf("\n");
    }
    return agree(status);
}

static int train(struct run *run)
{
    struct gpt_summary *s = &run->summary;
    struct gpt_loop loop = {run->options, &run->pieces, run->trainer,
                            &run->command->progress, s};
    double start = clock_seconds();

    s->text_count = run->text.count;
    s->train_count = run->text.train;
    s->characters = run->text.characters;
    s->evaluated = run->pieces.evaluated * run->pieces.context;
    s->outcome.parameters = trainer_parameters(run->trainer);
    report_head(run);
    int status = gpt_loop_run(&loop);
    if (!status)
        status = trainer_compare_ranks(run->trainer, &s->outcome.weights_hash);
    if (!status && run->options->partition.stages > 0)
        status = agree(trainer_partition_stats(run->trainer, &s->partition));
    if (status)
        return status;
    s->outcome.times.total = clock_seconds() - start;
    report_results(run);
    return write_results(run);
}

/* The whole run, on a started library. */
static int run_all(struct command *command)
{
    struct run run = {.command = command,
                      .options = command->options,
                      .summary.outcome = {.options = command->options,
                                          .world_size = command->size}};
    int status = prepare(command);

    if (!status)
        status = load_text(&run);
    if (!status)
        status = make_network(&run);
    if (!status)
        status = train(&run);
    trainer_free(run.trainer);
    text_fini(&run.text);
    gpt_summary_fini(&run.summary);
    return status;
}

int main(int argc, char **argv)
{
    return command_main(OPTIONS_CHAR_GPT, argc, argv, run_all);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * char_gpt - trains a small transformer to write like a text, on every rank
 * that mpirun started: each on its own software IPU with its own pieces of the
 * text, gradients averaged while the backward pass runs; then writes a sample.
 *
 * What only one rank can find wrong is agreed on by all before they go on, so
 * that all end, non-zero, and one of them says why.
 */
#include "common/agree.h"
#include "common/clock.h"
#include "common/command.h"
#include "common/interrupt.h"
#include "common/outfile.h"
#include "common/problem.h"
#include "common/profile.h"
#include "gpt/gpt_trainer.h"
#include "gpt/sample.h"
#include "gpt/transformer.h"

#include <hvd_strategy.h>
#include <inttypes.h>
#include <math.h>

/* What the run needs, torn down together. */
struct run {
    struct options options;
    struct progress progress;
    struct text text;
    struct pieces pieces;
    struct joint *joint;
    struct gpt_summary summary;
};

/* Results go to rank 0's files; they must be writable before hours pass. */
static int check_files(const struct options *options)
{
    int status = 0;

    if (hvd_rank() == 0) {
        status = outfile_check("--summary", options->summary);
        if (status == 0)
            status = outfile_check("--save-weights", options->weights);
        if (status == 0)
            status = profile_check(options->profile);
    }
    return agree(status);
}

static int check_options(const struct options *o)
{
    const struct {
        const char *name;
        int64_t value;
    } counts[] = {
        {"--layers", o->gpt.layers},
        {"--heads", o->gpt.heads},
        {"--width", o->gpt.width},
        {"--context", o->gpt.context},
        {"--tie", o->gpt.tied},
        {"--dropout", (int64_t)(o->gpt.dropout * 1e15)},
        {"--warmup", o->warmup},
        {"--eval-windows", o->eval_windows},
        {"--stages", o->cut.stages},
        {"--schedule", o->cut.schedule},
        {"--replicas", o->cut.replicas},
        {"--recompute", o->cut.recompute},
    };
    int status = agree_options(o);

    for (size_t i = 0; i < sizeof counts / sizeof *counts && !status; i++)
        status = agree_same(counts[i].name, (uint64_t)counts[i].value);
    return status;
}

static int load_text(struct run *run)
{
    const struct options *o = &run->options;

    int status = agree(text_load(o->text, &run->text));
    if (!status)
        status = agree_same("the text to learn", run->text.hash);
    if (!status)
        status = agree(pieces_init(&run->pieces, &run->text, o->gpt.context,
                                   o->batch_size, hvd_rank(), hvd_size(),
                                   o->seed, o->eval_windows));
    run->pieces.replicas = o->cut.replicas;
    if (!status && o->sample > 0)
        status = agree(sample_check(o, &run->text));
    return status;
}

static int make_network(struct run *run)
{
    struct joint_options options = options_joint(&run->options);
    struct model *model = NULL;

    transformer_model(&run->options.gpt, run->options.batch_size,
                      run->text.characters, &model);
    options.progress = &run->progress;
    options.fill = pieces_fill;
    options.fill_context = &run->pieces;
    return joint_new(model, &options, &run->joint);
}

static void report_head(struct run *run)
{
    const struct options *o = &run->options;
    const struct gpt_summary *s = &run->summary;
    int64_t step = (int64_t)o->batch_size * o->gpt.context * o->cut.replicas;
    int64_t all = step * s->world_size;

    progress_line(&run->progress,
                  "%s: %d rank%s, %lld characters per rank and step (%lld in "
                  "all), %s, learning rate %g%s, compression %s",
                  options_name(o->program), s->world_size,
                  s->world_size > 1 ? "s" : "", (long long)step, (long long)all,
                  optimizer_name(o->optimizer.optimizer), o->learning_rate,
                  o->serial ? ", serial" : "",
                  hvd_compression_name(o->compression));
    progress_line(&run->progress,
                  "text: %lld characters of %d kinds, %lld to train on, %s",
                  (long long)s->text_count, s->characters,
                  (long long)s->train_count,
                  o->text ? o->text : "hvd's documentation");
    progress_line(&run->progress,
                  "network: %d layers, %d heads, %d wide, context %d, %lld "
                  "parameters",
                  o->gpt.layers, o->gpt.heads, o->gpt.width, o->gpt.context,
                  (long long)s->parameters);
    if (o->cut.stages > 0)
        progress_line(&run->progress,
                      "pipeline: %d stages, %s, %d replica%s, %d mini-batches "
                      "of each to an update%s",
                      o->cut.stages, cut_schedule_name(o->cut.schedule),
                      o->cut.replicas, o->cut.replicas > 1 ? "s" : "",
                      o->optimizer.accumulate,
                      o->cut.recompute ? ", recomputed" : "");
}

static double percent(const struct gpt_summary *s, double part)
{
    return s->seconds > 0 ? 100 * part / s->seconds : 0;
}

/* Of the modelled chips, beside what was measured here. */
static void report_cut(struct run *run)
{
    const struct cut_stats *c = &run->summary.cut;

    progress_line(&run->progress,
                  "pipeline       %d modelled IPUs a rank: %.3g s, idle %.1f "
                  "%%, %lld slots, %lld update%s",
                  c->ipus, c->seconds, 100 * c->idle, (long long)c->slots,
                  (long long)c->updates, c->updates == 1 ? "" : "s");
    progress_line(
        &run->progress,
        "chips          fullest tile %lld of %lld bytes, most stashed "
        "on an IPU %lld bytes, %lld bytes between IPUs",
        (long long)c->tile_bytes, (long long)c->bytes_per_tile,
        (long long)c->stash_bytes, (long long)c->inter_ipu_bytes);
}

static void report_results(struct run *run)
{
    const struct gpt_summary *s = &run->summary;
    const struct gpt_evaluation *last = &s->history[s->evaluations - 1];

    progress_line(&run->progress,
                  "validation     loss %.4f, perplexity %.2f, %.2f %% of %lld "
                  "characters foreseen",
                  last->loss, exp(last->loss), 100 * last->accuracy,
                  (long long)s->evaluated);
    progress_line(&run->progress,
                  "speed          %.0f tokens/s, %lld characters in %.2f s",
                  gpt_summary_speed(s), (long long)s->tokens, s->seconds);
    progress_line(&run->progress,
                  "time           compute %.1f %%, waiting for communication "
                  "%.1f %%, update %.1f %%, data %.1f %%",
                  percent(s, s->compute), percent(s, s->wait),
                  percent(s, s->update), percent(s, s->data));
    if (s->options->cut.stages > 0)
        report_cut(run);
    progress_line(&run->progress,
                  "weights        equal on all ranks, checksum %016" PRIx64,
                  s->weights_hash);
}

/* Rank 0 writes what was asked for. */
static int write_results(struct run *run)
{
    const struct options *o = &run->options;
    int status = 0;

    if (hvd_rank() == 0) {
        if (o->summary)
            status = gpt_summary_write(&run->summary, o->summary);
        if (o->weights && status == 0)
            status = joint_save(run->joint, o->weights);
        if (status == 0)
            status =
                joint_profile(run->joint, o->profile, options_name(o->program));
        if (o->sample > 0 && status == 0) {
            printf("\n");
            status =
                sample_write(o, &run->text, joint_values(run->joint), stdout);
            printf("\n");
        }
    }
    return agree(status);
}

static int train(struct run *run)
{
    struct gpt_trainer trainer = {&run->options, &run->pieces, run->joint,
                                  &run->progress, &run->summary};
    double start = clock_seconds();

    run->summary.text_count = run->text.count;
    run->summary.train_count = run->text.train;
    run->summary.characters = run->text.characters;
    run->summary.evaluated = run->pieces.evaluated * run->pieces.context;
    run->summary.parameters = joint_parameters(run->joint);
    report_head(run);
    int status = gpt_trainer_run(&trainer);
    if (!status)
        status = joint_compare_ranks(run->joint, &run->summary.weights_hash);
    if (!status && run->options.cut.stages > 0)
        status = agree(joint_cut_stats(run->joint, &run->summary.cut));
    if (status)
        return status;
    run->summary.total_seconds = clock_seconds() - start;
    report_results(run);
    return write_results(run);
}

/* The whole run, on a started library. */
static int run_all(struct run *run)
{
    int status = check_options(&run->options);
    if (!status)
        status = check_files(&run->options);
    if (!status)
        status = load_text(run);
    if (!status)
        status = make_network(run);
    if (!status)
        status = train(run);
    return status;
}

int main(int argc, char **argv)
{
    const char *program = options_name(OPTIONS_CHAR_GPT);
    struct run run = {0};

    interrupt_install();
    int status = options_parse(OPTIONS_CHAR_GPT, &run.options, argc, argv);
    if (status != OPTIONS_RUN)
        return command_settle(OPTIONS_CHAR_GPT, status);
    status = hvd_init();
    if (status < 0) {
        problem_set("hvd: %s", hvd_last_error());
        command_complain(program, PROBLEM_EVERYWHERE, progress_launch_rank(),
                         1);
        return 1;
    }
    int rank = hvd_rank();
    int size = hvd_size();
    if (run.options.learning_rate == 0)
        run.options.learning_rate = options_default_rate(&run.options, size);
    progress_init(&run.progress, stdout, rank == 0);
    run.summary.options = &run.options;
    run.summary.world_size = size;
    status = run_all(&run);
    progress_clear(&run.progress);
    if (status == 0)
        status = agree(command_flush());
    if (status < 0)
        command_complain(program, status, rank, size);
    joint_free(run.joint);
    text_fini(&run.text);
    gpt_summary_fini(&run.summary);
    hvd_shutdown();
    return status < 0;
}

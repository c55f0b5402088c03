/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training_run.c - the order of a run, and its loop of steps and evaluations.
 *
 * Every rank makes the same calls in the same order: the number of steps, the
 * steps at which losses are averaged and the parts that are evaluated follow
 * from the plan, which all ranks share, never from a clock or from what one
 * rank found. A rank that fails returns at once; the others notice in their
 * next step, when the one that failed shuts the library down.
 */
#include "command/training_run.h"

#include "command/checkpoints.h"
#include "command/evaluate.h"
#include "command/remote_run.h"
#include "output/clock.h"
#include "output/problem.h"
#include "trainer/agree.h"
#include "trainer/serving.h"

#include <math.h>

/* The loss is averaged over the ranks so many times a part, for the progress
 * line: seldom enough to cost nothing. */
enum { REPORTS = 20 };

/* -------------------------------------------------------------------- steps
 */

/* Replaces a loss by its average over the ranks, and counts the wait. */
static int average_loss(struct training_run *run, double *loss)
{
    double start = clock_seconds();
    int status = agree_average(loss, 1);

    run->outcome.times.wait += clock_seconds() - start;
    if (status == 0 && !isfinite(*loss)) {
        problem_set("the loss is no longer a number after step %lld: the "
                    "training diverged, try a smaller --lr than %g",
                    (long long)run->outcome.steps, run->options->learning_rate);
        return PROBLEM_EVERYWHERE;
    }
    return status;
}

static void show_loss(const struct training_run *run, double loss)
{
    char note[64];

    snprintf(note, sizeof note, "loss %.4f", loss);
    hvd_progress_update(run->command->progress, run->outcome.steps, note);
}

static int keep_checkpoint(struct training_run *run)
{
    double start = clock_seconds();
    int status = checkpoints_keep(run);

    logs_spend(run, LOGS_CHECKPOINT, clock_seconds() - start);
    return status;
}

/* Makes as many steps as the trainer makes at a time, at the rate of the last
 * of them. Sets *loss to the mean on this rank. */
static int make_steps(struct training_run *run, int count, double *loss)
{
    int64_t last = run->outcome.steps + count - 1;

    logs_step_begins(run);
    int status = trainer_step(
        run->trainer, options_rate(run->options, run->plan.steps, last), loss);

    run->outcome.steps += count;
    run->part_made += count;
    if (status < 0)
        return status; /* whose text the progress's check might replace */
    hvd_progress_update(run->command->progress, run->outcome.steps, NULL);
    status = logs_step_ends(run, count, *loss);
    return status < 0 ? status : keep_checkpoint(run);
}

/* Keeps the loss of the steps just made, the mean over all ranks, for the file
 * of --losses. Collective. */
static int keep_loss(struct training_run *run, double loss)
{
    int status;

    if (!run->options->losses)
        return 0;
    status = average_loss(run, &loss);
    if (status < 0 || run->command->rank != 0)
        return status;
    return losses_add(&run->losses, run->outcome.steps, loss);
}

/* Makes the steps of a part. Sets *loss to their mean over all ranks. */
static int train_part(struct training_run *run, double *loss)
{
    int64_t interval = run->plan.interval, since = 0;
    int once = trainer_steps(run->trainer);
    double sum = 0, recent = 0;

    if (interval == 0)
        interval = run->part_steps / REPORTS + 1;
    while (run->part_made < run->part_steps) {
        double fresh = 0;
        int status = make_steps(run, once, &fresh);

        if (status == 0)
            status = keep_loss(run, fresh);
        if (status < 0)
            return status;
        sum += fresh * once;
        recent += fresh * once;
        since += once;
        if (since < interval)
            continue;
        recent /= (double)since;
        status = average_loss(run, &recent);
        if (status < 0)
            return status;
        show_loss(run, recent);
        recent = 0;
        since = 0;
    }
    *loss = sum / (double)run->part_steps;
    return average_loss(run, loss);
}

/* -------------------------------------------------------------------- parts
 */

/* Has the bar say what is done now. */
static void name_phase(const struct training_run *run, const char *name)
{
    hvd_progress_rename(run->command->progress, name);
}

static void name_part(const struct training_run *run)
{
    char place[48];

    run->functions->place(run, place, sizeof place);
    name_phase(run, run->functions->named_parts ? place : "training");
}

/* Evaluates all that there is to evaluate, each piece on one rank. */
static int evaluate(struct training_run *run, struct outcome_part *part)
{
    double sums[2] = {0, 0}; /* loss, correct */
    double evaluated = (double)run->outcome.evaluated, start = clock_seconds();
    bool visits = run->command->log && run->functions->visit_tests;

    name_phase(run, "evaluating");
    int status = agree(
        trainer_evaluate(run->trainer, run->plan.fill_test, run->plan.data,
                         visits ? run->functions->visit_tests : NULL, run->own,
                         &sums[0], &sums[1]));
    if (status == 0)
        status = agree_sum(sums, 2);
    if (status < 0)
        return status;
    part->loss = sums[0] / evaluated;
    part->accuracy = sums[1] / evaluated;
    part->correct = (int64_t)sums[1];
    logs_spend(run, LOGS_EVALUATION, clock_seconds() - start);
    logs_evaluated(run, part);
    return 0;
}

static void report_part(struct training_run *run,
                        const struct outcome_part *part, int64_t trained,
                        double seconds)
{
    char place[48], evaluation[96] = "";

    run->functions->place(run, place, sizeof place);
    if (!isnan(part->accuracy))
        run->functions->evaluation(part, evaluation, sizeof evaluation);
    hvd_progress_line(run->command->progress,
                      "%s  loss %.4f%s  %.0f %s/s  %.1f s", place,
                      part->train_loss, evaluation,
                      seconds > 0 ? (double)trained / seconds : 0,
                      run->functions->speed, seconds);
}

/* Makes the steps of a part, and an evaluation if it is due. */
static int run_part(struct training_run *run, bool evaluates)
{
    struct outcome *outcome = &run->outcome;
    struct outcome_part part = {.loss = NAN, .accuracy = NAN};
    int64_t trained = run->part_steps * outcome->per_step * outcome->world_size;
    double start = clock_seconds();

    name_part(run);
    int status = train_part(run, &part.train_loss);
    double seconds = clock_seconds() - start;

    if (status < 0)
        return status;
    outcome->times.training += seconds;
    outcome->trained += trained;
    status = trainer_settle(run->trainer);
    if (status == 0 && evaluates)
        status = evaluate(run, &part);
    if (status < 0)
        return status;
    part.step = outcome->steps;
    report_part(run, &part, trained, seconds);
    return outcome_add(outcome, &part);
}

/* Adds the trainer's times, and averages all but the total over the ranks. */
static int finish_times(struct training_run *run)
{
    struct times *times = &run->outcome.times;
    struct trainer_times of_trainer = trainer_times(run->trainer);
    double parts[] = {times->training, of_trainer.compute,
                      times->wait + of_trainer.wait, of_trainer.update,
                      of_trainer.data};
    int status = agree_average(parts, sizeof parts / sizeof *parts);
    if (status < 0)
        return status;
    times->training = parts[0];
    times->compute = parts[1];
    times->wait = parts[2];
    times->update = parts[3];
    times->data = parts[4];
    return 0;
}

/* Evaluates what an earlier run has trained to its end. */
static int train_nothing(struct training_run *run)
{
    struct outcome_part part = {.step = run->first, .train_loss = NAN};
    int status = trainer_settle(run->trainer);

    hvd_progress_line(run->command->progress,
                      "all %lld steps have been made before",
                      (long long)run->plan.steps);
    if (status == 0)
        status = evaluate(run, &part);
    return status < 0 ? status : outcome_add(&run->outcome, &part);
}

static int train(struct training_run *run)
{
    const struct training_plan *plan = &run->plan;
    int every = plan->evaluate_every;
    int64_t left = plan->steps - run->first;

    if (left <= 0)
        return train_nothing(run);
    hvd_progress_phase(run->command->progress, "training", 0, plan->steps,
                       "steps");
    hvd_progress_update(run->command->progress, run->first, NULL);
    for (; left > 0; left -= run->part_steps) {
        int64_t rest = plan->part - run->outcome.steps % plan->part;
        int status;

        run->part = run->outcome.steps / plan->part + 1;
        run->part_steps = rest < left ? rest : left;
        run->part_made = 0;
        status = run_part(run, run->part_steps == left ||
                                   (every > 0 && run->part % every == 0));
        if (status < 0)
            return status;
    }
    hvd_progress_end(run->command->progress);
    if (logs_end(run) < 0)
        return PROBLEM;
    return finish_times(run);
}

/* ------------------------------------------------------------------ the run
 */

static int make_trainer(struct training_run *run)
{
    struct trainer_options options = options_trainer(run->options);
    struct model *model = NULL;

    options.rank = run->command->rank;
    options.progress = run->command->progress;
    options.fill = run->plan.fill;
    options.fill_context = run->plan.data;
    options.first = run->first;
    run->functions->make_model(run, &model);
    return trainer_new(model, &options, &run->trainer);
}

/* Rank 0 writes the files that the command line requests. */
static int write_results(struct training_run *run)
{
    const struct training_functions *f = run->functions;
    const struct options *o = run->options;
    int status = 0;

    if (run->command->rank == 0) {
        if (o->summary)
            status = outcome_write(&run->outcome, f->settings(run),
                                   f->results(run), f->source, o->summary);
        if (status == 0 && o->losses)
            status = losses_write(&run->losses, o->losses);
        if (status == 0)
            status = checkpoints_finish(run);
        if (status == 0 && o->weights)
            status = trainer_save(run->trainer, o->weights);
        if (status == 0)
            status = trainer_profile(run->trainer, o->profile,
                                     run->command->program);
        if (status == 0)
            status = logs_close(run->command);
        if (status == 0 && f->write_more)
            status = f->write_more(run);
    }
    return agree(status);
}

static int train_and_report(struct training_run *run)
{
    const struct training_functions *f = run->functions;
    hvd_progress *progress = run->command->progress;
    struct outcome *outcome = &run->outcome;
    double start = clock_seconds();
    int status = logs_begin(run);

    if (status)
        return status;
    outcome->parameters = trainer_parameters(run->trainer);
    outcome_report_head(outcome, progress, f->unit);
    f->report_head(run);
    status = train(run);
    if (!status)
        status = trainer_compare_ranks(run->trainer, &outcome->weights_hash);
    if (!status && run->options->partition.stages > 0)
        status =
            agree(trainer_partition_stats(run->trainer, &outcome->partition));
    else if (!status && run->options->replicas > 1)
        status = agree(trainer_sums_stats(run->trainer, &outcome->sums));
    if (status)
        return status;
    outcome->times.total = clock_seconds() - start;
    f->report_results(run);
    outcome_report(outcome, progress, f->unit, f->speed);
    return write_results(run);
}

static int make_and_train(struct training_run *run)
{
    int status = checkpoints_find(run);

    if (status == 0)
        status = make_trainer(run);
    if (status == 0)
        status = checkpoints_resume(run);
    return status < 0 ? status : train_and_report(run);
}

/* A parameter server needs neither data nor a device. */
static int serve(const struct options *options)
{
    const struct trainer_options trainer = options_trainer(options);
    const struct exchange_settings settings = trainer_exchange(&trainer);

    return serving_run(&settings);
}

/* Does the whole run, after the library has started. */
static int run_training(struct command *command)
{
    struct training_run *run = command->context;
    int status;

    run->command = command;
    run->options = command->options;
    run->outcome.options = command->options;
    status = command_prepare(command);
    if (command->serves)
        return status ? status : serve(run->options);
    run->outcome.world_size = command->size;
    if (!status)
        status = run->functions->load(run);
    if (!status)
        status = command->role == HVD_ROLE_EVALUATOR ? evaluate_checkpoints(run)
                                                     : make_and_train(run);
    checkpoints_close(run);
    logs_fini(run);
    losses_fini(&run->losses);
    trainer_free(run->trainer);
    run->functions->fini(run);
    outcome_fini(&run->outcome);
    return status;
}

int training_main(const struct training_functions *functions, void *own,
                  int argc, char **argv)
{
    struct training_run run = {.functions = functions, .own = own};
    struct options options;
    struct command command = {
        .options = &options, .run = run_training, .context = &run};
    int parsed = options_parse(functions->program, &options, argc, argv);

    command.quiet = options.quiet;
    if (parsed == LINE_RUN && options.remote) {
        run.command = &command;
        run.options = &options;
        return remote_main(&run);
    }
    return command_run(options_line(functions->program, &options), parsed,
                       &command);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training_run.c - the order of a run. An estimator makes the steps, averages
 * the loss, and keeps checkpoints; what the program does with each step, and
 * behind each part of the training, is here.
 *
 * Every rank makes the same calls in the same order: the number of steps, the
 * steps at which losses are averaged and the parts that are evaluated follow
 * from the plan, which all ranks share, never from a clock or from what one
 * rank found. A rank that fails returns at once; the others notice in their
 * next step, when the one that failed shuts the library down.
 */
#include "command/training_run.h"

#include "command/evaluate.h"
#include "command/losses_of_ranks.h"
#include "command/remote_run.h"
#include "command/replay.h"
#include "estimator/estimator.h"
#include "output/clock.h"
#include "output/problem.h"
#include "trainer/agree.h"
#include "trainer/serving.h"

#include <math.h>
#include <string.h>

/* The loss is averaged over the ranks so many times a part, for the progress
 * line: seldom enough to cost nothing. */
enum { REPORTS = 20 };

/* -------------------------------------------------------------------- steps */

/* Replaces a loss by its average over the ranks, and counts the wait. */
static int average_loss(struct training_run *run, double *loss)
{
    double start = clock_seconds();
    int status = trainer_meet(run->trainer);

    if (status == 0)
        status = agree_average(loss, 1);
    run->outcome.times.wait += clock_seconds() - start;
    if (status == 0 && !isfinite(*loss)) {
        problem_set("the loss is no longer a number after step %lld: the "
                    "training diverged, try a smaller --lr than %g",
                    (long long)run->outcome.steps, run->options->learning_rate);
        return PROBLEM_EVERYWHERE;
    }
    return status;
}

/* Shows the mean loss of all ranks. */
static void show_loss(void *context, int64_t step, double loss,
                      double steps_per_second)
{
    const struct training_run *run = context;
    char note[64];

    (void)steps_per_second;
    snprintf(note, sizeof note, "loss %.4f", loss);
    hvd_progress_update(run->command->progress, step, note);
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

/* --------------------------------------------------------------------- data */

int64_t training_rows(const struct training_run *run)
{
    const struct options *o = run->options;

    return (int64_t)o->batch_size * o->replicas * run->command->size;
}

/* Checks that there is enough data for a step. The same on all ranks. */
static int check_rows(const struct training_run *run)
{
    const struct options *o = run->options;
    const int64_t rows = training_rows(run);

    if (run->plan.examples >= rows)
        return 0;
    problem_set("--batch-size %d on %d ranks needs %lld %s, there are %lld",
                o->batch_size * o->replicas, run->command->size,
                (long long)rows, run->functions->examples,
                (long long)run->plan.examples);
    return PROBLEM_EVERYWHERE;
}

/* -------------------------------------------------------------------- parts */

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

/* Returns the problem (problem.h) of an estimator that has failed. */
static int problem_of(int status)
{
    switch (status) {
    case HVD_ERR_PEER: return PROBLEM_ELSEWHERE;
    case HVD_ERR_UNSUPPORTED: return PROBLEM_EVERYWHERE; /* it diverges */
    default: return status;
    }
}

/* Evaluates all that there is to evaluate, each piece on one rank. */
static int evaluate(struct training_run *run, struct outcome_part *part)
{
    hvd_results found = {.size = sizeof found};
    double start = clock_seconds();
    int status;

    name_phase(run, "evaluating");
    status = hvd_estimator_evaluate(
        run->estimator, hvd_dataset_keep(run->plan.tests), NULL, &found);
    if (status < 0)
        return problem_of(status);
    part->loss = found.loss;
    part->accuracy = found.accuracy;
    part->correct = llround(found.accuracy * (double)found.rows);
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

/* Begins the part of the next step. */
static void begin_part(struct training_run *run)
{
    const hvd_position *p = &run->estimator->position;
    const struct training_plan *plan = &run->plan;
    int64_t left = plan->steps - run->outcome.steps;
    int64_t rest = plan->part - run->outcome.steps % plan->part;

    run->part = run->outcome.steps / plan->part + 1;
    if (run->options->elastic && run->options->epochs > 0) {
        const int64_t rows = training_rows(run);

        /* The rest of an epoch has other steps in each world. */
        run->part = p->epoch + 1;
        rest = (run->plan.examples - p->samples) / rows;
        if (rest <= 0) {
            run->part++;
            rest = run->plan.examples / rows;
        }
        /* Fewer ranks may find that an epoch which was over has more steps. */
        if (run->outcome.parts >= run->part)
            run->outcome.parts = (int)run->part - 1;
    }
    run->part_steps = rest < left ? rest : left;
    run->part_made = 0;
    run->part_loss = 0;
    run->part_began = clock_seconds();
    name_part(run);
}

/* Averages the loss of a part that is made, and evaluates if that is due. */
static int end_part(struct training_run *run)
{
    struct outcome *outcome = &run->outcome;
    const int every = run->plan.evaluate_every;
    const bool is_last = outcome->steps >= run->plan.steps;
    struct outcome_part part = {.step = outcome->steps,
                                .train_loss =
                                    run->part_loss / (double)run->part_made,
                                .loss = NAN,
                                .accuracy = NAN};
    int64_t trained = run->part_made * outcome->per_step * outcome->world_size;
    int status = average_loss(run, &part.train_loss);
    double seconds = clock_seconds() - run->part_began;

    outcome->times.training += seconds;
    outcome->trained += trained;
    if (status == 0 && (is_last || (every > 0 && run->part % every == 0)))
        status = evaluate(run, &part);
    if (status < 0)
        return status;
    report_part(run, &part, trained, seconds);
    if (!is_last)
        begin_part(run);
    return outcome_add(outcome, &part);
}

/* -------------------------------------------------------- what is done when */

static int before_step(void *context)
{
    replay_before_step(context);
    logs_step_begins(context);
    return 0;
}

static int after_step(void *context, double loss)
{
    struct training_run *run = context;
    const int count = trainer_steps(run->trainer);
    int status;

    run->outcome.steps += count;
    run->part_made += count;
    run->part_loss += loss * count;
    hvd_progress_update(run->command->progress, run->outcome.steps, NULL);
    status = logs_step_ends(run, count, loss);
    if (status == 0)
        status = keep_loss(run, loss);
    return status == 0 && run->part_made >= run->part_steps ? end_part(run)
                                                            : status;
}

/* Goes on in another world, from an earlier step. */
static int begin_again(struct training_run *run)
{
    struct outcome *o = &run->outcome;
    hvd_progress *progress = run->command->progress;

    hvd_progress_line(progress,
                      "ranks have gone or come: %d go on after step %lld",
                      run->command->size, (long long)o->steps);
    while (o->parts > 0 && o->history[o->parts - 1].step > o->steps)
        o->parts--;
    if (elastic_share(run) < 0)
        return PROBLEM;
    if (o->steps >= run->plan.steps)
        return 0;
    hvd_progress_phase(progress, "training", 0, run->plan.steps, "steps");
    hvd_progress_update(progress, o->steps, NULL);
    begin_part(run);
    return 0;
}

/* Tells what is trained, and from where it goes on. */
static int begin(void *context, hvd_estimator *estimator)
{
    struct training_run *run = context;
    const struct training_functions *f = run->functions;
    hvd_progress *progress = run->command->progress;

    run->trainer = estimator->trainer;
    run->outcome.steps = estimator->step;
    if (run->begun)
        return begin_again(run);
    run->begun = true;
    if (estimator->step > 0 && *estimator->resumed)
        hvd_progress_line(progress, "goes on after step %lld, from %s%s%s",
                          (long long)estimator->step, estimator->resumed,
                          *estimator->passed_over ? "; " : "",
                          estimator->passed_over);
    run->began = clock_seconds();
    if (logs_begin(run) < 0 || elastic_share(run) < 0)
        return PROBLEM;
    run->outcome.parameters = trainer_parameters(run->trainer);
    outcome_report_head(&run->outcome, progress, f->unit);
    f->report_head(run);
    if (run->outcome.steps >= run->plan.steps)
        return 0;
    hvd_progress_phase(progress, "training", 0, run->plan.steps, "steps");
    hvd_progress_update(progress, run->outcome.steps, NULL);
    begin_part(run);
    return 0;
}

static int visit(void *context, const struct trainer_results *results)
{
    struct training_run *run = context;

    return run->command->log.log && run->functions->visit_tests
               ? run->functions->visit_tests(run->own, results)
               : 0;
}

/* ------------------------------------------------------------- the training */

/* Adds the trainer's times to those that this rank has measured, and averages
 * all but the total over the ranks. */
static int finish_times(struct training_run *run, const struct times *measured)
{
    struct times *times = &run->outcome.times;
    struct trainer_times of_trainer = trainer_times(run->trainer);
    double parts[] = {measured->training, of_trainer.compute,
                      measured->wait + of_trainer.wait, of_trainer.update,
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
    struct outcome_part part = {.step = run->outcome.steps, .train_loss = NAN};
    int status;

    hvd_progress_line(run->command->progress,
                      "all %lld steps have been made before",
                      (long long)run->plan.steps);
    status = evaluate(run, &part);
    return status < 0 ? status : outcome_add(&run->outcome, &part);
}

static int train(struct training_run *run)
{
    const hvd_train_spec spec = {.size = sizeof spec,
                                 .max_steps = run->plan.steps};
    hvd_dataset *data = run->plan.train;
    int status;

    run->plan.train = NULL;
    status = hvd_estimator_train(run->estimator, data, &spec, NULL);
    run->command->is_temporary = run->estimator->has_too_few;
    if (status == 0)
        elastic_adopt_end(run);
    if (status == 0 && run->outcome.parts == 0)
        status = train_nothing(run);
    hvd_progress_end(run->command->progress);
    if (status == 0)
        status = logs_end(run);
    return status < 0 ? problem_of(status) : 0;
}

/* What must be the same for a training to go on with the steps that it would
 * have had: each follows from the number of the step, and from these. Those of
 * an elastic training follow from its position in the data, of any number of
 * ranks.
 */
static void set_marks(const struct training_run *run,
                      struct estimator_program *program)
{
    const struct outcome *o = &run->outcome;
    const struct estimator_mark marks[] = {
        {"seed", "--seed", (int64_t)run->options->seed},
        {"examples", "so many examples to train on", o->examples},
        {"global_batch", "so many in a step of all ranks (--global-batch)",
         o->per_step * o->world_size}};

    program->nmarks = sizeof marks / sizeof *marks;
    if (run->options->elastic)
        program->nmarks--; /* the last */
    memcpy(program->marks, marks, sizeof marks);
}

static void describe_program(struct training_run *run,
                             struct estimator_program *program)
{
    *program =
        (struct estimator_program){.name = run->command->program,
                                   .folder = "--model-dir",
                                   .trainer = options_trainer(run->options),
                                   .workers = run->command->size,
                                   .begin = begin,
                                   .before_step = before_step,
                                   .after_step = after_step,
                                   .visit = visit,
                                   .changed = elastic_changed,
                                   .last = elastic_last,
                                   .nlost = program->nlost,
                                   .context = run};
    if (run->nworlds > 0) {
        program->leaves = replay_leaves;
        program->enter = replay_enter;
    }
    program->data_mark = run->plan.data_mark;
    program->trainer.rank = run->command->rank;
    program->trainer.progress = run->command->progress;
    set_marks(run, program);
}

static int make_estimator(struct training_run *run)
{
    struct options *o = run->command->options;
    const int64_t interval = run->plan.interval;
    hvd_estimator_options options;
    int status;

    hvd_estimator_options_init(&options, sizeof options);
    options.model = run->functions->network(run);
    if (!options.model)
        return PROBLEM;
    options.model_dir = o->model_dir;
    options.optimizer = optimizer_names[o->optimizer.optimizer];
    options.rate = options_schedule(o, o->rate_adapts ? run->plan.steps
                                                      : run->schedule_steps);
    options.accumulate = o->optimizer.accumulate;
    options.replicas = o->replicas;
    options.ema_decay = o->ema;
    options.ema_warmup = 1;
    options.seed = o->seed;
    options.save_checkpoints_steps = o->checkpoint_every;
    options.save_checkpoints_secs = 0;
    options.log_step_count_steps =
        interval > 0 ? interval : run->plan.part / REPORTS + 1;
    options.elastic = o->elastic_min;
    options.elastic_steps = o->elastic_steps;
    options.elastic_log = o->elastic_log;
    options.exclude_stragglers = o->exclude_stragglers;
    options.log = show_loss;
    options.log_context = run;
    status = hvd_estimator_new(&options, &run->estimator);
    if (status == 0) {
        estimator_adopt(run->estimator, &run->program);
        run->estimator->own[0] = run->schedule_steps;
    }
    return status;
}

/* ------------------------------------------------------------------ the run */

float *const *training_values(const struct training_run *run)
{
    return run->estimator->averages ? run->estimator->averages
                                    : trainer_values(run->trainer);
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
        if (status == 0 && o->weights)
            status =
                trainer_save(run->trainer, training_values(run), o->weights);
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

/* Says and writes what has come out of the training. Called again if a rank is
 * lost meanwhile: the others may have come to different points of it. */
static int finish_run(struct training_run *run, const struct times *measured)
{
    const struct training_functions *f = run->functions;
    hvd_progress *progress = run->command->progress;
    struct outcome *outcome = &run->outcome;
    int status = finish_times(run, measured);

    if (!status)
        status = trainer_compare_ranks(run->trainer, &outcome->weights_hash);
    if (!status && run->options->partition.stages > 0)
        status =
            agree(trainer_partition_stats(run->trainer, &outcome->partition));
    else if (!status && run->options->replicas > 1)
        status = agree(trainer_sums_stats(run->trainer, &outcome->sums));
    if (status)
        return status;
    outcome->times.total = clock_seconds() - run->began;
    f->report_results(run);
    elastic_report(run);
    outcome_report(outcome, progress, f->unit, f->speed);
    return write_results(run);
}

static int train_and_report(struct training_run *run)
{
    struct times measured;
    int status = train(run);

    if (!status)
        status = replay_check(run);
    if (status)
        return status;
    measured = run->outcome.times;
    do
        status = finish_run(run, &measured);
    while (status < 0 && elastic_survives(run));
    return status;
}

/* Trains, or evaluates what others train. */
static int use_estimator(struct training_run *run)
{
    int status;

    describe_program(run, &run->program);
    status = agree(make_estimator(run));
    if (status < 0)
        return status;
    return run->command->role == HVD_ROLE_EVALUATOR ? evaluate_checkpoints(run)
                                                    : train_and_report(run);
}

/* A parameter server needs neither data nor a device. */
static int serve(const struct options *options)
{
    const struct trainer_options trainer = options_trainer(options);
    const struct exchange_settings settings = trainer_exchange(&trainer);
    int status = 1;

    while (status > 0)
        status = serving_run(&settings);
    return status;
}

/* Does the whole run. *again: a rank was lost before the training had begun. */
static int run_once(struct training_run *run, bool *again)
{
    struct command *command = run->command;
    int status = command_prepare(command);

    if (command->serves)
        return status ? status : serve(run->options);
    run->outcome.world_size = command->size;
    if (!status)
        status = run->functions->load(run);
    if (!status)
        status = check_rows(run);
    run->schedule_steps = run->plan.steps;
    if (!status)
        status = elastic_prepare(run);
    if (!status)
        status = use_estimator(run);
    if (status < 0)
        status = elastic_start_again(run, status);
    *again = status > 0;
    logs_fini(run);
    replay_fini(run);
    losses_fini(&run->losses);
    hvd_estimator_free(run->estimator);
    if (!status && run->options->servers.count > 0)
        status = serving_end();
    hvd_dataset_free(run->plan.train);
    hvd_dataset_free(run->plan.tests);
    if (run->functions->fini)
        run->functions->fini(run);
    outcome_fini(&run->outcome);
    return status;
}

/* Does the run, after the library has started; from the beginning, if ranks are
 * lost before the training has. */
static int run_training(struct command *command)
{
    struct training_run *run = command->context;
    const struct training_run empty = {.functions = run->functions,
                                       .own = run->own};
    const struct options given = *command->options;
    bool again = true;
    int status = 0, nlost = 0;

    while (again) {
        again = false;
        *command->options = given;
        *run = empty;
        run->program.nlost = nlost;
        run->command = command;
        run->options = command->options;
        run->outcome.options = command->options;
        status = run_once(run, &again);
        nlost = run->program.nlost;
    }
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

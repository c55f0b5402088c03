/* SPDX-License-Identifier: Apache-2.0 */
/* losses_of_ranks.c - what --elastic asks of a program. */
#include "command/losses_of_ranks.h"

#include "command/replay.h"
#include "estimator/elastic.h"
#include "output/problem.h"
#include "trainer/agree.h"

#include <hvd.h>
#include <stdlib.h>

int elastic_prepare(struct training_run *run)
{
    const struct options *o = run->options;
    const int size = run->command->size;
    int status = 0;

    run->last_step = -1;
    if (!o->elastic || agree_is_apart())
        return 0;
    if (size < o->elastic_min)
        status = problem_set("--elastic %s: there %s %d %s: start %d at least",
                             o->elastic, size == 1 ? "is" : "are", size,
                             size == 1 ? "rank" : "ranks", o->elastic_min);
    else if (o->elastic_max > 0 && size > o->elastic_max)
        status = problem_set("--elastic %s: there are %d ranks: start %d at "
                             "most",
                             o->elastic, size, o->elastic_max);
    status = agree(status);
    return status < 0 ? status : replay_begin(run);
}

/* Gives the estimator the schedule of the steps that there are. A rate that was
 * not given is the usual one for the rows of a step. */
static void adapt_rate(struct training_run *run, hvd_estimator *estimator)
{
    struct options *o = run->command->options;

    options_set_rate(o, hvd_size());
    estimator->options.rate = options_schedule(
        o, o->rate_adapts ? run->plan.steps : estimator->own[0]);
}

void elastic_changed(void *context, hvd_estimator *estimator)
{
    struct training_run *run = context;
    struct command *command = run->command;

    command->rank = hvd_rank();
    command->size = hvd_size();
    run->program.workers = command->size;
    run->program.trainer.rank = command->rank;
    run->outcome.world_size = command->size;
    (void)estimator;
    run->trainer = NULL;
    if (command->rank == 0)
        command_show(command);
    run->program.trainer.progress = command->progress;
}

/* Returns the steps that are left of a training that is told by epochs. */
static int64_t steps_left(const struct training_run *run, const hvd_position *p)
{
    const int64_t rows = training_rows(run), epochs = run->options->epochs;
    const int64_t examples = run->plan.examples;
    const int64_t left =
        examples > p->samples ? (examples - p->samples) / rows : 0;

    return p->epoch >= epochs
               ? 0
               : left + (epochs - p->epoch - 1) * (examples / rows);
}

int64_t elastic_last(void *context, hvd_estimator *estimator)
{
    struct training_run *run = context;
    struct training_plan *plan = &run->plan;

    if (run->options->epochs > 0) {
        plan->steps = estimator->step + steps_left(run, &estimator->position);
        if (run->options->steps > 0 && run->options->steps < plan->steps)
            plan->steps = run->options->steps;
    }
    adapt_rate(run, estimator);
    return plan->steps;
}

/* Collective: gives what rank 0 knows of earlier steps to those who have joined
 * since. */
int elastic_share(struct training_run *run)
{
    struct outcome *o = &run->outcome;
    int64_t counts[2] = {o->parts, o->trained};
    struct outcome_part *history;
    int status;

    if (!run->options->elastic)
        return 0;
    status = agree_send(counts, 2, HVD_INT64);
    if (status < 0)
        return status;
    history = realloc(o->history, ((size_t)counts[0] + 1) * sizeof *history);
    if (history)
        o->history = history;
    status = agree(history ? 0 : problem_set("no memory for the history"));
    if (status == 0 && counts[0] > 0)
        status = agree_send(o->history, counts[0] * (int64_t)sizeof *history,
                            HVD_UINT8);
    if (status == 0)
        status = agree_send(&o->times, sizeof o->times / sizeof(double),
                            HVD_FLOAT64);
    if (status < 0)
        return status;
    o->parts = (int)counts[0];
    o->trained = counts[1];
    return 0;
}

static bool is_loss(void)
{
    const int status = hvd_check();

    return status == HVD_ERR_LOST || status == HVD_ERR_STALLED;
}

/* Has the command be a rank of the new world. */
static void adopt_rank(struct command *command)
{
    const int rank = command->rank;

    command->rank = hvd_rank();
    command->size = hvd_size();
    if (command->rank == 0 && rank != 0)
        command_show(command);
}

void elastic_adopt_end(struct training_run *run)
{
    if (run->options->elastic)
        adopt_rank(run->command);
}

bool elastic_survives(struct training_run *run)
{
    int place = -1;

    while (place < 0 && run->options->elastic && is_loss() &&
           hvd_recover(NULL, 0) >= 0)
        place = elastic_compare_places(PLACE_OVER);
    if (place < 0)
        return false;
    adopt_rank(run->command);
    return true;
}

/* Makes a world of the ranks that are left, in which all learn that they have
 * to begin anew. Returns whether there is one. */
static bool leave_out_lost(struct training_run *run)
{
    bool has_met = false;

    while (!has_met && hvd_recover(NULL, 0) >= 0) {
        run->program.nlost += hvd_lost_ranks(NULL, 0);
        has_met = elastic_compare_places(PLACE_STARTING) >= 0;
    }
    return has_met;
}

/* Lets in those that wait. They learn that the others have to begin anew. */
static int let_in(struct training_run *run)
{
    hvd_recovery how = {.nlost = 0};
    const int status = hvd_grow(&how, sizeof how);

    if (status < 0)
        return status;
    run->program.nlost += how.nlost;
    return elastic_compare_places(PLACE_STARTING);
}

/* Ends a job whose ranks are too few, while nobody comes to it. */
static int stop_short(struct training_run *run)
{
    const struct options *o = run->options;
    const int status = elastic_tell_unbegun(o->elastic_log, run->program.nlost);

    run->command->is_temporary = true;
    return status < 0 ? status
                      : elastic_say_short("--elastic", o->elastic_min, "");
}

/* Collective: waits, as a training does, while too few ranks are left. Every
 * failure of those that come counts as their loss. */
static int wait_for_enough(struct training_run *run)
{
    const int least = run->options->elastic_min;

    while (hvd_size() < least) {
        int status = elastic_wait_for(least);

        if (status == 0)
            return stop_short(run);
        if (status > 0)
            status = let_in(run);
        if (status < 0 && !leave_out_lost(run))
            return problem_fail(HVD_ERR_LOST, "%s", hvd_last_error());
    }
    return 0;
}

/* A newcomer has found, while it prepared its training, that a rank is lost.
 * The others wait for it in hvd_recover. */
static int prepare_again(struct training_run *run)
{
    const int status = hvd_recover(NULL, 0);

    adopt_rank(run->command);
    return status < 0 ? agree_hvd_problem(status) : 1;
}

int elastic_start_again(struct training_run *run, int status)
{
    const hvd_estimator *e = run->estimator;
    bool again = e && e->starts_again;

    if (!run->options->elastic || run->nworlds > 0)
        return status;
    if (agree_is_apart())
        return is_loss() ? prepare_again(run) : status;
    if (e && e->elastic && e->elastic->told.count > 0)
        run->program.nlost = 0; /* an event has told of them */
    /* Ranks that have begun to train find by this sum that others have not:
     * then all begin again. */
    if (!again && (!e || e->trainings == 0) && is_loss())
        again = leave_out_lost(run);
    if (!again)
        return status;
    status = wait_for_enough(run);
    adopt_rank(run->command);
    return status < 0 ? status : 1;
}

void elastic_report(const struct training_run *run)
{
    const struct elastic_counts *c = &run->estimator->counts;
    const struct command *command = run->command;
    const struct training_plan *plan = &run->plan;
    const int64_t joined = c->numbered - c->first_size - c->restarted;
    const int64_t lost = c->numbered - command->size;

    if (!run->options->elastic || lost + joined == 0)
        return;
    hvd_progress_line(command->progress,
                      "lost     %lld of %lld ranks; %lld %s were used again, "
                      "from the last commit on",
                      (long long)lost, (long long)c->numbered,
                      (long long)c->used_again, run->functions->unit);
    if (c->restarts > 0)
        hvd_progress_line(command->progress,
                          "restarts %lld of the job, with %lld ranks in all, "
                          "after %lld that began",
                          (long long)c->restarts, (long long)c->restarted,
                          (long long)c->first_size);
    if (joined > 0)
        hvd_progress_line(command->progress,
                          "joined   %lld ranks, after %lld that began",
                          (long long)joined, (long long)c->first_size);
    if (run->options->epochs > 0)
        hvd_progress_line(
            command->progress,
            "data     each of %lld %s counts once an epoch, but for fewer than "
            "%lld that make no step",
            (long long)plan->examples, run->functions->unit,
            (long long)(training_rows(run) / command->size * c->most));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * losses_of_ranks.c - what --elastic asks of a program.
 *
 * A replay loses the ranks that the file of events says were lost, each time
 * after the commit at which the training went on then. What was done between
 * that commit and the loss was rolled back, so that the moment does not matter:
 * the weights are the same, bit by bit.
 */
#include "command/losses_of_ranks.h"

#include "estimator/estimator.h"
#include "output/problem.h"
#include "trainer/agree.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Returns whether the training goes on after a loss from what an event says: a
 * commit, or the beginning if there was no commit yet. */
static bool goes_on(const char *event)
{
    return event &&
           (strcmp(event, "restore") == 0 || strcmp(event, "start") == 0);
}

/* Sets the step in which this rank is lost, if the training went on without it.
 */
static void note_event(struct training_run *run, const json_t *event,
                       bool *lost)
{
    const char *name = json_string_value(json_object_get(event, "event"));
    const json_t *ranks = json_object_get(event, "lost");

    for (size_t i = 0; i < json_array_size(ranks); i++)
        *lost |=
            json_integer_value(json_array_get(ranks, i)) == run->command->rank;
    if (*lost && run->last_step < 0 && goes_on(name))
        run->last_step = json_integer_value(json_object_get(event, "step")) + 1;
}

static int read_replay(struct training_run *run)
{
    const char *path = run->options->elastic_replay;
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[1 << 16];
    bool lost = false;
    int number = 0;

    if (!path)
        return 0;
    if (!file)
        return problem_set("--elastic-replay %s: cannot be read", path);
    while (fgets(line, sizeof line, file)) {
        json_t *event = json_loads(line, 0, NULL);

        number++;
        if (!event) {
            fclose(file);
            return problem_set(
                "--elastic-replay %s: line %d is no JSON: give a "
                "file of --elastic-log",
                path, number);
        }
        note_event(run, event, &lost);
        json_decref(event);
    }
    fclose(file);
    return 0;
}

int elastic_prepare(struct training_run *run)
{
    const struct options *o = run->options;
    int status = 0;

    run->last_step = -1;
    run->first_size = run->command->size;
    run->first_rows = training_rows(run);
    if (!o->elastic)
        return 0;
    if (run->command->size < o->elastic_min)
        status = problem_set("--elastic %s: there are %d ranks: start %d at "
                             "least",
                             o->elastic, run->command->size, o->elastic_min);
    else if (o->elastic_max > 0 && run->command->size > o->elastic_max)
        status = problem_set("--elastic %s: there are %d ranks: start %d at "
                             "most",
                             o->elastic, run->command->size, o->elastic_max);
    else
        status = read_replay(run);
    return agree(status);
}

void elastic_before_step(const struct training_run *run)
{
    if (run->last_step >= 0 && run->outcome.steps >= run->last_step)
        raise(SIGKILL);
}

/* A rate that was not given is the usual one for the rows of a step. */
static void adapt_rate(struct training_run *run, hvd_estimator *estimator,
                       int before)
{
    struct options *o = run->command->options;

    if (o->learning_rate != options_default_rate(o, before))
        return;
    o->learning_rate = options_default_rate(o, hvd_size());
    estimator->options.rate = options_schedule(o, run->plan.steps);
}

void elastic_changed(void *context, hvd_estimator *estimator)
{
    struct training_run *run = context;
    struct command *command = run->command;

    adapt_rate(run, estimator, command->size);
    command->rank = hvd_rank();
    command->size = hvd_size();
    run->program.workers = command->size;
    run->program.trainer.rank = command->rank;
    run->outcome.world_size = command->size;
    run->trainer = NULL;
    if (command->rank == 0)
        command_show(command);
    run->program.trainer.progress = command->progress;
}

int64_t elastic_last(void *context, const hvd_estimator *estimator)
{
    struct training_run *run = context;
    struct training_plan *plan = &run->plan;
    const hvd_position *p = &estimator->position;
    const int64_t rows = training_rows(run), epochs = run->options->epochs;
    int64_t left =
        plan->examples > p->samples ? (plan->examples - p->samples) / rows : 0;

    if (epochs == 0) /* it is told by steps */
        return plan->steps;
    if (p->epoch >= epochs)
        left = 0;
    else
        left += (epochs - p->epoch - 1) * (plan->examples / rows);
    plan->steps = estimator->step + left;
    if (run->options->steps > 0 && run->options->steps < plan->steps)
        plan->steps = run->options->steps;
    return plan->steps;
}

void elastic_report(const struct training_run *run)
{
    const struct command *command = run->command;
    const struct training_plan *plan = &run->plan;
    const int lost = run->first_size - command->size;

    if (!run->options->elastic || lost == 0)
        return;
    hvd_progress_line(command->progress,
                      "lost     %d of %d ranks; %lld %s were used again, from "
                      "the last commit on",
                      lost, run->first_size,
                      (long long)run->estimator->used_again,
                      run->functions->unit);
    if (run->options->epochs > 0)
        hvd_progress_line(command->progress,
                          "data     each of %lld %s counts once an epoch, but "
                          "for fewer than %lld that make no step",
                          (long long)plan->examples, run->functions->unit,
                          (long long)run->first_rows);
}

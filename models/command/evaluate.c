/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.c - has an estimator watch the checkpoints, and prints what it
 * finds. An evaluator is alone in its world. */
#include "command/evaluate.h"

#include "output/problem.h"

#include <stdlib.h>
#include <time.h>

static hvd_dataset *keep_tests(void *context)
{
    return hvd_dataset_keep(((struct training_run *)context)->plan.tests);
}

/* The final checkpoint that an evaluator finds may be that of the training it
 * was meant for, or of an earlier one. */
static void tell_over(const struct training_run *run)
{
    const hvd_estimator *e = run->estimator;
    const time_t saved = (time_t)e->written;
    char written[32];
    struct tm time;

    localtime_r(&saved, &time);
    strftime(written, sizeof written, "%Y-%m-%d %H:%M:%S", &time);
    hvd_progress_line(
        run->command->progress,
        "the training in %s was over before this evaluator began: "
        "its last checkpoint, of step %lld, written at %s, is "
        "evaluated; a training that goes on there needs another evaluator, "
        "which begins after its first checkpoint",
        run->options->model_dir, (long long)e->step, written);
}

static void tell_found(void *context, const hvd_results *found)
{
    const struct training_run *run = context;

    if (run->estimator->final && found->global_step == run->found)
        tell_over(run);
    hvd_progress_line(
        run->command->progress, "step %lld  loss %.4f  accuracy %.2f %%",
        (long long)found->global_step, found->loss, 100 * found->accuracy);
}

/* Returns the step of the newest checkpoint in a folder; -1: there is none. */
static int64_t newest(const char *folder)
{
    int64_t *steps, step = -1;
    int count = hvd_checkpoint_list(folder, &steps);

    if (count < 0)
        return -1;
    if (count > 0)
        step = steps[count - 1];
    free(steps);
    return step;
}

static void tell_left_out(void *context, const char *why)
{
    const struct training_run *run = context;

    hvd_progress_line(run->command->progress, "a checkpoint is left out: %s",
                      why);
}

int evaluate_checkpoints(struct training_run *run)
{
    const struct options *o = run->options;
    hvd_train_spec until_the_last;
    hvd_eval_spec spec;

    hvd_train_spec_init(&until_the_last, sizeof until_the_last);
    hvd_eval_spec_init(&spec, sizeof spec);
    spec.data = keep_tests;
    spec.data_context = run;
    spec.start_delay_secs = spec.throttle_secs = 0;
    spec.wait_secs = o->checkpoint_wait;
    run->program.evaluated = tell_found;
    run->program.left_out = tell_left_out;
    run->found = newest(o->model_dir);
    hvd_progress_line(
        run->command->progress,
        "%s: evaluator, without a device; waits for checkpoints in "
        "%s, for at most %d s each",
        run->command->program, o->model_dir, o->checkpoint_wait);
    return evaluator_watch(run->estimator, &until_the_last, &spec, NULL);
}

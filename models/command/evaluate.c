/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate.c - looks at the newest checkpoint ten times a second. Whether it is
 * another one is seen from its step, and from the inode, time and size of its
 * file; checkpoints that come and go between two looks are left out. An
 * evaluator is alone in its world, so everything it shares with a training
 * works without others.
 */
#include "command/evaluate.h"

#include "command/checkpoints.h"
#include "output/clock.h"
#include "output/problem.h"
#include "trainer/evaluator.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_US = 100000 };

struct watching {
    struct training_run *run;
    struct evaluator *evaluator;
    struct stat seen;         /* of the last file that was read */
    bool looked;              /* once at least */
    hvd_checkpoint_info last; /* evaluated; step -1: none yet */
    double deadline;          /* by clock_seconds */
};

static bool is_another(const struct stat *a, const struct stat *b)
{
    return a->st_ino != b->st_ino || a->st_dev != b->st_dev ||
           a->st_size != b->st_size || a->st_mtim.tv_sec != b->st_mtim.tv_sec ||
           a->st_mtim.tv_nsec != b->st_mtim.tv_nsec;
}

static void expect(struct watching *w)
{
    w->deadline = clock_seconds() + w->run->options->checkpoint_wait;
}

static int measure(struct watching *w)
{
    struct training_run *run = w->run;
    double loss = 0, correct = 0, all = (double)run->outcome.evaluated;
    int status = evaluator_measure(w->evaluator, run->plan.fill_test,
                                   run->plan.data, &loss, &correct);

    if (status == 0)
        hvd_progress_line(
            run->command->progress, "step %lld  loss %.4f  accuracy %.2f %%",
            (long long)w->last.step, loss / all, 100 * correct / all);
    return status;
}

/* The final checkpoint that an evaluator finds when it begins may be that of
 * the training it was meant for, or of an earlier one. */
static void tell_over(const struct watching *w)
{
    const struct options *o = w->run->options;
    const time_t saved = (time_t)w->last.time;
    char written[32];
    struct tm time;

    localtime_r(&saved, &time);
    strftime(written, sizeof written, "%Y-%m-%d %H:%M:%S", &time);
    hvd_progress_line(
        w->run->command->progress,
        "the training in %s was over before this evaluator began: "
        "its last checkpoint, of step %lld, written at %s, is "
        "evaluated; a new training is refused there",
        o->model_dir, (long long)w->last.step, written);
}

/* Gives the evaluator the weights of a checkpoint. */
static int load(const struct watching *w, const hvd_checkpoint *c)
{
    int count, status = PROBLEM;
    struct safetensors_tensor *tensors =
        evaluator_tensors(w->evaluator, &count);
    hvd_checkpoint_tensor *made =
        checkpoints_tensors(tensors, count, evaluator_values(w->evaluator));

    if (made)
        status = hvd_checkpoint_restore(c, made, count, NULL, 0, 0);
    free(made);
    return status < 0 ? status : 0;
}

static void tell_left_out(const struct watching *w, const char *why)
{
    hvd_progress_line(w->run->command->progress, "a checkpoint is left out: %s",
                      why);
}

/* Reads the newest checkpoint that is whole, and evaluates it if its step is
 * another one. */
static int take(struct watching *w)
{
    hvd_checkpoint_info found = w->last;
    hvd_checkpoint *c = NULL;
    int status = hvd_checkpoint_open(w->run->options->model_dir, &c);
    bool fresh;

    if (status == 0 && *hvd_checkpoint_passed_over(c))
        tell_left_out(w, hvd_checkpoint_passed_over(c));
    if (status == 0)
        status = hvd_checkpoint_get_info(c, &found);
    fresh = found.step != w->last.step;
    if (status == 0 && fresh)
        status = load(w, c);
    if (status < 0)
        tell_left_out(w, problem_text());
    hvd_checkpoint_close(c);
    if (status != 0)
        return 0;
    w->last = found;
    if (found.final && !w->looked)
        tell_over(w);
    expect(w);
    return fresh ? measure(w) : 0;
}

static int look(struct watching *w)
{
    const char *folder = w->run->options->model_dir;
    char path[PATH_MAX];
    struct stat now;
    int64_t *steps;
    int count = hvd_checkpoint_list(folder, &steps), length = 0;

    if (count < 0)
        return count;
    if (count > 0)
        length = snprintf(path, sizeof path, "%s/ckpt-%" PRId64 ".safetensors",
                          folder, steps[count - 1]);
    free(steps);
    if (count == 0 || length >= PATH_MAX || stat(path, &now) != 0 ||
        !is_another(&now, &w->seen))
        return 0;
    w->seen = now;
    return take(w);
}

static int set_missing(const struct watching *w)
{
    const struct options *o = w->run->options;

    if (w->last.step < 0)
        return problem_set("no checkpoint came to --model-dir %s in %d s "
                           "(--checkpoint-wait): does the chief have the same "
                           "folder?",
                           o->model_dir, o->checkpoint_wait);
    return problem_set("no checkpoint after that of step %lld came to "
                       "--model-dir %s in %d s (--checkpoint-wait): did the "
                       "training fail?",
                       (long long)w->last.step, o->model_dir,
                       o->checkpoint_wait);
}

static int watch(struct watching *w)
{
    const struct options *o = w->run->options;
    int status = 0;

    hvd_progress_line(
        w->run->command->progress,
        "%s: evaluator, without a device; waits for checkpoints in "
        "%s, for at most %d s each",
        w->run->command->program, o->model_dir, o->checkpoint_wait);
    expect(w);
    while (status == 0 && !w->last.final) {
        status = look(w);
        w->looked = true;
        if (status == 0 && !w->last.final && clock_seconds() > w->deadline)
            status = set_missing(w);
        if (status == 0 && !w->last.final)
            usleep(LOOK_US);
    }
    return status;
}

int evaluate_checkpoints(struct training_run *run)
{
    struct watching w = {.run = run};
    struct model *model = NULL;
    int status;

    hvd_checkpoint_info_init(&w.last, sizeof w.last);
    w.last.step = -1;
    run->functions->make_model(run, &model);
    status = evaluator_new(model, run->options->threads, run->command->progress,
                           &w.evaluator);
    if (status == 0)
        status = watch(&w);
    evaluator_free(w.evaluator);
    return status;
}

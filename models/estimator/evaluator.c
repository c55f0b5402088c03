/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluator.c - trainings with evaluations, and the process that does nothing
 * else. It looks at the newest checkpoint ten times a second; whether that is
 * another one is seen from its file, before any of it is read. Checkpoints that
 * come and go between two looks are left out, and one that cannot be read is
 * looked at again.
 */
#include "estimator/estimator.h"
#include "output/clock.h"
#include "output/problem.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_US = 100000 };

/* ----------------------------------------------------------------- watching */

struct watching {
    hvd_estimator *estimator;
    const hvd_eval_spec *eval;
    struct stat seen; /* of the last file that was evaluated */
    hvd_results results;
    double deadline, next; /* clock_seconds */
    int64_t step;          /* evaluated last; -1: none */
    char why[512];         /* a checkpoint could not be evaluated */
};

/* Finds the newest checkpoint. Returns false if there is none, or it has been
 * looked at. */
static bool is_new(struct watching *w)
{
    const char *folder = w->estimator->options.model_dir;
    int64_t *steps = NULL;
    char path[PATH_MAX];
    struct stat now;
    int count = hvd_checkpoint_list(folder, &steps), length = 0;

    if (count > 0)
        length = snprintf(path, sizeof path, "%s/ckpt-%" PRId64 ".safetensors",
                          folder, steps[count - 1]);
    free(steps);
    if (count <= 0 || length >= PATH_MAX || stat(path, &now) != 0 ||
        (now.st_ino == w->seen.st_ino && now.st_size == w->seen.st_size &&
         now.st_mtim.tv_sec == w->seen.st_mtim.tv_sec &&
         now.st_mtim.tv_nsec == w->seen.st_mtim.tv_nsec))
        return false;
    w->seen = now;
    return true;
}

/* Tells a program once that a checkpoint cannot be evaluated. */
static void leave_out(struct watching *w, const char *why)
{
    const struct estimator_program *p = w->estimator->program;

    if (*why && strcmp(w->why, why) != 0 && p)
        p->left_out(p->context, why);
    snprintf(w->why, sizeof w->why, "%s", why);
}

/* Evaluates the newest checkpoint, unless one of that step has been. The
 * trainer is made, and a checkpoint taken up, by the first evaluation. */
static int take(struct watching *w)
{
    hvd_estimator *e = w->estimator;
    int status = e->trainer ? resume_load(e) : 0;

    if (status == 0)
        leave_out(w, e->passed_over);
    if (status == 0 && e->trainer && e->step == w->step)
        return 0;
    w->next = clock_seconds() + w->eval->throttle_secs;
    if (status == 0)
        status = hvd_estimator_evaluate(e, w->eval->data(w->eval->data_context),
                                        w->eval, &w->results);
    if (status == 0) {
        w->step = e->step;
        w->deadline = clock_seconds() + w->eval->wait_secs;
        if (e->program)
            e->program->evaluated(e->program->context, &w->results);
    } else {
        leave_out(w, hvd_last_error());
        w->seen = (struct stat){0};
    }
    return status;
}

static int set_missing(const struct watching *w)
{
    const hvd_estimator *e = w->estimator;
    char folder[PATH_MAX + 32], last[64] = "";

    snprintf(folder, sizeof folder, "%s%s%s",
             e->program ? e->program->folder : "", e->program ? " " : "",
             e->options.model_dir);
    if (w->step >= 0)
        snprintf(last, sizeof last, "after that of step %lld ",
                 (long long)w->step);
    return problem_fail(
        HVD_ERR_FILE,
        "the evaluator: no checkpoint %scame to %s in %g s: %s?%s%s", last,
        folder, w->eval->wait_secs,
        w->step < 0 ? "does rank 0 have the same folder"
                    : "did the training fail",
        *w->why ? ": " : "", w->why);
}

/* Returns true if no other checkpoint will come. */
static bool is_last(const struct watching *w, const hvd_train_spec *train)
{
    const hvd_estimator *e = w->estimator;

    if (w->step < 0)
        return false;
    return train->max_steps > 0
               ? w->step >= train->max_steps || (e->final && e->stopped)
               : e->final;
}

int evaluator_watch(hvd_estimator *e, const hvd_train_spec *train,
                    const hvd_eval_spec *eval, hvd_results *results)
{
    const double start = clock_seconds();
    struct watching w = {.estimator = e,
                         .eval = eval,
                         .results = {.size = sizeof w.results},
                         .deadline =
                             start + eval->start_delay_secs + eval->wait_secs,
                         .next = start + eval->start_delay_secs,
                         .step = -1};

    e->watches = true;
    while (!is_last(&w, train)) {
        if (clock_seconds() > w.deadline)
            return set_missing(&w);
        if (clock_seconds() < w.next || !is_new(&w) || take(&w) < 0)
            usleep(LOOK_US);
    }
    if (results)
        *results = w.results;
    return 0;
}

/* ----------------------------------------------------------------- together */

static int check_specs(const hvd_estimator *e, const hvd_train_spec *train,
                       const hvd_eval_spec *eval)
{
    if (!train || train->size < sizeof *train || !train->data || !eval ||
        eval->size < sizeof *eval || !eval->data)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "train and evaluate: both specs must be set by "
                            "their init functions, and have a function that "
                            "makes the data");
    if (!(eval->start_delay_secs >= 0 && eval->throttle_secs >= 0 &&
          eval->wait_secs > 0))
        return problem_fail(HVD_ERR_ARGUMENT,
                            "train and evaluate: start_delay_secs %g and "
                            "throttle_secs %g must not be negative, and "
                            "wait_secs %g more than 0",
                            eval->start_delay_secs, eval->throttle_secs,
                            eval->wait_secs);
    if (!e->options.model_dir)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "train and evaluate: the estimator needs a "
                            "model_dir");
    return 0;
}

/* Returns 0 if this process is the evaluator, which has done its work; 1 if it
 * trains with the others, and whether these listen to an evaluator. */
static int find_part(hvd_estimator *e, const hvd_train_spec *train,
                     const hvd_eval_spec *eval, hvd_results *evaluation)
{
    int status = estimator_agree(check_specs(e, train, eval));

    if (status == 0 && cluster_is_evaluator())
        return evaluator_watch(e, train, eval, evaluation);
    if (status == 0)
        status = cluster_find_evaluator(&e->listens);
    return status < 0 ? status : 1;
}

int hvd_estimator_train_and_evaluate(hvd_estimator *e,
                                     const hvd_train_spec *train,
                                     const hvd_eval_spec *eval,
                                     hvd_results *training,
                                     hvd_results *evaluation)
{
    struct found found;
    int status = find_part(e, train, eval, evaluation);

    if (status <= 0)
        return status;
    status = ranks_begin(e, &found);
    if (status > 0)
        status =
            ranks_end(e, &found,
                      train_beside(e, train->data(train->data_context), train,
                                   e->listens ? NULL : eval, &found));
    e->listens = false;
    found_tell(&found, training, evaluation);
    return status;
}

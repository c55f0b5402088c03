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
#include "output/launcher.h"
#include "output/problem.h"
#include "trainer/agree.h"

#include <hvd_cluster.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_US = 100000 };

/* Whether hvd_estimator_init has found that this process is an evaluator. */
static bool is_evaluator;

int hvd_estimator_init(void)
{
    hvd_cluster *cluster = NULL;
    hvd_role role = HVD_ROLE_WORKER;
    int32_t index;
    int status = hvd_cluster_from_environment(&cluster);

    if (status > 0)
        status = hvd_cluster_task(cluster, &role, &index);
    hvd_cluster_free(cluster);
    if (status < 0)
        return status;
    if (role == HVD_ROLE_EVALUATOR && launcher_present())
        return problem_fail(HVD_ERR_LAUNCH,
                            "an evaluator is started by hand, or by hvd-run, "
                            "and not by mpirun: it has no rank");
    if (role == HVD_ROLE_EVALUATOR) {
        is_evaluator = true;
        unsetenv("TF_CONFIG");
    }
    return hvd_init();
}

/* Collective: finds whether the cluster of a process has an evaluator of its
 * own. */
static int find_evaluator(bool *found)
{
    hvd_cluster *cluster = NULL;
    double count = hvd_cluster_from_environment(&cluster) > 0 &&
                   hvd_cluster_count(cluster, HVD_ROLE_EVALUATOR) > 0;

    hvd_cluster_free(cluster);
    if (agree_sum(&count, 1) < 0)
        return problem_fail(HVD_ERR_PEER, "%s", problem_text());
    *found = count > 0;
    return 0;
}

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

/* Evaluates the newest checkpoint, unless one of that step has been. The
 * trainer is made, and a checkpoint taken up, by the first evaluation. */
static int take(struct watching *w)
{
    hvd_estimator *e = w->estimator;
    int status = e->trainer ? resume_load(e) : 0;

    if (status == 0 && e->trainer && e->step == w->step)
        return 0;
    w->next = clock_seconds() + w->eval->throttle_secs;
    if (status == 0)
        status = hvd_estimator_evaluate(e, w->eval->data(w->eval->data_context),
                                        w->eval, &w->results);
    if (status == 0) {
        w->step = e->step;
        w->deadline = clock_seconds() + w->eval->wait_secs;
    } else {
        snprintf(w->why, sizeof w->why, ": %s", hvd_last_error());
        w->seen = (struct stat){0};
    }
    return status;
}

static int set_missing(const struct watching *w)
{
    const char *folder = w->estimator->options.model_dir;

    if (w->step < 0)
        return problem_fail(HVD_ERR_FILE,
                            "the evaluator: no checkpoint came to %s in %g s: "
                            "does rank 0 have the same folder?%s",
                            folder, w->eval->wait_secs, w->why);
    return problem_fail(HVD_ERR_FILE,
                        "the evaluator: no checkpoint after that of step %lld "
                        "came to %s in %g s: did the training fail?%s",
                        (long long)w->step, folder, w->eval->wait_secs, w->why);
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

int hvd_estimator_train_and_evaluate(hvd_estimator *e,
                                     const hvd_train_spec *train,
                                     const hvd_eval_spec *eval,
                                     hvd_results *training,
                                     hvd_results *evaluation)
{
    int status = check_specs(e, train, eval);

    status = estimator_agree(status);
    if (status < 0)
        return status;
    if (is_evaluator)
        return evaluator_watch(e, train, eval, evaluation);
    status = find_evaluator(&e->listens);
    if (status < 0)
        return status;
    status = train_beside(e, train->data(train->data_context), train,
                          e->listens ? NULL : eval, training, evaluation);
    e->listens = false;
    return status;
}

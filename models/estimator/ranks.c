/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.c - who of the ranks does what in a call of an estimator.
 *
 * Without parameter servers every rank does the same. With them, the last ranks
 * are servers: in each call they serve the workers, and return with them. The
 * workers have the variables between two calls.
 *
 *     worker                                    server
 *     starts an exchange: trainer_start  ---->  gets the list of variables
 *     trains, evaluates                  <--->  hvd_strategy_serve
 *     ends it: trainer_stop              ---->  hvd_strategy_serve returns
 *     ... any number of times
 *     ranks_end: no list any more        ---->  ends its loop
 *     sends what was found               ---->  has the same results
 */
#include "estimator/estimator.h"
#include "output/problem.h"
#include "trainer/agree.h"
#include "trainer/serving.h"

#include <math.h>
#include <string.h>

static int check_alike(const hvd_estimator_options *o)
{
    const struct agree_number numbers[] = {
        {"servers of the estimator's options", o->servers},
        {"server_mode of the estimator's options", o->server_mode},
        {"stages of the estimator's options", o->stages > 1 ? o->stages : 0},
        {"accumulate of the estimator's options", o->accumulate},
    };
    int status = agree_numbers(numbers, sizeof numbers / sizeof *numbers);

    return status < 0 ? problem_fail(HVD_ERR_MISMATCH, "%s", problem_text())
                      : 0;
}

/* Serves until the workers have ended their call. */
static int serve(hvd_estimator *e, struct found *found)
{
    const struct trainer_options options = estimator_trainer_options(e);
    const struct exchange_settings settings = trainer_exchange(&options);
    int status = 1;

    while (status > 0)
        status = serving_run(&settings);
    if (status < 0)
        return problem_fail(HVD_ERR_PEER, "a parameter server: %s",
                            problem_text());
    status = hvd_broadcast(found, sizeof *found, HVD_UINT8, 0);
    if (status < 0)
        return status;
    e->step = found->training.global_step;
    return found->status < 0 ? problem_fail(found->status, "%s", found->text)
                             : 0;
}

int ranks_begin(hvd_estimator *e, struct found *found)
{
    const hvd_results none = {
        .size = sizeof none, .loss = NAN, .accuracy = NAN};
    int status = 0;

    *found = (struct found){.training = none, .evaluation = none};
    if (e->calls++ > 0)
        return 1;
    e->outer_group = agree_group();
    e->workers = hvd_size() - e->options.servers;
    if (!e->has_met)
        status = check_alike(&e->options);
    e->has_met = status == 0;
    if (status == 0 && e->options.servers > 0)
        status = serving_divide(e->options.servers);
    if (status < 0)
        status = problem_fail(HVD_ERR_ARGUMENT, "%s", problem_text());
    else if (hvd_rank() >= e->workers)
        status = serve(e, found);
    else
        return 1;
    e->calls = 0;
    return status;
}

int ranks_end(hvd_estimator *e, struct found *found, int status)
{
    struct found told;

    if (--e->calls > 0 || e->options.servers == 0)
        return status;
    found->status = status;
    snprintf(found->text, sizeof found->text, "%s",
             status < 0 ? hvd_last_error() : "");
    if (e->trainer)
        trainer_stop(e->trainer);
    agree_among(e->outer_group);
    told = *found; /* which a broadcast writes to, but on rank 0 */
    if (serving_end() == 0)
        hvd_broadcast(&told, sizeof told, HVD_UINT8, 0);
    return status < 0 ? problem_fail(status, "%s", found->text) : status;
}

void found_tell(const struct found *found, hvd_results *training,
                hvd_results *evaluation)
{
    if (training)
        *training = found->training;
    if (evaluation && found->evaluated)
        *evaluation = found->evaluation;
}

int hvd_estimator_workers(const hvd_estimator *e)
{
    return e->calls > 0 ? agree_group() : 0;
}

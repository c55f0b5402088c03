/* SPDX-License-Identifier: Apache-2.0 */
#include "run/run_ranks.h"

#include "output/problem.h"
#include "run/run_complain.h"
#include "trainer/agree.h"

#include <hvd.h>
#include <stdbool.h>

/* What agree said last: PROBLEM: this rank prints. */
static int outcome;

/* Keeps who prints what libhvd says. */
static int hvd_failed(int status)
{
    if (!outcome)
        outcome = agree_hvd_problem(status);
    run_complain("%s", problem_text());
    return 1;
}

int run_ranks_start(void)
{
    int status;

    run_complain_later();
    status = hvd_init();
    if (status >= 0)
        return 0;
    run_complain("hvd: %s", hvd_last_error());
    outcome = PROBLEM; /* there is no world that could tell who prints */
    return 1;
}

int run_rank(void)
{
    return hvd_rank();
}

int run_ranks(void)
{
    return hvd_size();
}

int run_agree(int status)
{
    if (!outcome)
        outcome = agree(status ? PROBLEM : 0);
    return outcome != 0;
}

void run_blame(int problem)
{
    if (!outcome)
        outcome = problem;
}

int run_ranks_end(int status)
{
    if (status && !outcome)
        outcome = PROBLEM; /* it failed alone; the others fail when it leaves */
    if (outcome == PROBLEM ||
        (outcome == PROBLEM_EVERYWHERE && hvd_rank() <= 0))
        run_complain_now();
    hvd_shutdown();
    return status || outcome;
}

int run_send(void *data, size_t bytes)
{
    int status = hvd_broadcast(data, (int64_t)bytes, HVD_UINT8, 0);

    return status < 0 ? hvd_failed(status) : 0;
}

int run_average(float *data, int64_t count)
{
    int status = hvd_allreduce(data, data, count, HVD_FLOAT32, HVD_AVERAGE);

    return status < 0 ? hvd_failed(status) : 0;
}

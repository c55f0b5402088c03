/* SPDX-License-Identifier: Apache-2.0 */
#include "common/agree.h"

#include "common/problem.h"

#include <hvd.h>
#include <string.h>

int agree_hvd_problem(int status)
{
    problem_set("hvd: %s", hvd_last_error());
    switch (status) {
    case HVD_ERR_PEER:
    case HVD_ERR_SHUTDOWN: return PROBLEM_ELSEWHERE;
    case HVD_ERR_MISMATCH: return PROBLEM_EVERYWHERE;
    default: return PROBLEM;
    }
}

int agree(int status)
{
    int32_t size = hvd_size();
    int32_t first = status < 0 ? hvd_rank() : size;
    int32_t mine = first;

    int failed = hvd_allreduce(&first, &first, 1, HVD_INT32, HVD_MIN);
    if (failed < 0)
        return status < 0 ? status : agree_hvd_problem(failed);
    if (first == size)
        return 0;
    return first == mine ? PROBLEM : PROBLEM_ELSEWHERE;
}

int agree_same(const char *what, uint64_t value)
{
    /* The complement orders the other way: its largest is the smallest. */
    int64_t largest[2] = {(int64_t)value, (int64_t)~value};

    int status = hvd_allreduce(largest, largest, 2, HVD_INT64, HVD_MAX);
    if (status < 0)
        return agree_hvd_problem(status);
    if (largest[0] != ~largest[1]) {
        problem_set("the ranks differ in %s", what);
        return PROBLEM_EVERYWHERE;
    }
    return 0;
}

int agree_options(const struct options *o)
{
    const double reals[] = {o->learning_rate, o->optimizer.weight_decay,
                            o->optimizer.clip};
    const char *const real_names[] = {"--lr", "--weight-decay", "--clip"};
    const uint64_t counts[] = {(uint64_t)o->steps,
                               (uint64_t)o->batch_size,
                               o->seed,
                               (uint64_t)o->eval_every,
                               (uint64_t)o->check_every,
                               (uint64_t)o->optimizer.accumulate,
                               (uint64_t)o->optimizer.optimizer};
    const char *const names[] = {
        "--steps",       "--batch-size", "--seed",     "--eval-every",
        "--check-every", "--accumulate", "--optimizer"};
    int status = 0;

    for (size_t i = 0; i < sizeof counts / sizeof *counts && !status; i++)
        status = agree_same(names[i], counts[i]);
    for (size_t i = 0; i < sizeof reals / sizeof *reals && !status; i++) {
        uint64_t bits;
        memcpy(&bits, &reals[i], sizeof bits);
        status = agree_same(real_names[i], bits);
    }
    return status;
}

int agree_average(double *values, int count)
{
    int status = hvd_allreduce(values, values, count, HVD_FLOAT64, HVD_AVERAGE);

    return status < 0 ? agree_hvd_problem(status) : 0;
}

int agree_sum(double *values, int count)
{
    int status = hvd_allreduce(values, values, count, HVD_FLOAT64, HVD_SUM);

    return status < 0 ? agree_hvd_problem(status) : 0;
}

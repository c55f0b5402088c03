/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/agree.h"

#include "output/problem.h"

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

int agree_ask(void)
{
    int status = hvd_check();

    return status < 0 ? agree_hvd_problem(status) : 0;
}

static int32_t group; /* 0: all ranks */

void agree_among(int32_t process_set)
{
    group = process_set;
}

int32_t agree_group(void)
{
    return group;
}

static bool apart;

void agree_apart(bool on)
{
    apart = on;
}

bool agree_is_apart(void)
{
    return apart;
}

/* Does one collective, in place. */
static int run(int32_t kind, void *data, int64_t count, hvd_dtype dtype,
               hvd_op op)
{
    hvd_request request;
    hvd_handle handle;
    int status;

    hvd_request_init(&request, sizeof request);
    request.kind = kind;
    request.dtype = dtype;
    if (kind == HVD_ALLREDUCE)
        request.op = op;
    request.ndim = 1;
    request.shape = &count;
    request.input = request.output = data;
    request.process_set = group;
    status = hvd_submit(&request, &handle);
    return status < 0 ? status : hvd_wait(handle);
}

static int reduce(void *values, int64_t count, hvd_dtype dtype, hvd_op op)
{
    if (apart)
        return 0;
    return group == 0 ? hvd_allreduce(values, values, count, dtype, op)
                      : run(HVD_ALLREDUCE, values, count, dtype, op);
}

int agree_send(void *values, int64_t count, int32_t dtype)
{
    int status = 0;

    if (!apart)
        status = group == 0 ? hvd_broadcast(values, count, dtype, 0)
                            : run(HVD_BROADCAST, values, count, dtype, HVD_SUM);
    return status < 0 ? agree_hvd_problem(status) : 0;
}

int agree(int status)
{
    int32_t size = hvd_size();
    int32_t first = status < 0 ? hvd_rank() : size;
    int32_t mine = first;

    int failed = reduce(&first, 1, HVD_INT32, HVD_MIN);
    if (failed < 0)
        return status < 0 ? status : agree_hvd_problem(failed);
    if (first == size)
        return 0;
    return first == mine ? PROBLEM : PROBLEM_ELSEWHERE;
}

/* What the ranks have, or should have, alike. */
static struct agree_number known[AGREE_MOST];
static int nknown;

static void note(const char *what, uint64_t value)
{
    int i = 0;

    while (i < nknown && strcmp(known[i].what, what) != 0)
        i++;
    if (i == AGREE_MOST)
        return;
    known[i] = (struct agree_number){what, (int64_t)value};
    if (i == nknown)
        nknown++;
}

int agree_list(struct agree_number list[AGREE_MOST])
{
    memcpy(list, known, (size_t)nknown * sizeof *list);
    return nknown;
}

int agree_same(const char *what, uint64_t value)
{
    /* The complement has the opposite order: its largest is the smallest
     * value. */
    int64_t largest[2] = {(int64_t)value, (int64_t)~value};

    int status = reduce(largest, 2, HVD_INT64, HVD_MAX);

    note(what, value);
    if (status < 0)
        return agree_hvd_problem(status);
    if (largest[0] != ~largest[1]) {
        problem_set("the ranks differ in %s", what);
        return PROBLEM_EVERYWHERE;
    }
    return 0;
}

int agree_numbers(const struct agree_number *numbers, int n)
{
    int status = 0;

    for (int i = 0; i < n && !status; i++)
        status = agree_same(numbers[i].what, (uint64_t)numbers[i].value);
    return status;
}

int agree_average(double *values, int count)
{
    int status = reduce(values, count, HVD_FLOAT64, HVD_AVERAGE);

    return status < 0 ? agree_hvd_problem(status) : 0;
}

int agree_sum(double *values, int count)
{
    int status = reduce(values, count, HVD_FLOAT64, HVD_SUM);

    return status < 0 ? agree_hvd_problem(status) : 0;
}

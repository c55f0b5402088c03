/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.c - adds the sums of metrics up: of two, or of all ranks in one
 * allreduce. A number that stands for the options of all metrics goes with
 * them, and its square: n times the sum of the squares is the square of the sum
 * only if all ranks have the same number, and all ranks find the same.
 */
#include "metric/metric.h"
#include "output/problem.h"

#include <hvd.h>
#include <stdlib.h>
#include <string.h>

enum { EXTRA = 3 }; /* ranks, number, square */

int hvd_metric_merge(hvd_metric *metric, const hvd_metric *other)
{
    if (!metric || !other)
        return problem_fail(HVD_ERR_ARGUMENT, "a metric to merge is NULL");
    if (metric->options.kind != other->options.kind ||
        metric->count != other->count)
        return problem_fail(
            HVD_ERR_MISMATCH,
            "metric %s of %lld sums cannot get those of %s, "
            "%lld of them",
            hvd_metric_name(metric->options.kind), (long long)metric->count,
            hvd_metric_name(other->options.kind), (long long)other->count);
    for (int64_t i = 0; i < metric->count; i++)
        metric->sums[i] += other->sums[i];
    return 0;
}

/* A number less than 2^16 that stands for the options of the metrics. */
static double number_of(hvd_metric *const *metrics, int32_t count)
{
    uint32_t hash = 2166136261U;

    for (int32_t i = 0; i < count; i++) {
        hash = (hash ^ (uint32_t)metrics[i]->options.kind) * 16777619U;
        hash = (hash ^ (uint32_t)metrics[i]->options.k) * 16777619U;
        hash = (hash ^ (uint32_t)metrics[i]->count) * 16777619U;
        hash = (hash ^ (uint32_t)(metrics[i]->options.threshold * 65536)) *
               16777619U;
    }
    return (double)(hash >> 16);
}

static int allreduce(double *sums, int64_t count, int32_t process_set)
{
    hvd_request request;
    hvd_handle handle;
    int status;

    hvd_request_init(&request, sizeof request);
    request.kind = HVD_ALLREDUCE;
    request.dtype = HVD_FLOAT64;
    request.op = HVD_SUM;
    request.ndim = 1;
    request.shape = &count;
    request.name = "hvd metrics";
    request.input = sums;
    request.output = sums;
    request.process_set = process_set;
    status = hvd_submit(&request, &handle);
    return status < 0 ? status : hvd_wait(handle);
}

/* Writes the sums of all metrics, one after the other, or reads them back. */
static void copy(hvd_metric *const *metrics, int32_t count, double *sums,
                 int back)
{
    for (int32_t i = 0; i < count; i++) {
        size_t bytes = (size_t)metrics[i]->count * sizeof *sums;

        memcpy(back ? metrics[i]->sums : sums, back ? sums : metrics[i]->sums,
               bytes);
        sums += metrics[i]->count;
    }
}

int hvd_metric_merge_ranks(hvd_metric *const *metrics, int32_t count,
                           int32_t process_set)
{
    int64_t total = EXTRA;
    double *sums, number;
    int status;

    if (count < 0 || (count > 0 && !metrics))
        return problem_fail(HVD_ERR_ARGUMENT, "%d metrics to merge%s",
                            (int)count, metrics ? "" : ", and no array");
    for (int32_t i = 0; i < count; i++) {
        if (!metrics[i])
            return problem_fail(HVD_ERR_ARGUMENT, "metric %d is NULL", (int)i);
        total += metrics[i]->count;
    }
    sums = malloc((size_t)total * sizeof *sums);
    if (!sums)
        return problem_fail(HVD_ERR_MEMORY, "no memory for %lld sums",
                            (long long)total);
    number = number_of(metrics, count);
    sums[0] = 1;
    sums[1] = number;
    sums[2] = number * number;
    copy(metrics, count, sums + EXTRA, 0);
    status = allreduce(sums, total, process_set);
    if (status >= 0 && sums[0] * sums[2] != sums[1] * sums[1])
        status = problem_fail(HVD_ERR_MISMATCH,
                              "the ranks merge metrics with different options, "
                              "or in another order: give the same on all");
    if (status >= 0)
        copy(metrics, count, sums + EXTRA, 1);
    free(sums);
    return status < 0 ? status : 0;
}

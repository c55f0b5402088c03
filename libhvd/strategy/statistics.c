/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statistics.c - variables that each rank changes by itself, and whose mean
 * over the ranks is what a reader gets: the moving averages of a normalisation,
 * for example. They have no gradient, and no optimiser changes them.
 *
 * All of them lie one after the other in one buffer while they travel: a read
 * is one allreduce, however many there are. A rank's own values stay as they
 * are. Ranks that have joined do not count.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "strategy/strategy.h"

static int64_t count_all(const struct hvd_strategy *s)
{
    int64_t count = 0;

    for (int32_t i = 0; i < s->nstatistics; i++)
        count += s->statistics[i].count;
    return count;
}

static void pack(struct hvd_strategy *s)
{
    float *at = s->statistics_buffer;

    for (int32_t i = 0; i < s->nstatistics; i++) {
        const struct hvd__variable *v = &s->statistics[i];

        if (v->count > 0)
            memcpy(at, v->value, (size_t)v->count * sizeof *at);
        at += v->count;
    }
}

/* Copies the buffer to the means, and to the values, too, if they change. */
static void unpack(struct hvd_strategy *s, bool changes_values)
{
    const float *at = s->statistics_buffer;

    for (int32_t i = 0; i < s->nstatistics; i++) {
        const struct hvd__variable *v = &s->statistics[i];
        size_t bytes = (size_t)v->count * sizeof *at;

        if (v->count > 0 && changes_values)
            memcpy(v->value, at, bytes);
        if (v->count > 0)
            memcpy(v->mean, at, bytes);
        at += v->count;
    }
}

/* Does a request of the kind over the whole buffer, in place. */
static int move(struct hvd_strategy *s, int32_t kind, int32_t process_set)
{
    int64_t count = count_all(s);
    hvd_request request;
    hvd_handle handle;

    hvd_request_init(&request, sizeof request);
    request.kind = kind;
    request.dtype = HVD_FLOAT32;
    request.ndim = 1;
    request.shape = &count;
    request.input = request.output = s->statistics_buffer;
    request.process_set = process_set;
    if (kind == HVD_ALLREDUCE)
        request.flags = HVD_AVERAGE_CONTRIBUTORS;
    HVD_TRY(hvd_submit(&request, &handle));
    return hvd_wait(handle);
}

int hvd__statistics_allocate(struct hvd_strategy *s)
{
    if (s->nstatistics == 0)
        return HVD_OK;
    s->statistics_buffer =
        hvd_malloc((size_t)count_all(s) * sizeof *s->statistics_buffer);
    return s->statistics_buffer ? HVD_OK : HVD_ERR_MEMORY;
}

int hvd__statistics_share(struct hvd_strategy *s, int32_t process_set)
{
    if (s->nstatistics == 0)
        return HVD_OK;
    pack(s);
    HVD_TRY(move(s, HVD_BROADCAST, process_set));
    unpack(s, true);
    return HVD_OK;
}

void hvd__statistics_free(struct hvd_strategy *s)
{
    for (int32_t i = 0; i < s->nstatistics; i++)
        free(s->statistics[i].name);
    free(s->statistics);
    hvd_free(s->statistics_buffer);
}

int hvd_strategy_add_statistic(hvd_strategy *strategy, const char *name,
                               float *value, float *mean, int32_t ndim,
                               const int64_t *shape)
{
    struct hvd__variable v = {.mean = mean}, *grown;

    HVD_TRY(hvd__variable_init(strategy, name, value, ndim, shape, &v));
    if (v.count > 0 && !mean) {
        free(v.name);
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the place for the mean of statistic '%s' is NULL",
                         name);
    }
    grown = realloc(strategy->statistics,
                    ((size_t)strategy->nstatistics + 1) * sizeof *grown);
    if (!grown) {
        free(v.name);
        return hvd__fail_memory(sizeof *grown);
    }
    strategy->statistics = grown;
    grown[strategy->nstatistics] = v;
    return strategy->nstatistics++;
}

int hvd_strategy_read_statistics(hvd_strategy *strategy)
{
    HVD_TRY(hvd__strategy_check_worker(strategy));
    if (strategy->nstatistics == 0)
        return HVD_OK;
    pack(strategy);
    HVD_TRY(move(strategy, HVD_ALLREDUCE, strategy->group));
    unpack(strategy, false);
    return HVD_OK;
}

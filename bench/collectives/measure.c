/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.c - fills the buffers, checks the result, warms up, then times.
 *
 * Results are checked in a separate run, before the timed ones: every element
 * must be right, and the input of an operation out of place must be unchanged.
 * collectives.c calls it for each row.
 */
#include "collectives/measure.h"

#include "collectives/agree.h"
#include "collectives/blocks.h"
#include "collectives/pattern.h"

#include <string.h>

enum { LEAST_ITERS = 20 };

/* The first operations of a process are slow. The smallest size is warmed up
 * by as many times -w as WARM_UP_BYTES hold, but at most SMALL_WARM_UPS: a
 * thousand operations of a MiB can take a minute between hosts. */
enum { SMALL_WARM_UPS = 200, WARM_UP_BYTES = 1 << 20 };

/* Chooses enough operations that a block is longer than a usual disturbance. */
static int choose_iters(const struct bench_options *options, int64_t bytes)
{
    if (options->iters > 0)
        return options->iters;
    if (bytes <= 64 << 10)
        return 25 * LEAST_ITERS;
    return bytes <= 1 << 20 ? 5 * LEAST_ITERS : LEAST_ITERS;
}

static int warm_up_call(const struct run *r, int iters)
{
    int failed = 0;

    for (int i = 0; i < iters && !failed; i++) {
        failed = blocks_once(r, HVD);
        if (!failed && r->bench->options->compare)
            failed = blocks_once(r, RAW_MPI);
    }
    return agree_well(!failed) ? 0 : -1;
}

/* Runs one operation on known data, in slot 0, and counts wrong elements. */
static int check_once(const struct run *r, const struct pattern *pattern,
                      int64_t *nwrong)
{
    const struct call *call = r->call;
    struct buffers *buffers = &r->bench->buffers;
    int failed;
    int64_t mine;

    buffers->turn = 0;
    failed = blocks_once(r, HVD);
    if (!agree_well(!failed))
        return -1;
    mine = pattern_check_result(pattern, buffers->out, call_out_count(call));
    if (r->placement == OUT_OF_PLACE)
        mine += pattern_check_input(pattern, call->rank, buffers->in,
                                    call_in_count(call));
    MPI_Allreduce(&mine, nwrong, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return 0;
}

/* Fills the buffers, even if nothing is checked: memory that was never written
 * is one page of zeros, and faster to read than any other. */
static void fill_buffers(const struct run *r, const struct pattern *pattern)
{
    const struct call *call = r->call;
    struct buffers *buffers = &r->bench->buffers;
    int64_t count = call_in_count(call);
    size_t bytes = call_bytes(call);

    memset(buffers->in, 1, bytes);
    pattern_fill(pattern, call->rank, buffers->in, count);
    memset(buffers->out, 0xff, bytes);
    if (r->placement == IN_PLACE)
        memcpy(call_input_of(call, buffers->out), buffers->in,
               (size_t)count * call->type->bytes);
}

static int measure_placement(struct run *r, int iters,
                             struct measured *measured)
{
    const struct bench_options *options = r->bench->options;
    struct buffers *buffers = &r->bench->buffers;
    struct pattern pattern;
    int status = 0;

    pattern_init_call(&pattern, r->call);
    fill_buffers(r, &pattern);
    measured->nwrong = -1;
    if (options->check)
        status = check_once(r, &pattern, &measured->nwrong);
    memcpy(buffers->out, buffers->in, call_bytes(r->call));
    buffers_spread(buffers, call_bytes(r->call));
    if (status >= 0)
        status = warm_up_call(r, options->warmup_iters);
    if (status >= 0)
        status = blocks_time(r, iters, measured);
    return status;
}

int measure(struct bench *bench, const struct call *call, struct result *result)
{
    struct run run = {.bench = bench, .call = call};
    int64_t bytes = (int64_t)call_bytes(call);
    int status = 0;

    *result = (struct result){.kind = call->kind,
                              .bytes = bytes,
                              .count = call->share,
                              .type = call->type,
                              .op = call->op,
                              .root = call->root,
                              .iters = choose_iters(bench->options, bytes)};
    reference_init(&run.reference, call);
    buffers_divide(&bench->buffers, (size_t)bytes);
    for (int p = 0; p < PLACEMENTS && status >= 0; p++) {
        run.placement = (enum placement)p;
        status = measure_placement(&run, result->iters, &result->placements[p]);
    }
    reference_fini(&run.reference);
    return status;
}

static int warm_up_bytes(struct bench *bench, int64_t bytes, int iters)
{
    const struct session *s = bench->session;
    struct call call;
    struct run run = {.bench = bench, .call = &call};
    int status;

    /* The type is bytes, so that any size is a count. */
    call_init(&call, bench->options->kind, bench_dtype_find("uint8"),
              bench_op_find("sum"), 0, s->rank, s->nranks, bytes);
    reference_init(&run.reference, &call);
    buffers_divide(&bench->buffers, (size_t)bytes);
    status = warm_up_call(&run, iters);
    reference_fini(&run.reference);
    return status;
}

int measure_warm_up(struct bench *bench)
{
    const struct bench_options *options = bench->options;
    int64_t fit = WARM_UP_BYTES / options->min_bytes;
    int64_t times = fit < SMALL_WARM_UPS ? fit : SMALL_WARM_UPS;
    int64_t iters = (int64_t)options->warmup_iters * (times > 0 ? times : 1);

    if (warm_up_bytes(bench, options->max_bytes, options->warmup_iters) < 0)
        return -1;
    return warm_up_bytes(bench, options->min_bytes,
                         iters < INT32_MAX ? (int)iters : INT32_MAX);
}

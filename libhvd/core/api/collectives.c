/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collectives.c - the public calls that fill one or more requests for the
 * caller.
 */
#include <stdlib.h>

#include "base/status.h"
#include "core/api/refuse.h"
#include "core/api/submit.h"

void hvd__fill(hvd_request *request, hvd_kind kind, const void *in, void *out,
               const int64_t *count, hvd_dtype dtype)
{
    /* Each field is named: what is left out GCC would clear before, together
     * with the rest, by an instruction that takes tens of cycles. */
    *request = (hvd_request){.size = sizeof *request,
                             .kind = kind,
                             .dtype = dtype,
                             .op = HVD_AVERAGE,
                             .root = 0,
                             .ndim = 1,
                             .shape = count,
                             .name = NULL,
                             .input = in,
                             .output = out,
                             .prescale = 1,
                             .postscale = 1,
                             .callback = NULL,
                             .callback_context = NULL,
                             .process_set = 0,
                             .priority = 0,
                             .flags = 0,
                             .compression = HVD_COMPRESSION_NONE,
                             .capacity = 0,
                             .splits = NULL,
                             .counts = NULL};
}

/* ----------------------------------------------------------------- blocking */

int hvd_allreduce(const void *in, void *out, int64_t count, hvd_dtype dtype,
                  hvd_op op)
{
    hvd_request request;

    hvd__fill(&request, HVD_ALLREDUCE, in, out, &count, dtype);
    request.op = op;
    return hvd__run(&request, NULL, NULL);
}

int hvd_reduce(const void *in, void *out, int64_t count, hvd_dtype dtype,
               hvd_op op, int root)
{
    hvd_request request;

    hvd__fill(&request, HVD_REDUCE, in, out, &count, dtype);
    request.op = op;
    request.root = root;
    return hvd__run(&request, NULL, NULL);
}

int hvd_broadcast(void *buffer, int64_t count, hvd_dtype dtype, int root)
{
    hvd_request request;

    hvd__fill(&request, HVD_BROADCAST, NULL, buffer, &count, dtype);
    request.root = root;
    return hvd__run(&request, NULL, NULL);
}

/* The output of calls whose result is empty, so that the library allocates
 * none. */
static char nowhere;

/* Every call reports an error of the world before any other error. A call
 * without an output is a mistake: it does not ask the library to allocate one.
 */
static int need_output(const void *out, const char *call)
{
    struct hvd__world *world;

    if (out)
        return HVD_OK;
    HVD_TRY(hvd__world_get(&world));
    return hvd__fail(HVD_ERR_ARGUMENT, "%s: the output is NULL", call);
}

int hvd_allgather(const void *in, void *out, int64_t count, hvd_dtype dtype)
{
    hvd_request request;

    if (count != 0)
        HVD_TRY(need_output(out, "hvd_allgather"));
    hvd__fill(&request, HVD_ALLGATHER, in, out ? out : &nowhere, &count, dtype);
    return hvd__run(&request, NULL, NULL);
}

int hvd_allgatherv(const void *in, int64_t count, void *out, int64_t capacity,
                   int64_t *counts, hvd_dtype dtype)
{
    hvd_request request;

    if (capacity > 0)
        HVD_TRY(need_output(out, "hvd_allgatherv"));
    hvd__fill(&request, HVD_ALLGATHER, in, out ? out : &nowhere, &count, dtype);
    request.flags = HVD__OWN_ROWS;
    request.capacity = capacity;
    request.counts = counts;
    return hvd__run(&request, NULL, NULL);
}

int hvd_gather(const void *in, void *out, int64_t count, hvd_dtype dtype,
               int root)
{
    struct hvd__world *world;
    hvd_request request;

    HVD_TRY(hvd__world_get(&world));
    if (count != 0 && root == world->engine.transport->rank)
        HVD_TRY(need_output(out, "hvd_gather"));
    hvd__fill(&request, HVD_GATHER, in, out ? out : &nowhere, &count, dtype);
    request.root = root;
    return hvd__run(&request, NULL, NULL);
}

int hvd_reducescatter(const void *in, void *out, int64_t count, hvd_dtype dtype,
                      hvd_op op)
{
    struct hvd__world *world;
    hvd_request request;

    HVD_TRY(hvd__world_get(&world));
    if (count > world->engine.transport->rank)
        HVD_TRY(need_output(out, "hvd_reducescatter"));
    hvd__fill(&request, HVD_REDUCESCATTER, in, out ? out : &nowhere, &count,
              dtype);
    request.op = op;
    return hvd__run(&request, NULL, NULL);
}

int hvd_alltoall(const void *in, void *out, int64_t count, hvd_dtype dtype)
{
    hvd_request request;

    if (count != 0)
        HVD_TRY(need_output(out, "hvd_alltoall"));
    hvd__fill(&request, HVD_ALLTOALL, in, out ? out : &nowhere, &count, dtype);
    return hvd__run(&request, NULL, NULL);
}

int hvd_alltoallv(const void *in, const int64_t *splits, void *out,
                  int64_t capacity, int64_t *counts, hvd_dtype dtype)
{
    int64_t count = 0;
    struct hvd__world *world;
    hvd_request request;

    HVD_TRY(hvd__world_get(&world));
    if (!splits)
        return hvd__fail(HVD_ERR_ARGUMENT, "hvd_alltoallv: splits is NULL");
    if (capacity > 0)
        HVD_TRY(need_output(out, "hvd_alltoallv"));
    /* The request's check reports a negative split. */
    for (int rank = 0; rank < world->engine.transport->size; rank++)
        if (splits[rank] > 0 &&
            __builtin_add_overflow(count, splits[rank], &count))
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "hvd_alltoallv: the splits add up to more than "
                             "2^63 elements");
    hvd__fill(&request, HVD_ALLTOALL, in, out ? out : &nowhere, &count, dtype);
    request.flags = HVD__OWN_ROWS;
    request.splits = splits;
    request.capacity = capacity;
    request.counts = counts;
    return hvd__run(&request, NULL, NULL);
}

int hvd_barrier(void)
{
    hvd_request request;

    hvd_request_init(&request, sizeof request);
    request.kind = HVD_BARRIER;
    return hvd__run(&request, NULL, NULL);
}

static int join_all(int32_t flags, int *last)
{
    int32_t rank = -1;
    hvd_request request;
    int status;

    hvd_request_init(&request, sizeof request);
    request.kind = HVD_JOIN;
    request.output = &rank;
    request.flags = flags;
    status = hvd__run(&request, NULL, NULL);
    if (status == HVD_OK && last)
        *last = rank;
    return status;
}

int hvd_join(int *last)
{
    return join_all(0, last);
}

int hvd__join_strategies(int *last)
{
    return join_all(HVD__OF_STRATEGY, last);
}

/* ------------------------------------------------------------- asynchronous */

int hvd_allreduce_async(const char *name, const void *in, void *out,
                        int64_t count, hvd_dtype dtype, hvd_op op,
                        hvd_handle *handle)
{
    hvd_request request;

    hvd__fill(&request, HVD_ALLREDUCE, in, out, &count, dtype);
    request.name = name;
    request.op = op;
    return hvd__submit(&request, handle);
}

int hvd_broadcast_async(const char *name, void *buffer, int64_t count,
                        hvd_dtype dtype, int root, hvd_handle *handle)
{
    hvd_request request;

    hvd__fill(&request, HVD_BROADCAST, NULL, buffer, &count, dtype);
    request.name = name;
    request.root = root;
    return hvd__submit(&request, handle);
}

int hvd_allgather_async(const char *name, const void *in, int64_t count,
                        hvd_dtype dtype, hvd_handle *handle)
{
    hvd_request request;

    hvd__fill(&request, HVD_ALLGATHER, in, NULL, &count, dtype);
    request.name = name;
    return hvd__submit(&request, handle);
}

int hvd_alltoall_async(const char *name, const void *in, int64_t count,
                       const int64_t *splits, hvd_dtype dtype,
                       hvd_handle *handle)
{
    hvd_request request;

    hvd__fill(&request, HVD_ALLTOALL, in, NULL, &count, dtype);
    request.name = name;
    request.splits = splits;
    return hvd__submit(&request, handle);
}

int hvd_reducescatter_async(const char *name, const void *in, int64_t count,
                            hvd_dtype dtype, hvd_op op, hvd_handle *handle)
{
    hvd_request request;

    hvd__fill(&request, HVD_REDUCESCATTER, in, NULL, &count, dtype);
    request.name = name;
    request.op = op;
    return hvd__submit(&request, handle);
}

/* ------------------------------------------------------------------- groups */

int hvd_grouped_allreduce_async(const char *name, int32_t n,
                                const void *const *in, void *const *out,
                                const int64_t *counts, hvd_dtype dtype,
                                hvd_op op, hvd_handle *handles)
{
    const hvd_request **pointers;
    hvd_request *requests;
    int status = HVD_ERR_MEMORY;

    if (n < 1 || !in || !out || !counts)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "a group of %d tensors: there must be one, and "
                         "arrays of inputs, outputs and counts",
                         (int)n);
    requests = calloc((size_t)n, sizeof *requests);
    pointers = calloc((size_t)n, sizeof *pointers);
    if (requests && pointers) {
        for (int32_t i = 0; i < n; i++) {
            hvd__fill(&requests[i], HVD_ALLREDUCE, in[i], out[i], &counts[i],
                      dtype);
            requests[i].op = op;
            pointers[i] = &requests[i];
        }
        status = hvd_submit_group(name, pointers, n, handles);
    } else {
        hvd__fail_memory((size_t)n * sizeof *requests);
    }
    free(requests);
    free(pointers);
    return status;
}

int hvd_sparse_allreduce_async(const char *name, const int64_t *indices,
                               const void *rows, int64_t n, int64_t width,
                               hvd_dtype dtype, hvd_op op, hvd_handle *handles)
{
    const int64_t shape[2] = {n, width};
    hvd_request both[2];
    const hvd_request *const pointers[2] = {&both[0], &both[1]};

    if (op != HVD_SUM && op != HVD_AVERAGE)
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "a sparse allreduce sums or averages; op is %d",
                         (int)op);
    hvd__fill(&both[0], HVD_ALLGATHER, indices, NULL, &n, HVD_INT64);
    both[0].name = "indices";
    hvd__fill(&both[1], HVD_ALLGATHER, rows, NULL, shape, dtype);
    both[1].name = "rows";
    both[1].ndim = 2;
    both[1].op = op;
    both[1].flags = HVD__SPARSE;
    return hvd__submit_group(name, pointers, 2, handles);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tables/call.h"

bool call_known(hvd_kind kind)
{
    return kind >= 0 && kind != HVD_JOIN && hvd_kind_name(kind) != NULL;
}

bool call_reduces(hvd_kind kind)
{
    return kind == HVD_ALLREDUCE || kind == HVD_REDUCE ||
           kind == HVD_REDUCESCATTER;
}

bool call_has_root(hvd_kind kind)
{
    return kind == HVD_BROADCAST || kind == HVD_REDUCE || kind == HVD_GATHER;
}

/* Returns true if the larger buffer consists of one share per rank. */
static bool has_shares(hvd_kind kind)
{
    return kind == HVD_ALLGATHER || kind == HVD_GATHER ||
           kind == HVD_REDUCESCATTER || kind == HVD_ALLTOALL;
}

static int64_t share_of(int64_t count, int nranks, size_t element)
{
    int64_t share = count / nranks;
    int64_t aligned = share & ~(int64_t)(16 / element - 1);

    return aligned > 0 ? aligned : share;
}

void call_init(struct call *call, hvd_kind kind, const struct bench_dtype *type,
               const struct bench_op *op, int root, int rank, int nranks,
               int64_t bytes)
{
    int64_t count = bytes / (int64_t)type->bytes;

    *call = (struct call){.kind = kind,
                          .type = type,
                          .op = call_reduces(kind) ? op : NULL,
                          .root = call_has_root(kind) ? root : 0,
                          .rank = rank,
                          .nranks = nranks,
                          .share = count,
                          .total = count};
    if (has_shares(kind)) {
        call->share = share_of(count, nranks, type->bytes);
        call->total = call->share * nranks;
    } else if (kind == HVD_BARRIER) {
        call->share = call->total = 0;
    }
}

size_t call_bytes(const struct call *call)
{
    return (size_t)call->total * call->type->bytes;
}

int64_t call_in_count(const struct call *call)
{
    bool gathers = call->kind == HVD_ALLGATHER || call->kind == HVD_GATHER;

    return gathers ? call->share : call->total;
}

int64_t call_out_count(const struct call *call)
{
    bool to_root = call->kind == HVD_REDUCE || call->kind == HVD_GATHER;

    if (to_root && call->rank != call->root)
        return 0;
    return call->kind == HVD_REDUCESCATTER ? call->share : call->total;
}

void *call_input_of(const struct call *call, void *out)
{
    bool gathers = call->kind == HVD_ALLGATHER || call->kind == HVD_GATHER;
    size_t offset = (size_t)(call->share * call->rank) * call->type->bytes;

    return (char *)out + (gathers ? offset : 0);
}

double call_bus_factor(hvd_kind kind, int nranks)
{
    double others = (double)(nranks - 1) / nranks;

    if (kind == HVD_ALLREDUCE)
        return 2 * others;
    return has_shares(kind) ? others : 1;
}

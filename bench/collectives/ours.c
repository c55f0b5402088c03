/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/ours.h"

int ours_run(const struct call *call, const void *in, void *out)
{
    hvd_dtype type = call->type->id;
    hvd_op op = call->op ? call->op->id : HVD_SUM;

    switch (call->kind) {
    case HVD_ALLREDUCE: return hvd_allreduce(in, out, call->total, type, op);
    case HVD_REDUCE:
        return hvd_reduce(in, out, call->total, type, op, call->root);
    case HVD_BROADCAST:
        return hvd_broadcast(out, call->total, type, call->root);
    case HVD_ALLGATHER: return hvd_allgather(in, out, call->share, type);
    case HVD_GATHER: return hvd_gather(in, out, call->share, type, call->root);
    case HVD_ALLTOALL: return hvd_alltoall(in, out, call->total, type);
    case HVD_REDUCESCATTER:
        return hvd_reducescatter(in, out, call->total, type, op);
    default: return hvd_barrier();
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - turns collectives of MPI into requests of libhvd.
 *
 * All ranks must come to the same answer, so a plan looks at nothing that may
 * differ: not at addresses, MPI_IN_PLACE, displacements or whether a type is a
 * derived one. What MPI wants to agree is the communicator, the root, the type,
 * operation and counts of reductions, and the bytes of every block that is
 * moved; these decide. Data that does not lie as libhvd wants it is packed into
 * memory of our own.
 *
 * Arguments that are wrong go to MPI, which says what is wrong with them.
 */
#include "mpi/plan.h"

#include <stdlib.h>
#include <string.h>

void hvd__plan_fill(struct hvd__accel_call *call, hvd_kind kind, const void *in,
                    void *out, int64_t count, hvd_dtype dtype)
{
    call->count = count;
    call->request = (hvd_request){.size = sizeof call->request,
                                  .kind = kind,
                                  .dtype = dtype,
                                  .op = HVD_SUM,
                                  .ndim = 1,
                                  .shape = &call->count,
                                  .input = in,
                                  .output = out,
                                  .process_set = call->state->set,
                                  .prescale = 1,
                                  .postscale = 1};
}

enum hvd__accel_plan hvd__plan_refuse(struct hvd__accel_call *call)
{
    hvd__plan_fill(call, HVD_ALLREDUCE, NULL, NULL, -1, HVD_UINT8);
    call->result = NULL;
    return HVD__ACCEL_TAKEN;
}

bool hvd__plan_take_room(struct hvd__accel_call *call, int64_t bytes)
{
    call->room = malloc(bytes > 0 ? (size_t)bytes : 1);
    return call->room != NULL;
}

void hvd__plan_unpack_later(struct hvd__accel_call *call,
                            const struct hvd__accel_layout *layout,
                            const void *result, int64_t stride, int skip)
{
    call->to = *layout;
    call->result = result;
    call->stride = stride;
    call->skip = skip;
}

enum hvd__accel_plan hvd__accel_plan_barrier(struct hvd__accel_call *call)
{
    if (!hvd__accel_takes(call, 0))
        return HVD__ACCEL_LEFT;
    hvd__plan_fill(call, HVD_BARRIER, NULL, NULL, 0, HVD_UINT8);
    call->request.ndim = 0;
    return HVD__ACCEL_TAKEN;
}

enum hvd__accel_plan hvd__accel_plan_reduce(struct hvd__accel_call *call,
                                            const void *in, void *out,
                                            int count, MPI_Datatype type,
                                            MPI_Op op, int root)
{
    struct hvd__accel_reduction how;
    const bool to_all = root == HVD__ACCEL_TO_ALL;
    const bool gets_result = to_all || root == call->state->rank;

    if (count <= 0 || root >= call->state->size || (root < 0 && !to_all) ||
        !hvd__accel_reduction_find(type, op, &how))
        return HVD__ACCEL_LEFT;
    call->bytes = (int64_t)count * (int64_t)how.bytes;
    if (!hvd__accel_takes(call, call->bytes))
        return HVD__ACCEL_LEFT;
    if (in == MPI_IN_PLACE)
        in = out;
    if (!in || (gets_result && !out))
        return hvd__plan_refuse(call);
    hvd__plan_fill(call, to_all ? HVD_ALLREDUCE : HVD_REDUCE, in,
                   gets_result ? out : NULL, (int64_t)count * how.elements,
                   how.dtype);
    call->request.op = how.op;
    call->request.root = to_all ? 0 : hvd__accel_comm_world(call->state, root);
    return HVD__ACCEL_TAKEN;
}

/* Copies parts of different sizes to places of the same size, which libhvd
 * reduces, and has this rank's copied to its place afterwards. The rest is
 * zero. */
static enum hvd__accel_plan even_out(struct hvd__accel_call *call,
                                     const char *in, char *out,
                                     const int *counts, size_t element,
                                     int64_t widest)
{
    const int n = call->state->size;
    char *place;

    if (!hvd__plan_take_room(call, (n + 1) * widest))
        return hvd__plan_refuse(call);
    place = call->room;
    for (int i = 0; i < n; i++, place += widest) {
        size_t bytes = (size_t)counts[i] * element;

        memcpy(place, in, bytes);
        memset(place + bytes, 0, (size_t)widest - bytes);
        in += bytes;
    }
    call->request.input = call->room;
    call->request.output = place;
    call->result = place;
    call->tail = out;
    call->tail_bytes = (size_t)counts[call->state->rank] * element;
    return HVD__ACCEL_TAKEN;
}

enum hvd__accel_plan hvd__accel_plan_reduce_scatter(
    struct hvd__accel_call *call, const void *in, void *out, const int *counts,
    int count, MPI_Datatype type, MPI_Op op)
{
    const int n = call->state->size;
    struct hvd__accel_reduction how;
    int widest = count;
    int64_t sum = (int64_t)count * n;

    if (!hvd__accel_reduction_find(type, op, &how) ||
        (!counts && call->kind == HVD__ACCEL_REDUCE_SCATTER))
        return HVD__ACCEL_LEFT;
    if (counts)
        widest = 0, sum = 0;
    for (int i = 0; counts && i < n; i++) {
        if (counts[i] < 0)
            return HVD__ACCEL_LEFT;
        widest = counts[i] > widest ? counts[i] : widest;
        sum += counts[i];
    }
    if (sum <= 0 || (int64_t)widest * n > 2 * sum)
        return HVD__ACCEL_LEFT;
    call->bytes = sum * (int64_t)how.bytes;
    if (!hvd__accel_takes(call, call->bytes))
        return HVD__ACCEL_LEFT;
    if (in == MPI_IN_PLACE)
        in = out;
    if (!in || !out)
        return hvd__plan_refuse(call);
    hvd__plan_fill(call, HVD_REDUCESCATTER, in, out,
                   (int64_t)widest * n * how.elements, how.dtype);
    call->request.op = how.op;
    if ((int64_t)widest * n == sum)
        return HVD__ACCEL_TAKEN;
    return even_out(call, in, out, counts, how.bytes,
                    widest * (int64_t)how.bytes);
}

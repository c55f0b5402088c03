/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_move.c - plans of the collectives that move data: bytes, for libhvd.
 */
#include <limits.h>
#include <string.h>

#include "mpi/plan.h"

enum hvd__accel_plan hvd__accel_plan_bcast(struct hvd__accel_call *call,
                                           void *buffer, int count,
                                           MPI_Datatype type, int root)
{
    struct hvd__accel_layout data;
    int64_t bytes;
    int code;

    if (root < 0 || root >= call->state->size ||
        !hvd__accel_layout_init(&data, buffer, count, type, 1))
        return HVD__ACCEL_LEFT;
    bytes = call->bytes = hvd__accel_layout_block(&data, 0);
    if (bytes > INT_MAX || !hvd__accel_takes_moved(call, bytes, !data.is_dense))
        return HVD__ACCEL_LEFT;
    hvd__plan_fill(call, HVD_BROADCAST, NULL, buffer, bytes, HVD_UINT8);
    call->request.root = hvd__accel_comm_world(call->state, root);
    if (data.is_dense)
        return HVD__ACCEL_TAKEN;
    if (!hvd__plan_take_room(call, bytes))
        return hvd__plan_refuse(call);
    call->request.output = call->room;
    if (root != call->state->rank) {
        hvd__plan_unpack_later(call, &data, call->room, bytes, -1);
        return HVD__ACCEL_TAKEN;
    }
    code = hvd__accel_layout_pack(&data, 0, call->room, call->comm);
    return code == MPI_SUCCESS ? HVD__ACCEL_TAKEN : hvd__plan_refuse(call);
}

/* to has a block of each rank. */
static enum hvd__accel_plan gather(struct hvd__accel_call *call, const void *in,
                                   int count, MPI_Datatype type,
                                   const struct hvd__accel_layout *to)
{
    const int self = call->state->rank;
    const bool in_place = in == MPI_IN_PLACE;
    struct hvd__accel_layout from;
    int64_t sum, own = hvd__accel_layout_block(to, self);
    const int64_t widest = hvd__accel_layout_widest(to, &sum);
    const bool is_right =
        in_place || (hvd__accel_layout_init(&from, in, count, type, 1) &&
                     hvd__accel_layout_block(&from, 0) == own);
    const bool packs = widest * to->nblocks != sum ||
                       !hvd__accel_layout_is_flat(to) ||
                       (is_right && !in_place && !from.is_dense);
    char *place;
    int code;

    if (sum == 0 || widest * to->nblocks > 2 * sum || widest > INT_MAX ||
        !hvd__accel_takes_moved(call, sum, packs))
        return HVD__ACCEL_LEFT;
    call->bytes = sum;
    if (!is_right)
        return hvd__plan_refuse(call);
    if (!packs) {
        hvd__plan_fill(call, HVD_ALLGATHER,
                       in_place ? (char *)to->buffer + self * widest : in,
                       to->buffer, widest, HVD_UINT8);
        return HVD__ACCEL_TAKEN;
    }
    if (!hvd__plan_take_room(call, widest * to->nblocks))
        return hvd__plan_refuse(call);
    place = (char *)call->room + self * widest;
    memset(place + own, 0, (size_t)(widest - own));
    code = in_place ? hvd__accel_layout_pack(to, self, place, call->comm)
                    : hvd__accel_layout_pack(&from, 0, place, call->comm);
    if (code != MPI_SUCCESS)
        return hvd__plan_refuse(call);
    hvd__plan_fill(call, HVD_ALLGATHER, place, call->room, widest, HVD_UINT8);
    hvd__plan_unpack_later(call, to, call->room, widest, in_place ? self : -1);
    return HVD__ACCEL_TAKEN;
}

enum hvd__accel_plan hvd__accel_plan_allgather(struct hvd__accel_call *call,
                                               const void *in, int count,
                                               MPI_Datatype type, void *out,
                                               int out_count,
                                               MPI_Datatype out_type)
{
    struct hvd__accel_layout to;

    if (!hvd__accel_layout_init(&to, out, out_count, out_type,
                                call->state->size))
        return HVD__ACCEL_LEFT;
    return gather(call, in, count, type, &to);
}

enum hvd__accel_plan hvd__accel_plan_allgatherv(
    struct hvd__accel_call *call, const void *in, int count, MPI_Datatype type,
    void *out, const int *counts, const int *displs, MPI_Datatype out_type)
{
    struct hvd__accel_layout to;

    if (!hvd__accel_layout_init_v(&to, out, counts, displs, out_type,
                                  call->state->size))
        return HVD__ACCEL_LEFT;
    return gather(call, in, count, type, &to);
}

/* Copies all blocks of a layout, one behind the other, stride bytes apart. */
static int pack_all(const struct hvd__accel_layout *from, char *to,
                    int64_t stride, MPI_Comm comm)
{
    int code = MPI_SUCCESS;

    for (int i = 0; i < from->nblocks && code == MPI_SUCCESS; i++)
        code = hvd__accel_layout_pack(from, i, to + i * stride, comm);
    return code;
}

/* from and to have a block for each rank, of at most block bytes: so many are
 * exchanged, on all ranks. */
static enum hvd__accel_plan exchange(struct hvd__accel_call *call,
                                     const struct hvd__accel_layout *from,
                                     const struct hvd__accel_layout *to,
                                     int64_t block)
{
    const bool packs = !hvd__accel_layout_is_flat(from) || from->counts;
    const bool unpacks = !hvd__accel_layout_is_flat(to) || to->counts;
    const int64_t bytes = block * call->state->size;
    const void *in = from->buffer;
    void *out = to->buffer;
    int64_t sum;

    if (hvd__accel_layout_widest(from, &sum) > block ||
        hvd__accel_layout_widest(to, &sum) > block)
        return hvd__plan_refuse(call);
    if (packs || unpacks) {
        if (!hvd__plan_take_room(call, (packs + unpacks) * bytes))
            return hvd__plan_refuse(call);
        if (packs) {
            memset(call->room, 0, (size_t)bytes);
            if (pack_all(from, call->room, block, call->comm) != MPI_SUCCESS)
                return hvd__plan_refuse(call);
            in = call->room;
        }
        if (unpacks) {
            out = (char *)call->room + packs * bytes;
            hvd__plan_unpack_later(call, to, out, block, -1);
        }
    }
    hvd__plan_fill(call, HVD_ALLTOALL, in, out, bytes, HVD_UINT8);
    return HVD__ACCEL_TAKEN;
}

enum hvd__accel_plan hvd__accel_plan_alltoall(struct hvd__accel_call *call,
                                              const void *in, int count,
                                              MPI_Datatype type, void *out,
                                              int out_count,
                                              MPI_Datatype out_type)
{
    const int n = call->state->size;
    struct hvd__accel_layout from, to;
    bool is_right = true;
    int64_t block;

    if (!hvd__accel_layout_init(&to, out, out_count, out_type, n))
        return HVD__ACCEL_LEFT;
    if (in == MPI_IN_PLACE)
        from = to;
    else
        is_right = hvd__accel_layout_init(&from, in, count, type, n);
    block = hvd__accel_layout_block(&to, 0);
    call->bytes = block * n;
    if (block > INT_MAX || !hvd__accel_takes_moved(
                               call, call->bytes,
                               is_right && !(hvd__accel_layout_is_flat(&from) &&
                                             hvd__accel_layout_is_flat(&to))))
        return HVD__ACCEL_LEFT;
    if (!is_right)
        return hvd__plan_refuse(call);
    return exchange(call, &from, &to, block);
}

/* ------------------------------------------------------- blocks of any size */

/* Every rank begins what it sends to another one with this, so all learn how
 * much moves in all. Blocks that fit are sent along with it. */
struct head {
    int64_t widest, sum; /* bytes of this rank's blocks */
};

enum { PACKET = 256, INLINE = PACKET - sizeof(struct head) };

/* Fills the packets, [n * PACKET]. */
static int fill_packets(const struct hvd__accel_layout *from,
                        const struct head *head, char *packets, MPI_Comm comm)
{
    memset(packets, 0, (size_t)from->nblocks * PACKET);
    for (int i = 0; i < from->nblocks; i++, packets += PACKET) {
        int code = MPI_SUCCESS;

        memcpy(packets, head, sizeof *head);
        if (hvd__accel_layout_block(from, i) <= INLINE)
            code =
                hvd__accel_layout_pack(from, i, packets + sizeof *head, comm);
        if (code != MPI_SUCCESS)
            return code;
    }
    return MPI_SUCCESS;
}

/* Returns what all ranks have together. */
static struct head read_heads(const char *packets, int n)
{
    struct head all = {0};

    for (int i = 0; i < n; i++, packets += PACKET) {
        struct head one;

        memcpy(&one, packets, sizeof one);
        all.widest = one.widest > all.widest ? one.widest : all.widest;
        all.sum += one.sum;
    }
    return all;
}

/* Exchanges the packets, which are in the first half of the room afterwards in
 * the second. Returns a status. */
static int exchange_packets(struct hvd__accel_call *call,
                            const struct hvd__accel_layout *from, bool is_right)
{
    const int64_t bytes = (int64_t)call->state->size * PACKET;
    struct head head = {0};

    if (is_right)
        head.widest = hvd__accel_layout_widest(from, &head.sum);
    call->bytes = head.sum;
    if (!is_right || !hvd__plan_take_room(call, 2 * bytes) ||
        fill_packets(from, &head, call->room, call->comm) != MPI_SUCCESS)
        hvd__plan_refuse(call);
    else
        hvd__plan_fill(call, HVD_ALLTOALL, call->room,
                       (char *)call->room + bytes, bytes, HVD_UINT8);
    return hvd__accel_wait(call, &call->request);
}

/* Gives the program the blocks that came with the heads. */
static enum hvd__accel_plan take_inline(struct hvd__accel_call *call,
                                        const struct hvd__accel_layout *to,
                                        const char *packets)
{
    int64_t sum;

    if (hvd__accel_layout_widest(to, &sum) > INLINE) {
        call->code = MPI_ERR_TRUNCATE; /* more than any rank has sent */
        PMPI_Comm_call_errhandler(call->comm, call->code);
        return HVD__ACCEL_DONE;
    }
    hvd__plan_unpack_later(call, to, packets + sizeof(struct head), PACKET, -1);
    call->code = hvd__accel_finish(call);
    return HVD__ACCEL_DONE;
}

enum hvd__accel_plan hvd__accel_plan_alltoallv(
    struct hvd__accel_call *call, const void *in, const int *counts,
    const int *displs, MPI_Datatype type, void *out, const int *out_counts,
    const int *out_displs, MPI_Datatype out_type)
{
    const int n = call->state->size;
    struct hvd__accel_layout from, to;
    struct head all;
    char *packets;
    bool is_right;
    int status;

    /* How much moves is known only after ranks have asked each other. */
    if (!hvd__accel_takes(call, 0))
        return HVD__ACCEL_LEFT;
    is_right =
        hvd__accel_layout_init_v(&to, out, out_counts, out_displs, out_type, n);
    if (in == MPI_IN_PLACE)
        from = to;
    else
        is_right =
            hvd__accel_layout_init_v(&from, in, counts, displs, type, n) &&
            is_right;
    status = exchange_packets(call, &from, is_right);
    if (status != HVD_OK && hvd__accel_is_over(status)) {
        call->code = hvd__accel_fail(call->comm, status);
        return HVD__ACCEL_DONE;
    }
    if (status != HVD_OK)
        return HVD__ACCEL_LEFT;
    packets = (char *)call->room + (size_t)n * PACKET;
    all = read_heads(packets, n);
    if (all.widest <= INLINE)
        return take_inline(call, &to, packets);
    hvd__accel_drop(call);
    call->room = NULL;
    if (all.widest > INT_MAX || n * all.widest * n > 2 * all.sum)
        return HVD__ACCEL_LEFT;
    return exchange(call, &from, &to, all.widest);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules.c - which of libhvd and MPI is the faster one.
 *
 * The limits are those of measurements (docs/MPI.md), in ordinary memory that
 * the program writes before each call and reads after it, in a program with one
 * thread: on one host with two, four and eight ranks, and across hosts over
 * UCX. Over MPI, libhvd is slower than MPI across hosts. All ranks have the
 * same limits and the same bytes, so all say the same.
 */
#include "mpi/accelerate.h"

#define KIB INT64_C(1024)
#define NEVER                                                                  \
    {                                                                          \
        INT64_MAX, 0                                                           \
    }

/* The bytes that libhvd does, both included. */
struct limits {
    int64_t least, most;
};

static const struct limits blocking[HVD__ACCEL_KINDS] = {
    [HVD__ACCEL_ALLREDUCE] = {1, INT64_MAX},
    [HVD__ACCEL_REDUCE] = {128 * KIB,
                           INT64_MAX},     /* below, only its root waits */
    [HVD__ACCEL_BCAST] = {KIB, INT64_MAX}, /* its root does not wait below */
    [HVD__ACCEL_ALLGATHER] = {KIB, INT64_MAX},
    [HVD__ACCEL_ALLGATHERV] = {KIB, INT64_MAX},
    [HVD__ACCEL_REDUCE_SCATTER] = {KIB, INT64_MAX},
    [HVD__ACCEL_REDUCE_SCATTER_BLOCK] = {KIB, INT64_MAX},
    [HVD__ACCEL_ALLTOALL] = {KIB, INT64_MAX}, /* but see takes_blocks */
    [HVD__ACCEL_ALLTOALLV] = NEVER, /* its ranks would have to ask before */
    [HVD__ACCEL_BARRIER] = {0, INT64_MAX}};

static const struct limits nonblocking[HVD__ACCEL_KINDS] = {
    [HVD__ACCEL_ALLREDUCE] = {64 * KIB, INT64_MAX},
    [HVD__ACCEL_REDUCE] = NEVER,
    [HVD__ACCEL_BCAST] = NEVER,
    [HVD__ACCEL_ALLGATHER] = NEVER,
    [HVD__ACCEL_ALLGATHERV] = NEVER,
    [HVD__ACCEL_REDUCE_SCATTER] = {64 * KIB, INT64_MAX},
    [HVD__ACCEL_REDUCE_SCATTER_BLOCK] = {64 * KIB, INT64_MAX},
    [HVD__ACCEL_ALLTOALL] = NEVER,
    [HVD__ACCEL_ALLTOALLV] = NEVER,
    [HVD__ACCEL_BARRIER] = NEVER};

/* The same for blocking ones of communicators across hosts, over UCX. MPI is
 * faster at allreduces of 128 KiB and 1 MiB, at allgathers of 128 KiB on three
 * hosts, and at alltoalls of some sizes above these. */
static const struct limits across_hosts[HVD__ACCEL_KINDS] = {
    [HVD__ACCEL_ALLREDUCE] = {1, 64 * KIB},
    [HVD__ACCEL_REDUCE] = NEVER,
    [HVD__ACCEL_BCAST] = NEVER, /* its root does not wait */
    [HVD__ACCEL_ALLGATHER] = {1, 64 * KIB},
    [HVD__ACCEL_ALLGATHERV] = NEVER,
    [HVD__ACCEL_REDUCE_SCATTER] = NEVER,
    [HVD__ACCEL_REDUCE_SCATTER_BLOCK] = {1, INT64_MAX},
    [HVD__ACCEL_ALLTOALL] = {1, 32 * KIB},
    [HVD__ACCEL_ALLTOALLV] = NEVER,
    [HVD__ACCEL_BARRIER] = NEVER};

static bool pays_across_hosts(const struct hvd__accel_call *call, int64_t bytes)
{
    const struct limits *limits = &across_hosts[call->kind];

    return hvd__accel.is_over_ucx && !call->is_nonblocking &&
           bytes >= limits->least && bytes <= limits->most;
}

/* Many blocks that are too large together to go with the requests of libhvd
 * (HVD_SHM_SMALL, start.c), but small enough for MPI to send without asking,
 * are faster in MPI. */
static bool takes_blocks(const struct hvd__accel_call *call, int64_t bytes)
{
    const int64_t n = call->state->size;

    return bytes * n <= 64 * KIB || bytes >= 4 * KIB * n;
}

bool hvd__accel_pays(const struct hvd__accel_call *call, int64_t bytes)
{
    const struct limits *limits =
        &(call->is_nonblocking ? nonblocking : blocking)[call->kind];

    if (hvd__accel.takes_all)
        return true;
    if (!call->state->is_near)
        return pays_across_hosts(call, bytes);
    return bytes >= limits->least && bytes <= limits->most &&
           (call->kind != HVD__ACCEL_ALLTOALL || takes_blocks(call, bytes));
}

bool hvd__accel_takes(const struct hvd__accel_call *call, int64_t bytes)
{
    return hvd__accel_pays(call, bytes) &&
           hvd__accel_comm_ready(call->state, call->comm,
                                 !call->is_nonblocking);
}

/* Up to so many bytes, data is moved faster by libhvd even if it is packed. */
#define PACKED_MOST (32 * KIB)

bool hvd__accel_takes_moved(const struct hvd__accel_call *call, int64_t bytes,
                            bool packs)
{
    enum hvd__accel_large *large = &call->state->large[call->kind];
    int mine = packs, any = 1;

    if (!hvd__accel_takes(call, bytes))
        return false;
    if (hvd__accel.takes_all || bytes <= PACKED_MOST || !call->state->is_near)
        return true;
    if (*large == HVD__ACCEL_LARGE_UNKNOWN) {
        PMPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, call->comm);
        *large = any ? HVD__ACCEL_LARGE_PACKED : HVD__ACCEL_LARGE_FLAT;
    }
    return *large == HVD__ACCEL_LARGE_FLAT;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - from the arguments of a collective to a request. Each plan fills in
 * the call, which hvd__accel_enter has begun.
 */
#ifndef HVD_MPI_PLAN_H
#define HVD_MPI_PLAN_H

#include "mpi/accelerate.h"

/* ------------------------------------------------- what plans are made of */

/* Fills in the request, whose op is HVD_SUM. */
void hvd__plan_fill(struct hvd__accel_call *call, hvd_kind kind, const void *in,
                    void *out, int64_t count, hvd_dtype dtype);

/* Fills in a request that libhvd refuses: the other ranks have decided to do
 * this call by libhvd, and this rank cannot. libhvd tells them, and MPI does
 * the call on all. */
enum hvd__accel_plan hvd__plan_refuse(struct hvd__accel_call *call);

/* Takes memory, which hvd__accel_drop frees. Returns false if there is none. */
bool hvd__plan_take_room(struct hvd__accel_call *call, int64_t bytes);

/* Has the blocks of the layout unpacked afterwards. */
void hvd__plan_unpack_later(struct hvd__accel_call *call,
                            const struct hvd__accel_layout *layout,
                            const void *result, int64_t stride, int skip);

/* -------------------------------------------------------------- the plans */

enum hvd__accel_plan hvd__accel_plan_barrier(struct hvd__accel_call *call);

/* In the place of a root: all ranks get the result. */
enum { HVD__ACCEL_TO_ALL = -1000 };

enum hvd__accel_plan hvd__accel_plan_reduce(struct hvd__accel_call *call,
                                            const void *in, void *out,
                                            int count, MPI_Datatype type,
                                            MPI_Op op, int root);

/* counts is NULL if count is the same for all ranks. */
enum hvd__accel_plan hvd__accel_plan_reduce_scatter(
    struct hvd__accel_call *call, const void *in, void *out, const int *counts,
    int count, MPI_Datatype type, MPI_Op op);

enum hvd__accel_plan hvd__accel_plan_bcast(struct hvd__accel_call *call,
                                           void *buffer, int count,
                                           MPI_Datatype type, int root);

enum hvd__accel_plan hvd__accel_plan_allgather(struct hvd__accel_call *call,
                                               const void *in, int count,
                                               MPI_Datatype type, void *out,
                                               int out_count,
                                               MPI_Datatype out_type);

enum hvd__accel_plan hvd__accel_plan_allgatherv(
    struct hvd__accel_call *call, const void *in, int count, MPI_Datatype type,
    void *out, const int *counts, const int *displs, MPI_Datatype out_type);

enum hvd__accel_plan hvd__accel_plan_alltoall(struct hvd__accel_call *call,
                                              const void *in, int count,
                                              MPI_Datatype type, void *out,
                                              int out_count,
                                              MPI_Datatype out_type);

/* Asks the other ranks, and so waits for them, unless it says
 * HVD__ACCEL_LEFT. */
enum hvd__accel_plan hvd__accel_plan_alltoallv(
    struct hvd__accel_call *call, const void *in, const int *counts,
    const int *displs, MPI_Datatype type, void *out, const int *out_counts,
    const int *out_displs, MPI_Datatype out_type);

#endif

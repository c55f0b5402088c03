/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocking.c - the blocking collectives of MPI, as programs call them.
 */
#include "mpi/plan.h"

int MPI_Barrier(MPI_Comm comm)
{
    struct hvd__accel_call call;

    if (hvd__accel_enter(&call, HVD__ACCEL_BARRIER, comm) &&
        hvd__accel_run(&call, hvd__accel_plan_barrier(&call)))
        return call.code;
    return hvd__accel_left(&call, PMPI_Barrier(comm));
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype datatype, int root,
              MPI_Comm comm)
{
    struct hvd__accel_call call;

    if (hvd__accel_enter(&call, HVD__ACCEL_BCAST, comm) &&
        hvd__accel_run(
            &call, hvd__accel_plan_bcast(&call, buffer, count, datatype, root)))
        return call.code;
    return hvd__accel_left(&call,
                           PMPI_Bcast(buffer, count, datatype, root, comm));
}

int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count,
                  MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    struct hvd__accel_call call;

    if (hvd__accel_enter(&call, HVD__ACCEL_ALLREDUCE, comm) &&
        hvd__accel_run(&call,
                       hvd__accel_plan_reduce(&call, sendbuf, recvbuf, count,
                                              datatype, op, HVD__ACCEL_TO_ALL)))
        return call.code;
    return hvd__accel_left(
        &call, PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm));
}

int MPI_Reduce(const void *sendbuf, void *recvbuf, int count,
               MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm)
{
    struct hvd__accel_call call;

    if (hvd__accel_enter(&call, HVD__ACCEL_REDUCE, comm) &&
        hvd__accel_run(&call,
                       hvd__accel_plan_reduce(&call, sendbuf, recvbuf, count,
                                              datatype, op, root)))
        return call.code;
    return hvd__accel_left(
        &call, PMPI_Reduce(sendbuf, recvbuf, count, datatype, op, root, comm));
}

int MPI_Reduce_scatter(const void *sendbuf, void *recvbuf,
                       const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
                       MPI_Comm comm)
{
    struct hvd__accel_call call;

    if (hvd__accel_enter(&call, HVD__ACCEL_REDUCE_SCATTER, comm) &&
        hvd__accel_run(
            &call, hvd__accel_plan_reduce_scatter(&call, sendbuf, recvbuf,
                                                  recvcounts, 0, datatype, op)))
        return call.code;
    return hvd__accel_left(
        &call,
        PMPI_Reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm));
}

int MPI_Reduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount,
                             MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    struct hvd__accel_call call;

    if (hvd__accel_enter(&call, HVD__ACCEL_REDUCE_SCATTER_BLOCK, comm) &&
        hvd__accel_run(
            &call, hvd__accel_plan_reduce_scatter(&call, sendbuf, recvbuf, NULL,
                                                  recvcount, datatype, op)))
        return call.code;
    return hvd__accel_left(&call, PMPI_Reduce_scatter_block(sendbuf, recvbuf,
                                                            recvcount, datatype,
                                                            op, comm));
}

int MPI_Allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                  void *recvbuf, int recvcount, MPI_Datatype recvtype,
                  MPI_Comm comm)
{
    struct hvd__accel_call call;

    if (hvd__accel_enter(&call, HVD__ACCEL_ALLGATHER, comm) &&
        hvd__accel_run(&call, hvd__accel_plan_allgather(
                                  &call, sendbuf, sendcount, sendtype, recvbuf,
                                  recvcount, recvtype)))
        return call.code;
    return hvd__accel_left(&call,
                           PMPI_Allgather(sendbuf, sendcount, sendtype, recvbuf,
                                          recvcount, recvtype, comm));
}

int MPI_Allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                   void *recvbuf, const int recvcounts[], const int displs[],
                   MPI_Datatype recvtype, MPI_Comm comm)
{
    struct hvd__accel_call call;

    if (hvd__accel_enter(&call, HVD__ACCEL_ALLGATHERV, comm) &&
        hvd__accel_run(&call, hvd__accel_plan_allgatherv(
                                  &call, sendbuf, sendcount, sendtype, recvbuf,
                                  recvcounts, displs, recvtype)))
        return call.code;
    return hvd__accel_left(&call, PMPI_Allgatherv(sendbuf, sendcount, sendtype,
                                                  recvbuf, recvcounts, displs,
                                                  recvtype, comm));
}

int MPI_Alltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                 void *recvbuf, int recvcount, MPI_Datatype recvtype,
                 MPI_Comm comm)
{
    struct hvd__accel_call call;

    if (hvd__accel_enter(&call, HVD__ACCEL_ALLTOALL, comm) &&
        hvd__accel_run(
            &call, hvd__accel_plan_alltoall(&call, sendbuf, sendcount, sendtype,
                                            recvbuf, recvcount, recvtype)))
        return call.code;
    return hvd__accel_left(&call,
                           PMPI_Alltoall(sendbuf, sendcount, sendtype, recvbuf,
                                         recvcount, recvtype, comm));
}

int MPI_Alltoallv(const void *sendbuf, const int sendcounts[],
                  const int sdispls[], MPI_Datatype sendtype, void *recvbuf,
                  const int recvcounts[], const int rdispls[],
                  MPI_Datatype recvtype, MPI_Comm comm)
{
    struct hvd__accel_call call;

    if (hvd__accel_enter(&call, HVD__ACCEL_ALLTOALLV, comm) &&
        hvd__accel_run(&call, hvd__accel_plan_alltoallv(
                                  &call, sendbuf, sendcounts, sdispls, sendtype,
                                  recvbuf, recvcounts, rdispls, recvtype)))
        return call.code;
    return hvd__accel_left(&call, PMPI_Alltoallv(sendbuf, sendcounts, sdispls,
                                                 sendtype, recvbuf, recvcounts,
                                                 rdispls, recvtype, comm));
}

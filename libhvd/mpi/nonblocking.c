/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nonblocking.c - the nonblocking collectives of MPI, as programs call them.
 *
 * MPI_Ialltoallv is not among them: no rank knows how much the others send, and
 * to ask would be to wait.
 */
#include "mpi/plan.h"

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    struct hvd__accel_call call;

    if (hvd__accel_enter_nonblocking(&call, HVD__ACCEL_BARRIER, comm) &&
        hvd__accel_start(&call, hvd__accel_plan_barrier(&call), request))
        return call.code;
    return hvd__accel_left(&call, PMPI_Ibarrier(comm, request));
}

int MPI_Ibcast(void *buffer, int count, MPI_Datatype datatype, int root,
               MPI_Comm comm, MPI_Request *request)
{
    struct hvd__accel_call call;

    if (hvd__accel_enter_nonblocking(&call, HVD__ACCEL_BCAST, comm) &&
        hvd__accel_start(
            &call, hvd__accel_plan_bcast(&call, buffer, count, datatype, root),
            request))
        return call.code;
    return hvd__accel_left(
        &call, PMPI_Ibcast(buffer, count, datatype, root, comm, request));
}

int MPI_Iallreduce(const void *sendbuf, void *recvbuf, int count,
                   MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request)
{
    struct hvd__accel_call call;

    if (hvd__accel_enter_nonblocking(&call, HVD__ACCEL_ALLREDUCE, comm) &&
        hvd__accel_start(&call,
                         hvd__accel_plan_reduce(&call, sendbuf, recvbuf, count,
                                                datatype, op,
                                                HVD__ACCEL_TO_ALL),
                         request))
        return call.code;
    return hvd__accel_left(&call, PMPI_Iallreduce(sendbuf, recvbuf, count,
                                                  datatype, op, comm, request));
}

int MPI_Ireduce(const void *sendbuf, void *recvbuf, int count,
                MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm,
                MPI_Request *request)
{
    struct hvd__accel_call call;

    if (hvd__accel_enter_nonblocking(&call, HVD__ACCEL_REDUCE, comm) &&
        hvd__accel_start(&call,
                         hvd__accel_plan_reduce(&call, sendbuf, recvbuf, count,
                                                datatype, op, root),
                         request))
        return call.code;
    return hvd__accel_left(&call,
                           PMPI_Ireduce(sendbuf, recvbuf, count, datatype, op,
                                        root, comm, request));
}

int MPI_Ireduce_scatter(const void *sendbuf, void *recvbuf,
                        const int recvcounts[], MPI_Datatype datatype,
                        MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    struct hvd__accel_call call;

    if (hvd__accel_enter_nonblocking(&call, HVD__ACCEL_REDUCE_SCATTER, comm) &&
        hvd__accel_start(&call,
                         hvd__accel_plan_reduce_scatter(&call, sendbuf, recvbuf,
                                                        recvcounts, 0, datatype,
                                                        op),
                         request))
        return call.code;
    return hvd__accel_left(&call,
                           PMPI_Ireduce_scatter(sendbuf, recvbuf, recvcounts,
                                                datatype, op, comm, request));
}

int MPI_Ireduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount,
                              MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                              MPI_Request *request)
{
    struct hvd__accel_call call;

    if (hvd__accel_enter_nonblocking(&call, HVD__ACCEL_REDUCE_SCATTER_BLOCK,
                                     comm) &&
        hvd__accel_start(&call,
                         hvd__accel_plan_reduce_scatter(&call, sendbuf, recvbuf,
                                                        NULL, recvcount,
                                                        datatype, op),
                         request))
        return call.code;
    return hvd__accel_left(
        &call, PMPI_Ireduce_scatter_block(sendbuf, recvbuf, recvcount, datatype,
                                          op, comm, request));
}

int MPI_Iallgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                   void *recvbuf, int recvcount, MPI_Datatype recvtype,
                   MPI_Comm comm, MPI_Request *request)
{
    struct hvd__accel_call call;

    if (hvd__accel_enter_nonblocking(&call, HVD__ACCEL_ALLGATHER, comm) &&
        hvd__accel_start(&call,
                         hvd__accel_plan_allgather(&call, sendbuf, sendcount,
                                                   sendtype, recvbuf, recvcount,
                                                   recvtype),
                         request))
        return call.code;
    return hvd__accel_left(&call, PMPI_Iallgather(sendbuf, sendcount, sendtype,
                                                  recvbuf, recvcount, recvtype,
                                                  comm, request));
}

int MPI_Iallgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                    void *recvbuf, const int recvcounts[], const int displs[],
                    MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
    struct hvd__accel_call call;

    if (hvd__accel_enter_nonblocking(&call, HVD__ACCEL_ALLGATHERV, comm) &&
        hvd__accel_start(
            &call,
            hvd__accel_plan_allgatherv(&call, sendbuf, sendcount, sendtype,
                                       recvbuf, recvcounts, displs, recvtype),
            request))
        return call.code;
    return hvd__accel_left(&call, PMPI_Iallgatherv(sendbuf, sendcount, sendtype,
                                                   recvbuf, recvcounts, displs,
                                                   recvtype, comm, request));
}

int MPI_Ialltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                  void *recvbuf, int recvcount, MPI_Datatype recvtype,
                  MPI_Comm comm, MPI_Request *request)
{
    struct hvd__accel_call call;

    if (hvd__accel_enter_nonblocking(&call, HVD__ACCEL_ALLTOALL, comm) &&
        hvd__accel_start(&call,
                         hvd__accel_plan_alltoall(&call, sendbuf, sendcount,
                                                  sendtype, recvbuf, recvcount,
                                                  recvtype),
                         request))
        return call.code;
    return hvd__accel_left(&call,
                           PMPI_Ialltoall(sendbuf, sendcount, sendtype, recvbuf,
                                          recvcount, recvtype, comm, request));
}

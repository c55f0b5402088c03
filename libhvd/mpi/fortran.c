/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fortran.c - the same collectives for programs in Fortran, whose calls of Open
 * MPI's library for Fortran would reach PMPI without the functions for C.
 *
 * mpif.h and the module mpi call mpi_NAME_. The module mpi_f08 calls
 * ompi_NAME_f, by way of a function of its own. Handles are integers, and
 * MPI_IN_PLACE and MPI_BOTTOM are variables in a library that a program in C
 * does not have. Integers of Fortran are those of C here, so arrays of counts
 * are the same.
 */
#include <dlfcn.h>

#include "mpi/accelerate.h"

_Static_assert(_Generic((MPI_Fint)0, int : 1, default : 0),
               "arrays of counts are passed on");

/* Defines a function under both names. */
#define EXPORTED __attribute__((visibility("default")))
#define FORTRAN(name, ...)                                                     \
    EXPORTED void mpi_##name##_(__VA_ARGS__);                                  \
    EXPORTED void ompi_##name##_f(__VA_ARGS__)                                 \
        __attribute__((alias("mpi_" #name "_")));                              \
    void mpi_##name##_(__VA_ARGS__)

/* Returns the address of a variable of Fortran's; NULL: there is none. */
static void *find(const char *variable, _Atomic(void *) *found)
{
    static char nowhere;
    void *address = atomic_load(found);

    if (!address) {
        address = dlsym(RTLD_DEFAULT, variable);
        address = address ? address : &nowhere;
        atomic_store(found, address);
    }
    return address;
}

/* Returns what C calls the buffer. */
static void *buffer_of(void *buffer)
{
    static _Atomic(void *) in_place, bottom;

    if (buffer == find("mpi_fortran_in_place_", &in_place))
        return MPI_IN_PLACE;
    if (buffer == find("mpi_fortran_bottom_", &bottom))
        return MPI_BOTTOM;
    return buffer;
}

static MPI_Comm comm_of(const MPI_Fint *comm)
{
    return PMPI_Comm_f2c(*comm);
}

static MPI_Datatype type_of(const MPI_Fint *type)
{
    return PMPI_Type_f2c(*type);
}

static MPI_Op op_of(const MPI_Fint *op)
{
    return PMPI_Op_f2c(*op);
}

/* Gives the program the results of a call. */
static void give(MPI_Fint *ierr, int code)
{
    if (ierr)
        *ierr = code;
}

static void give_request(MPI_Fint *request, MPI_Request made, MPI_Fint *ierr,
                         int code)
{
    if (code == MPI_SUCCESS)
        *request = PMPI_Request_c2f(made);
    give(ierr, code);
}

FORTRAN(init, MPI_Fint *ierr)
{
    give(ierr, MPI_Init(NULL, NULL));
}

FORTRAN(init_thread, const MPI_Fint *required, MPI_Fint *provided,
        MPI_Fint *ierr)
{
    give(ierr, MPI_Init_thread(NULL, NULL, *required, provided));
}

FORTRAN(barrier, const MPI_Fint *comm, MPI_Fint *ierr)
{
    give(ierr, MPI_Barrier(comm_of(comm)));
}

FORTRAN(bcast, void *buffer, const MPI_Fint *count, const MPI_Fint *type,
        const MPI_Fint *root, const MPI_Fint *comm, MPI_Fint *ierr)
{
    give(ierr, MPI_Bcast(buffer_of(buffer), *count, type_of(type), *root,
                         comm_of(comm)));
}

FORTRAN(allreduce, void *in, void *out, const MPI_Fint *count,
        const MPI_Fint *type, const MPI_Fint *op, const MPI_Fint *comm,
        MPI_Fint *ierr)
{
    give(ierr, MPI_Allreduce(buffer_of(in), buffer_of(out), *count,
                             type_of(type), op_of(op), comm_of(comm)));
}

FORTRAN(reduce, void *in, void *out, const MPI_Fint *count,
        const MPI_Fint *type, const MPI_Fint *op, const MPI_Fint *root,
        const MPI_Fint *comm, MPI_Fint *ierr)
{
    give(ierr, MPI_Reduce(buffer_of(in), buffer_of(out), *count, type_of(type),
                          op_of(op), *root, comm_of(comm)));
}

FORTRAN(reduce_scatter, void *in, void *out, const MPI_Fint *counts,
        const MPI_Fint *type, const MPI_Fint *op, const MPI_Fint *comm,
        MPI_Fint *ierr)
{
    give(ierr, MPI_Reduce_scatter(buffer_of(in), buffer_of(out), counts,
                                  type_of(type), op_of(op), comm_of(comm)));
}

FORTRAN(reduce_scatter_block, void *in, void *out, const MPI_Fint *count,
        const MPI_Fint *type, const MPI_Fint *op, const MPI_Fint *comm,
        MPI_Fint *ierr)
{
    give(ierr,
         MPI_Reduce_scatter_block(buffer_of(in), buffer_of(out), *count,
                                  type_of(type), op_of(op), comm_of(comm)));
}

FORTRAN(allgather, void *in, const MPI_Fint *count, const MPI_Fint *type,
        void *out, const MPI_Fint *out_count, const MPI_Fint *out_type,
        const MPI_Fint *comm, MPI_Fint *ierr)
{
    give(ierr,
         MPI_Allgather(buffer_of(in), *count, type_of(type), buffer_of(out),
                       *out_count, type_of(out_type), comm_of(comm)));
}

FORTRAN(allgatherv, void *in, const MPI_Fint *count, const MPI_Fint *type,
        void *out, const MPI_Fint *out_counts, const MPI_Fint *displs,
        const MPI_Fint *out_type, const MPI_Fint *comm, MPI_Fint *ierr)
{
    give(ierr,
         MPI_Allgatherv(buffer_of(in), *count, type_of(type), buffer_of(out),
                        out_counts, displs, type_of(out_type), comm_of(comm)));
}

FORTRAN(alltoall, void *in, const MPI_Fint *count, const MPI_Fint *type,
        void *out, const MPI_Fint *out_count, const MPI_Fint *out_type,
        const MPI_Fint *comm, MPI_Fint *ierr)
{
    give(ierr,
         MPI_Alltoall(buffer_of(in), *count, type_of(type), buffer_of(out),
                      *out_count, type_of(out_type), comm_of(comm)));
}

FORTRAN(alltoallv, void *in, const MPI_Fint *counts, const MPI_Fint *displs,
        const MPI_Fint *type, void *out, const MPI_Fint *out_counts,
        const MPI_Fint *out_displs, const MPI_Fint *out_type,
        const MPI_Fint *comm, MPI_Fint *ierr)
{
    give(ierr, MPI_Alltoallv(buffer_of(in), counts, displs, type_of(type),
                             buffer_of(out), out_counts, out_displs,
                             type_of(out_type), comm_of(comm)));
}

FORTRAN(ibarrier, const MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierr)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code = MPI_Ibarrier(comm_of(comm), &made);

    give_request(request, made, ierr, code);
}

FORTRAN(ibcast, void *buffer, const MPI_Fint *count, const MPI_Fint *type,
        const MPI_Fint *root, const MPI_Fint *comm, MPI_Fint *request,
        MPI_Fint *ierr)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code = MPI_Ibcast(buffer_of(buffer), *count, type_of(type), *root,
                          comm_of(comm), &made);

    give_request(request, made, ierr, code);
}

FORTRAN(iallreduce, void *in, void *out, const MPI_Fint *count,
        const MPI_Fint *type, const MPI_Fint *op, const MPI_Fint *comm,
        MPI_Fint *request, MPI_Fint *ierr)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code = MPI_Iallreduce(buffer_of(in), buffer_of(out), *count,
                              type_of(type), op_of(op), comm_of(comm), &made);

    give_request(request, made, ierr, code);
}

FORTRAN(ireduce, void *in, void *out, const MPI_Fint *count,
        const MPI_Fint *type, const MPI_Fint *op, const MPI_Fint *root,
        const MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierr)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code = MPI_Ireduce(buffer_of(in), buffer_of(out), *count, type_of(type),
                           op_of(op), *root, comm_of(comm), &made);

    give_request(request, made, ierr, code);
}

FORTRAN(ireduce_scatter, void *in, void *out, const MPI_Fint *counts,
        const MPI_Fint *type, const MPI_Fint *op, const MPI_Fint *comm,
        MPI_Fint *request, MPI_Fint *ierr)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code =
        MPI_Ireduce_scatter(buffer_of(in), buffer_of(out), counts,
                            type_of(type), op_of(op), comm_of(comm), &made);

    give_request(request, made, ierr, code);
}

FORTRAN(ireduce_scatter_block, void *in, void *out, const MPI_Fint *count,
        const MPI_Fint *type, const MPI_Fint *op, const MPI_Fint *comm,
        MPI_Fint *request, MPI_Fint *ierr)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code = MPI_Ireduce_scatter_block(buffer_of(in), buffer_of(out), *count,
                                         type_of(type), op_of(op),
                                         comm_of(comm), &made);

    give_request(request, made, ierr, code);
}

FORTRAN(iallgather, void *in, const MPI_Fint *count, const MPI_Fint *type,
        void *out, const MPI_Fint *out_count, const MPI_Fint *out_type,
        const MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierr)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code =
        MPI_Iallgather(buffer_of(in), *count, type_of(type), buffer_of(out),
                       *out_count, type_of(out_type), comm_of(comm), &made);

    give_request(request, made, ierr, code);
}

FORTRAN(iallgatherv, void *in, const MPI_Fint *count, const MPI_Fint *type,
        void *out, const MPI_Fint *out_counts, const MPI_Fint *displs,
        const MPI_Fint *out_type, const MPI_Fint *comm, MPI_Fint *request,
        MPI_Fint *ierr)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code = MPI_Iallgatherv(buffer_of(in), *count, type_of(type),
                               buffer_of(out), out_counts, displs,
                               type_of(out_type), comm_of(comm), &made);

    give_request(request, made, ierr, code);
}

FORTRAN(ialltoall, void *in, const MPI_Fint *count, const MPI_Fint *type,
        void *out, const MPI_Fint *out_count, const MPI_Fint *out_type,
        const MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierr)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code =
        MPI_Ialltoall(buffer_of(in), *count, type_of(type), buffer_of(out),
                      *out_count, type_of(out_type), comm_of(comm), &made);

    give_request(request, made, ierr, code);
}

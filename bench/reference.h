/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference.h - the same collectives by raw MPI, as a program without libhvd
 * would call them: blocking, on MPI_COMM_WORLD.
 */
#ifndef BENCH_REFERENCE_H
#define BENCH_REFERENCE_H

#include "types.h"

#include <mpi.h>

struct reference {
    MPI_Datatype datatype;
    MPI_Op op;
    int owns_op;
    int average; /* a sum, and then a division by nranks */
    int nranks;
    int root;
    const struct bench_dtype *type;
};

/* op NULL: broadcast. MPI is initialised. */
void reference_init(struct reference *reference, const struct bench_dtype *type,
                    const struct bench_op *op, int nranks, int root);
void reference_fini(struct reference *reference);

/* in == out: in place (MPI_IN_PLACE). An MPI code. */
int reference_allreduce(const struct reference *reference, const void *in,
                        void *out, int64_t count);
int reference_broadcast(const struct reference *reference, void *buffer,
                        int64_t count);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference.h - runs calls by raw MPI, as a program without libhvd would:
 * blocking, on MPI_COMM_WORLD.
 */
#ifndef BENCH_REFERENCE_H
#define BENCH_REFERENCE_H

#include "tables/call.h"

#include <mpi.h>

struct reference {
    MPI_Datatype datatype;
    MPI_Op op;
    int owns_op;
    int average; /* divides a sum by nranks */
};

/* Prepares for a call. MPI must be initialised. */
void reference_init(struct reference *reference, const struct call *call);
void reference_fini(struct reference *reference);

/* Runs the call. It is in place (MPI_IN_PLACE) if in is at the place in out
 * that call_input_of returns. Returns an MPI code. */
int reference_run(const struct reference *reference, const struct call *call,
                  const void *in, void *out);

#endif

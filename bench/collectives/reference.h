/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference.h - the same collectives by raw MPI, as a program without libhvd
 * would call them: blocking, on MPI_COMM_WORLD.
 */
#ifndef BENCH_REFERENCE_H
#define BENCH_REFERENCE_H

#include "tables/call.h"

#include <mpi.h>

struct reference {
    MPI_Datatype datatype;
    MPI_Op op;
    int owns_op;
    int average; /* a sum, and then a division by nranks */
};

/* MPI is initialised. */
void reference_init(struct reference *reference, const struct call *call);
void reference_fini(struct reference *reference);

/* in lies in out as call_input_of says: in place (MPI_IN_PLACE). An MPI
 * code. */
int reference_run(const struct reference *reference, const struct call *call,
                  const void *in, void *out);

#endif

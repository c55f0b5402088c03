/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank 1 aborts the job ("abort"), or is killed ("kill"), while the others are
 * in a collective.
 */
#include <mpi.h>
#include <signal.h>
#include <string.h>

int main(int argc, char **argv)
{
    int rank, one = 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 30; i++)
        MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 1 && argc > 1 && strcmp(argv[1], "kill") == 0)
        raise(SIGKILL);
    if (rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 7);
    MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}

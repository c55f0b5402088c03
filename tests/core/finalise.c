/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finalise.c - starts MPI and ends it while libhvd is still running on all
 * ranks, or on this one alone. process.bats compiles it.
 */
#include <hvd_mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    int alone = argc > 1 && strcmp(argv[1], "alone") == 0, level, status;
    float x = 1;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    if (hvd_init_mpi(alone ? MPI_COMM_SELF : MPI_COMM_WORLD) < 0 ||
        hvd_allreduce(&x, &x, 1, HVD_FLOAT32, HVD_SUM) < 0) {
        fprintf(stderr, "%s\n", hvd_last_error());
        return 9;
    }
    MPI_Finalize();
    status = hvd_allreduce(&x, &x, 1, HVD_FLOAT32, HVD_SUM);
    printf("%g, then %d\n", (double)x, status);
    return 0;
}

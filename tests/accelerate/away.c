/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank that has left a collective calls no MPI until the others have left it,
 * too. They say so by a file, which is not MPI's. If what they need from it
 * moved only inside of its calls, this program would hang, and the test runner
 * would end it.
 *
 * MPI itself promises no such thing. Only collectives that libhvd does by UCX
 * are tested so: HVD_MPI=all.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum { LARGE = 1 << 18 };

static int rank, size, failures;

/* The files are in the folder in which the program was started, and all hosts
 * of the test share it. */
static void path_of(char *path, size_t bytes, int round, int of)
{
    snprintf(path, bytes, "away.%d.%d", round, of);
}

static void say_done(int round)
{
    char path[64];
    FILE *file;

    path_of(path, sizeof path, round, rank);
    file = fopen(path, "w");
    if (!file || fclose(file) != 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
}

/* Waits without MPI. */
static void await(int round, int of)
{
    const struct timespec pause = {.tv_nsec = 100000};
    struct stat status;
    char path[64];

    path_of(path, sizeof path, round, of);
    while (stat(path, &status) != 0)
        nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
    int round = 0, all = 0, level;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int count = 1; count <= LARGE; count *= 64)
        for (int away = 0; away < size; away++, round++) {
            double *values = malloc((size_t)count * sizeof *values);
            char path[64];

            for (int i = 0; i < count; i++)
                values[i] = 1;
            MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_SUM,
                          MPI_COMM_WORLD);
            say_done(round);
            for (int i = 0; rank == away && i < size; i++)
                await(round, i);
            for (int i = 0; i < count; i++)
                failures += values[i] != size;
            free(values);
            PMPI_Barrier(MPI_COMM_WORLD);
            path_of(path, sizeof path, round, rank);
            remove(path);
        }
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d wrong\n", all);
    MPI_Finalize();
    return all != 0;
}

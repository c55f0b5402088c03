/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that initialised MPI for one thread only: libhvd must not have a
 * thread that calls MPI, and everything moves inside the program's own calls.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "ranks.h"

TEST(there_is_no_thread)
{
    ck_assert_int_eq(ranks_thread("hvd-progress"), 0);
    ck_assert_int_gt(ranks_thread("tests-mpi"), 0); /* the main one's name */
}

TEST(blocking_calls_work)
{
    double value = ranks_rank();

    for (int i = 0; i < 100; i++) {
        value = ranks_rank();
        ck_hvd(hvd_allreduce(&value, &value, 1, HVD_FLOAT64, HVD_MAX));
        ck_assert(value == ranks_size() - 1);
        ck_hvd(hvd_barrier());
    }
}

TEST(submitted_ones_move_in_poll_and_wait)
{
    enum { N = 30, COUNT = 20011 };
    static float values[N][COUNT];
    hvd_handle handles[N];
    char name[32];

    for (int i = 0; i < N; i++) {
        int k = ranks_rank() % 2 ? N - 1 - i : i;

        for (int j = 0; j < COUNT; j++)
            values[k][j] = (float)(k + j % 7);
        sprintf(name, "f%d", k);
        ck_hvd(hvd_allreduce_async(name, values[k], values[k], COUNT,
                                   HVD_FLOAT32, HVD_SUM, &handles[k]));
    }
    while (hvd_poll(handles[0]) == 0)
        continue;
    for (int k = 0; k < N; k++) {
        ck_hvd(hvd_wait(handles[k]));
        for (int j = 0; j < COUNT; j++)
            ck_assert(values[k][j] == (float)((k + j % 7) * ranks_size()));
    }
}

RANKS_TEST_MAIN(PROGRAM_STARTS_MPI_FUNNELED, "mpi_funneled")

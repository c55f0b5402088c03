/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that initialised MPI for one thread only: libhvd must not have a
 * thread that calls MPI. Over MPI everything moves inside the program's own
 * calls; over UCX a thread moves it, which calls no MPI.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

/* One rank needs no thread. */
static bool has_thread(void)
{
    const char *transport = getenv("HVD_TRANSPORT");

    return transport && strcmp(transport, "ucx") == 0 && ranks_size() > 1;
}

TEST(there_is_no_thread_that_could_call_mpi)
{
    ck_assert_int_eq(ranks_thread("hvd-progress") > 0, has_thread());
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

/* Rank 0 tells the others that the sum is there. They are in MPI until then,
 * and do not call libhvd. */
TEST(a_thread_moves_them_while_the_program_is_in_mpi)
{
    enum { COUNT = 1 << 20 };
    static float values[COUNT];
    hvd_handle handle;
    int token = 0;

    for (int count = 1; has_thread() && count <= COUNT; count *= 32) {
        for (int i = 0; i < count; i++)
            values[i] = 1;
        ck_hvd(hvd_allreduce_async("m", values, values, count, HVD_FLOAT32,
                                   HVD_SUM, &handle));
        if (ranks_rank() == 0)
            ck_hvd(hvd_wait(handle));
        MPI_Bcast(&token, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (ranks_rank() != 0)
            ck_hvd(hvd_wait(handle));
        for (int i = 0; i < count; i++)
            ck_assert(values[i] == (float)ranks_size());
    }
}

/* The thread is not to end a world: only the program may then call MPI. */
TEST(worlds_end_and_start_again)
{
    for (int i = 0; i < 10; i++) {
        float value = 1;

        ck_hvd(hvd_allreduce(&value, &value, 1, HVD_FLOAT32, HVD_SUM));
        ck_assert(value == (float)ranks_size());
        ck_hvd(hvd_shutdown());
        ck_hvd(hvd_init());
    }
}

RANKS_TEST_MAIN(PROGRAM_STARTS_MPI_FUNNELED, "mpi_funneled")

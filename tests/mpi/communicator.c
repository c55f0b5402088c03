/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libhvd works together with a program that uses MPI itself: on a communicator
 * of the program's, with its messages in between, and at a thread level at
 * which libhvd must not have a thread of its own.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hvd_mpi.h"
#include "ranks.h"

/* The even ranks are a world, and the odd ranks are another at the same time.
 */
TEST(worlds_of_a_part_of_the_ranks)
{
    MPI_Comm half;
    int32_t value = ranks_rank(), want = 0;
    int n = 0, mine = ranks_rank() % 2;

    ck_hvd(hvd_shutdown());
    MPI_Comm_split(MPI_COMM_WORLD, mine, -ranks_rank(), &half);
    ck_hvd(hvd_init_mpi(half));
    MPI_Comm_free(&half); /* libhvd has a copy */
    for (int rank = mine; rank < ranks_size(); rank += 2, n++)
        want += rank;
    ck_assert_int_eq(hvd_size(), n);
    /* The key orders the ranks by falling numbers. */
    ck_assert_int_eq(hvd_rank(), n - 1 - ranks_rank() / 2);
    ck_hvd(hvd_allreduce(&value, &value, 1, HVD_INT32, HVD_SUM));
    ck_assert_int_eq(value, want);
    ck_hvd(hvd_shutdown());
    ck_hvd(hvd_init());
    ck_assert_int_eq(hvd_size(), ranks_size());
}

/* The same worlds are made by lists of ranks in falling order. */
TEST(worlds_of_lists_of_ranks)
{
    int32_t value = ranks_rank(), want = 0, list[64];
    int n = 0, mine = ranks_rank() % 2;

    ck_hvd(hvd_shutdown());
    for (int rank = ranks_size() - 1; rank >= 0; rank--)
        if (rank % 2 == mine) {
            list[n++] = rank;
            want += rank;
        }
    ck_hvd(hvd_init_ranks(list, n));
    ck_assert_int_eq(hvd_size(), n);
    ck_assert_int_eq(hvd_rank(), ranks_rank() / 2);
    ck_hvd(hvd_allreduce(&value, &value, 1, HVD_INT32, HVD_SUM));
    ck_assert_int_eq(value, want);
    ck_hvd(hvd_init_ranks(list, 1)); /* it is initialised */
    ck_assert_int_eq(hvd_size(), n);
    ck_hvd(hvd_shutdown());
    ck_hvd(hvd_init());
    ck_assert_int_eq(hvd_size(), ranks_size());
}

TEST(lists_that_are_none)
{
    int n = ranks_size(), mine = ranks_rank();
    const int32_t twice[] = {mine, mine}, beyond[] = {mine, n},
                  negative[] = {-1}, other[] = {(mine + 1) % n};
    char words[64];

    ck_hvd(hvd_shutdown());
    ck_hvd_fails(hvd_init_ranks(twice, 0), HVD_ERR_ARGUMENT);
    ck_error_says("0 of them");
    ck_hvd_fails(hvd_init_ranks(NULL, 2), HVD_ERR_ARGUMENT);
    ck_error_says("NULL");
    ck_hvd_fails(hvd_init_ranks(twice, 2), HVD_ERR_ARGUMENT);
    snprintf(words, sizeof words, "rank %d is there twice", mine);
    ck_error_says(words);
    ck_hvd_fails(hvd_init_ranks(beyond, 2), HVD_ERR_ARGUMENT);
    snprintf(words, sizeof words, "no rank %d: mpirun started 0 to %d", n,
             n - 1);
    ck_error_says(words);
    ck_hvd_fails(hvd_init_ranks(negative, 1), HVD_ERR_ARGUMENT);
    ck_error_says("no rank -1");
    if (n > 1) {
        ck_hvd_fails(hvd_init_ranks(other, 1), HVD_ERR_ARGUMENT);
        snprintf(words, sizeof words, "this process is rank %d of %d", mine, n);
        ck_error_says(words);
    }
    ck_assert_int_eq(hvd_is_initialized(), 0);
    ck_hvd(hvd_init());
}

TEST(a_handle_of_fortran)
{
    ck_hvd(hvd_shutdown());
    ck_hvd(hvd_init_fint(MPI_Comm_c2f(MPI_COMM_WORLD)));
    ck_assert_int_eq(hvd_rank(), ranks_rank());
    ck_hvd(hvd_barrier());
    ck_hvd(hvd_shutdown());
    ck_hvd(hvd_init());
}

TEST(communicators_that_are_none)
{
    ck_hvd(hvd_shutdown());
    ck_hvd_fails(hvd_init_mpi(MPI_COMM_NULL), HVD_ERR_ARGUMENT);
    ck_error_says("null");
    ck_hvd(hvd_init());
    ck_hvd(hvd_barrier());
}

/* The program sends messages with the tags that libhvd uses, on the
 * communicator of which libhvd has a copy. */
TEST(the_programs_messages_are_its_own)
{
    int next = (ranks_rank() + 1) % ranks_size();
    int before = (ranks_rank() + ranks_size() - 1) % ranks_size();

    for (int tag = 0; tag < 40; tag++) {
        MPI_Request request;
        float sum = 1;
        int sent = 100 * tag + ranks_rank(), got = -1;

        MPI_Irecv(&got, 1, MPI_INT, before, tag, MPI_COMM_WORLD, &request);
        ck_hvd(hvd_allreduce(&sum, &sum, 1, HVD_FLOAT32, HVD_SUM));
        MPI_Send(&sent, 1, MPI_INT, next, tag, MPI_COMM_WORLD);
        ck_hvd(hvd_barrier());
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        ck_assert_int_eq(got, 100 * tag + before);
        ck_assert(sum == (float)ranks_size());
    }
}

RANKS_TEST_MAIN(PROGRAM_STARTS_MPI, "mpi_communicator")

/* SPDX-License-Identifier: Apache-2.0 */
/* A broadcast gives all ranks the root's data, for every root and dtype, and a
 * barrier waits for all ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ranks.h"

static unsigned char byte_of(int root, int64_t i)
{
    return (unsigned char)(i * 31 + root * 7 + i / 251 + 1);
}

static void check_one(hvd_dtype dtype, int64_t count, int root)
{
    size_t bytes = (size_t)(count * hvd_dtype_size(dtype));
    unsigned char *buffer = malloc(bytes + 1);

    ck_assert(buffer != NULL);
    memset(buffer, 0xee, bytes + 1);
    for (size_t i = 0; i < bytes && ranks_rank() == root; i++)
        buffer[i] = byte_of(root, (int64_t)i);
    ck_hvd(hvd_broadcast(buffer, count, dtype, root));
    for (size_t i = 0; i < bytes; i++)
        if (buffer[i] != byte_of(root, (int64_t)i))
            ck_abort_msg("rank %d: %s [%lld] from %d: byte %zu is %d",
                         ranks_rank(), hvd_dtype_name(dtype), (long long)count,
                         root, i, buffer[i]);
    ck_assert_msg(buffer[bytes] == 0xee, "wrote past the end");
    free(buffer);
}

TEST(every_root_and_dtype)
{
    static const int64_t counts[] = {0, 1, 3, 1000, 70001};

    for (int root = 0; root < ranks_size(); root++)
        for (hvd_dtype dtype = 0; dtype < HVD_NUM_DTYPES; dtype++)
            for (int c = 0; c < 5; c++)
                check_one(dtype, counts[c], root);
}

/* The tensor has several segments and a remainder. */
TEST(large_ones)
{
    check_one(HVD_UINT8, (5 << 20) + 12345, ranks_size() - 1);
    check_one(HVD_FLOAT64, (1 << 20) + 1, 0);
}

TEST(many_at_once_from_different_roots)
{
    enum { N = 50 };
    int64_t values[N];
    hvd_handle handles[N];
    char name[32];

    for (int i = 0; i < N; i++) {
        int k = ranks_rank() % 2 ? N - 1 - i : i;

        values[k] = ranks_rank() == k % ranks_size() ? 1000 + k : -1;
        sprintf(name, "b%d", k);
        ck_hvd(hvd_broadcast_async(name, &values[k], 1, HVD_INT64,
                                   k % ranks_size(), &handles[k]));
    }
    for (int i = 0; i < N; i++)
        ck_hvd(hvd_wait(handles[i]));
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(values[i], 1000 + i);
}

/* No rank leaves the barrier before the last has come: the last one comes late,
 * and the others see in the next sum that it had written by then. */
TEST(a_barrier_waits_for_the_last)
{
    for (int round = 0; round < 20; round++) {
        int late = round % ranks_size();
        struct timespec before, after;
        int64_t came, left;

        clock_gettime(CLOCK_MONOTONIC, &before);
        if (ranks_rank() == late)
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        clock_gettime(CLOCK_MONOTONIC, &before);
        ck_hvd(hvd_barrier());
        clock_gettime(CLOCK_MONOTONIC, &after);
        /* One clock on one host: the last arrival is before every exit. */
        came = before.tv_sec * INT64_C(1000000000) + before.tv_nsec;
        left = after.tv_sec * INT64_C(1000000000) + after.tv_nsec;
        ck_hvd(hvd_allreduce(&came, &came, 1, HVD_INT64, HVD_MAX));
        ck_assert_msg(left >= came, "rank %d left %lld ns early", ranks_rank(),
                      (long long)(came - left));
    }
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_broadcast")

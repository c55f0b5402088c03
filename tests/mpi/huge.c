/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors of more than 2^31 elements, which fit into no int, go through shared
 * memory and over MPI. This takes some GiB a rank, so it runs only with
 * HVD_TEST_FULL.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ranks.h"

static const int64_t count = (INT64_C(1) << 31) + 4099;

static unsigned char *take(int64_t bytes)
{
    unsigned char *memory = malloc((size_t)bytes);

    ck_assert_msg(memory != NULL, "no memory for %lld bytes", (long long)bytes);
    return memory;
}

/* Returns whether all n bytes are equal. */
static bool uniform(const unsigned char *data, int64_t n)
{
    return memcmp(data, data + 1, (size_t)n - 1) == 0;
}

/* The first half of every tensor is 1, the second 2. */
static void fill(unsigned char *data, int factor)
{
    memset(data, factor, (size_t)(count / 2));
    memset(data + count / 2, 2 * factor, (size_t)(count - count / 2));
}

static void check(const unsigned char *data, int factor)
{
    ck_assert_int_eq(data[0], factor);
    ck_assert_int_eq(data[count - 1], 2 * factor);
    ck_assert(uniform(data, count / 2));
    ck_assert(uniform(data + count / 2, count - count / 2));
}

static void move(void)
{
    unsigned char *data = take(count), *all;
    int64_t n = ranks_size(), each = count / n + 1, counts[16];

    fill(data, 1 + ranks_rank());
    ck_hvd(hvd_allreduce(data, data, count, HVD_UINT8, HVD_SUM));
    check(data, (int)(n * (n + 1) / 2));
    fill(data, ranks_rank() == 1 ? 7 : 1);
    ck_hvd(hvd_broadcast(data, count, HVD_UINT8, 1));
    check(data, 7);
    free(data);

    /* All shares together have more elements than an int can count. */
    each += ranks_rank();
    data = take(each);
    all = take(n * (count / n + n));
    memset(data, 1 + ranks_rank(), (size_t)each);
    ck_hvd(hvd_allgatherv(data, each, all, n * (count / n + n), counts,
                          HVD_UINT8));
    for (int64_t rank = 0, at = 0; rank < n; at += counts[rank++]) {
        ck_assert_int_eq(counts[rank], count / n + 1 + rank);
        ck_assert_int_eq(all[at], 1 + rank);
        ck_assert(uniform(all + at, counts[rank]));
    }
    free(data);
    free(all);
}

TEST(more_than_an_int_of_elements)
{
    int64_t free_bytes =
        (int64_t)sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE);
    int64_t needed = (ranks_size() + 2) * (count + (INT64_C(1) << 30)), least;

    if (!getenv("HVD_TEST_FULL"))
        return;
    ck_hvd(hvd_allreduce(&free_bytes, &least, 1, HVD_INT64, HVD_MIN));
    if (least < needed) {
        if (ranks_rank() == 0)
            printf("# skipped: %lld MiB are free, %lld needed\n",
                   (long long)least >> 20, (long long)needed >> 20);
        return;
    }
    move();
    ranks_restart_with("HVD_SHM_SIZE", "0");
    move();
    ranks_restart_with("HVD_SHM_SIZE", NULL);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_huge")

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that share no memory agree by order, too, with one message from each
 * rank to each other. HVD_SHM_SIZE=0 makes ranks of one host such ranks.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ranks.h"

enum { MANY = 3000, FEW = 200 };

static uint64_t own_seed, common_seed = 7;

/* Delays a rank by a time of its own, so that no two ranks go on at the same
 * moment. */
static void dawdle(void)
{
    uint64_t ns = ranks_random(&own_seed) % 400000;

    if (ns < 100000)
        nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

static float term(int rank, int i, int64_t k)
{
    return (float)((rank + 1) * (i % 7 + 1) + k % 5);
}

static float sum_of(int i, int64_t k)
{
    float sum = 0;

    for (int rank = 0; rank < ranks_size(); rank++)
        sum += term(rank, i, k);
    return sum;
}

static void check_values(const char *what, int i, const float *values,
                         int64_t count, bool is_sum)
{
    for (int64_t k = 0; k < count; k++) {
        float right = is_sum ? sum_of(i, k) : term(ranks_size() - 1, i, k);

        if (values[k] != right)
            ck_abort_msg("rank %d: %s %d: [%lld] is %g, not %g", ranks_rank(),
                         what, i, (long long)k, (double)values[k],
                         (double)right);
    }
}

static hvd_metrics metrics_now(void)
{
    hvd_metrics metrics = {.size = sizeof metrics};

    ck_hvd(hvd_get_metrics(&metrics));
    return metrics;
}

/* A request that was submitted, with its buffers. */
struct request {
    int64_t count;
    float *values;
    hvd_handle handle;
};

static void begin(struct request *request, int i, int64_t count, bool sum)
{
    char name[32];

    snprintf(name, sizeof name, "%s.%d", sum ? "sum" : "root", i);
    request->count = count;
    request->values = malloc((size_t)(count + 1) * sizeof(float));
    for (int64_t k = 0; k < count; k++)
        request->values[k] = term(ranks_rank(), i, k);
    if (sum)
        ck_hvd(hvd_allreduce_async(name, request->values, request->values,
                                   count, HVD_FLOAT32, HVD_SUM,
                                   &request->handle));
    else
        ck_hvd(hvd_broadcast_async(name, request->values, count, HVD_FLOAT32,
                                   ranks_size() - 1, &request->handle));
}

static void end(struct request *request, int i, bool sum)
{
    ck_hvd(hvd_wait(request->handle));
    check_values(sum ? "sum" : "broadcast", i, request->values, request->count,
                 sum);
    free(request->values);
}

TEST(apart)
{
    own_seed = 1000 + (uint64_t)ranks_rank();
    ranks_restart_with("HVD_SHM_SIZE", "0");
}

/* The data that goes with the slots, of all ranks or of one alone, soon takes
 * more room than there is; the others must learn in time that it is free again.
 */
TEST(room_is_found_for_what_goes_with_slots)
{
    static struct request requests[MANY];

    for (int sum = 0; sum < 2; sum++) {
        for (int i = 0; i < MANY; i++)
            begin(&requests[i], i, i % 250, sum);
        for (int i = 0; i < MANY; i++)
            end(&requests[i], i, sum);
    }
}

TEST(a_message_to_each_is_all_it_takes)
{
    int64_t others = ranks_size() - 1, sent;
    hvd_metrics before;
    float value = 1;

    for (int i = 0; i < FEW / 2; i++)
        ck_hvd(hvd_allreduce(&value, &value, 1, HVD_FLOAT32, HVD_MAX));
    before = metrics_now();
    for (int i = 0; i < FEW; i++)
        ck_hvd(hvd_allreduce(&value, &value, 1, HVD_FLOAT32, HVD_MAX));
    sent = metrics_now().messages - before.messages;
    /* A few more messages say that the others' data has been read. */
    ck_assert_int_ge(sent, others * FEW);
    ck_assert_int_le(sent, others * (FEW + 4));
}

/* Large requests are fused into the same batches on all ranks, although the
 * ranks are never at the same point. */
TEST(batches_are_the_same_everywhere)
{
    struct request requests[FEW];
    int64_t mine[3], all[3 * 64];
    hvd_metrics before = metrics_now(), after;

    for (int i = 0; i < FEW; i++) {
        dawdle();
        begin(&requests[i], i, 10000 + i, true);
    }
    for (int i = 0; i < FEW; i++)
        end(&requests[i], i, true);
    after = metrics_now();
    mine[0] = after.batches - before.batches;
    mine[1] = after.batched - before.batched;
    mine[2] = after.fused - before.fused;
    ck_hvd(hvd_allgather(mine, all, 3, HVD_INT64));
    for (int rank = 0; rank < ranks_size(); rank++)
        ck_assert_msg(memcmp(mine, all + 3 * rank, sizeof mine) == 0,
                      "rank %d: %lld batches, %lld fused; rank %d: %lld, %lld",
                      ranks_rank(), (long long)mine[0], (long long)mine[2],
                      rank, (long long)all[3 * rank],
                      (long long)all[3 * rank + 2]);
    ck_assert_int_eq(mine[1], FEW);
    if (ranks_size() > 1)
        ck_assert_int_gt(mine[2], 0);
}

static void shuffle(int *order, uint64_t *seed)
{
    for (int i = 0; i < FEW; i++)
        order[i] = i;
    for (int i = FEW - 1; i > 0; i--) {
        int k = (int)(ranks_random(seed) % (uint64_t)(i + 1)), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
}

/* Requests that are agreed on, but not carried out yet, when ordered mode ends
 * are carried out before those that are agreed on by name; ordered mode begins
 * again. */
TEST(orders_end_and_begin_again)
{
    static const int64_t counts[] = {0, 1, 6, 7, 300, 9000, 40000, 5};
    struct request requests[FEW];
    int order[FEW];

    for (int round = 0; round < 12; round++) {
        bool differs = ranks_random(&common_seed) % 2 == 0;

        shuffle(order, differs ? &own_seed : &common_seed);
        for (int i = 0; i < FEW; i++) {
            int k = order[i];

            if (ranks_random(&own_seed) % 8 == 0)
                dawdle();
            begin(&requests[k], k, counts[k % 8], k % 3 != 0);
        }
        for (int i = 0; i < FEW; i++)
            end(&requests[i], i, i % 3 != 0);
        if (round % 4 == 3)
            ck_hvd(hvd_join(NULL));
    }
}

TEST(together_again)
{
    ranks_restart_with("HVD_SHM_SIZE", NULL);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_apart")

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that share no memory agree by order, too, in rounds of recursive
 * doubling. HVD_SHM_SIZE=0 makes each rank of this host a host of its own.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ranks.h"

enum { MANY = 3000, FEW = 200, SIZES = 14 };

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

/* Returns how many messages this rank sends in a round: one to each of its k
 * partners, if 2^k is the largest power of two up to the number of ranks. Each
 * rank beyond that folds into the next: among the first ranks, those of even
 * number send one message, and those of odd number send the result back. */
static int64_t messages_of_a_round(void)
{
    int k = 0, rank = ranks_rank(), folded;

    while (2 << k <= ranks_size())
        k++;
    folded = ranks_size() - (1 << k);
    if (rank >= 2 * folded)
        return k;
    return rank % 2 ? k + 1 : 1;
}

TEST(a_round_is_all_it_takes)
{
    hvd_metrics before;
    float value = 1;

    for (int i = 0; i < FEW / 2; i++)
        ck_hvd(hvd_allreduce(&value, &value, 1, HVD_FLOAT32, HVD_MAX));
    before = metrics_now();
    for (int i = 0; i < FEW; i++)
        ck_hvd(hvd_allreduce(&value, &value, 1, HVD_FLOAT32, HVD_MAX));
    ck_assert_int_eq(metrics_now().messages - before.messages,
                     FEW * messages_of_a_round());
}

/* Data goes with a slot if it has up to 4 KiB of all ranks together, or up to
 * 32 KiB as a sum; up to 24 bytes lie in the slot. */
static int64_t size_of(int i)
{
    const int64_t share = 4096 / ranks_size();
    const int64_t sizes[] = {0,     1,         24,    25,   share - 1,
                             share, share + 1, 4096,  4097, 32767,
                             32768, 32769,     61440, 61441};

    return sizes[i % SIZES];
}

static unsigned char byte_of(int rank, int i, int64_t k)
{
    return (unsigned char)(rank * 37 + i * 11 + k % 251 + 1);
}

/* A request on bytes, on its way. */
struct bytes {
    int64_t n;
    unsigned char *in, *out;
    hvd_handle handle;
};

static const hvd_kind kinds[] = {HVD_ALLREDUCE, HVD_BROADCAST, HVD_ALLGATHER,
                                 HVD_ALLTOALL};

static int64_t result_bytes(const struct bytes *b, hvd_kind kind)
{
    return kind == HVD_ALLGATHER ? b->n * ranks_size() : b->n;
}

static void begin_bytes(struct bytes *b, hvd_kind kind, int i)
{
    hvd_request request;
    char name[32];
    size_t most;

    b->n = size_of(i);
    if (kind == HVD_ALLTOALL)
        b->n = (b->n + ranks_size() - 1) / ranks_size() * ranks_size();
    most = (size_t)result_bytes(b, kind);
    b->in = malloc((size_t)b->n + 1);
    b->out = malloc(most + 1);
    for (int64_t k = 0; k < b->n; k++)
        b->in[k] = byte_of(ranks_rank(), i, k);
    memset(b->out, 0xee, most + 1);
    if (kind == HVD_BROADCAST && i % ranks_size() == ranks_rank())
        memcpy(b->out, b->in, most);
    snprintf(name, sizeof name, "bytes.%d.%d", (int)kind, i);
    hvd_request_init(&request, sizeof request);
    request.kind = kind;
    request.dtype = HVD_UINT8;
    request.op = kind == HVD_ALLREDUCE ? HVD_SUM : HVD_AVERAGE;
    request.root = kind == HVD_BROADCAST ? i % ranks_size() : 0;
    request.ndim = 1;
    request.shape = &b->n;
    request.name = name;
    request.input = b->in;
    request.output = b->out;
    ck_hvd(hvd_submit(&request, &b->handle));
}

static unsigned char right_byte(const struct bytes *b, hvd_kind kind, int i,
                                int64_t k)
{
    int64_t part = b->n / ranks_size();
    int sum = 0;

    if (kind == HVD_BROADCAST)
        return byte_of(i % ranks_size(), i, k);
    if (kind == HVD_ALLGATHER)
        return byte_of((int)(k / b->n), i, k % b->n);
    if (kind == HVD_ALLTOALL)
        return byte_of((int)(k / part), i, ranks_rank() * part + k % part);
    for (int rank = 0; rank < ranks_size(); rank++)
        sum += byte_of(rank, i, k);
    return (unsigned char)sum;
}

static void end_bytes(struct bytes *b, hvd_kind kind, int i)
{
    int64_t n = result_bytes(b, kind);

    ck_hvd(hvd_wait(b->handle));
    for (int64_t k = 0; k < n; k++)
        if (b->out[k] != right_byte(b, kind, i, k))
            ck_abort_msg("rank %d: %s of %lld bytes: [%lld] is %d, not %d",
                         ranks_rank(), hvd_kind_name(kind), (long long)b->n,
                         (long long)k, b->out[k], right_byte(b, kind, i, k));
    if (b->out[n] != 0xee)
        ck_abort_msg("rank %d: %s of %lld bytes: written too far", ranks_rank(),
                     hvd_kind_name(kind), (long long)b->n);
    free(b->in);
    free(b->out);
}

TEST(every_size_one_by_one)
{
    for (int i = 0; i < 4 * 2 * SIZES; i++) {
        struct bytes b;

        begin_bytes(&b, kinds[i / (2 * SIZES)], i);
        end_bytes(&b, kinds[i / (2 * SIZES)], i);
    }
}

TEST(every_size_many_at_once)
{
    static struct bytes all[300];

    for (int i = 0; i < 300; i++) {
        if (i % 50 == 0)
            dawdle();
        begin_bytes(&all[i], kinds[i / 3 % 4], i);
    }
    for (int i = 0; i < 300; i++)
        end_bytes(&all[i], kinds[i / 3 % 4], i);
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

/* Worlds end in the middle of an epoch, after one, and before the first. */
TEST(worlds_end_in_every_state)
{
    for (int round = 0; round < 24; round++) {
        struct request requests[8];

        for (int i = 0; round % 2 && i < 8; i++) {
            int k = round % 8 == 1 ? (i + ranks_rank()) % 8 : i;

            begin(&requests[k], k, round % 3 == 0 ? 20000 : k, true);
        }
        for (int i = 0; round % 2 && i < 8; i++)
            end(&requests[i], i, true);
        if (round % 5 == 2)
            ck_hvd(hvd_join(NULL));
        if (round % 6 == 3)
            ck_hvd(hvd_barrier());
        dawdle();
        ranks_restart_with("HVD_SHM_SIZE", "0");
    }
}

TEST(together_again)
{
    ranks_restart_with("HVD_SHM_SIZE", NULL);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_apart")

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocking allreduce is compared, for every dtype and op, with a
 * computation that knows all ranks' data, at sizes on both sides of every
 * change of algorithm.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expected.h"
#include "ranks.h"

static const hvd_op ops[] = {HVD_AVERAGE, HVD_SUM, HVD_MIN, HVD_MAX,
                             HVD_PRODUCT};
enum { NOPS = sizeof ops / sizeof *ops };

/* offset bytes of misalignment. */
static void check_one(hvd_dtype dtype, hvd_op op, int64_t count, int in_place,
                      size_t offset)
{
    size_t bytes = (size_t)(count * hvd_dtype_size(dtype)) + offset;
    char *memory = ranks_memory(bytes), *other = ranks_memory(bytes);
    char *in = memory + offset, *out = in_place ? in : other + offset;
    struct expected given = expected_tensor(dtype, op, ranks_rank());
    struct expected result = expected_result(dtype, op, ranks_size());
    int64_t wrong;
    double want;

    expected_fill(&given, 0, count, in);
    ck_hvd(hvd_allreduce(in, out, count, dtype, op));
    wrong = expected_difference(&result, 0, count, out, &want);
    if (wrong >= 0)
        ck_abort_msg("rank %d: %s %s [%lld] element %lld: %.9g, not %.9g",
                     ranks_rank(), hvd_dtype_name(dtype), hvd_op_name(op),
                     (long long)count, (long long)wrong,
                     element_get(dtype, out, wrong), want);
    if (!in_place && expected_difference(&given, 0, count, in, &want) >= 0)
        ck_abort_msg("the input has changed");
    hvd_free(memory);
    hvd_free(other);
}

static void check_sizes(const int64_t *counts, int ncounts)
{
    for (hvd_dtype dtype = 0; dtype < HVD_NUM_DTYPES; dtype++)
        for (int o = 0; o < NOPS; o++)
            for (int c = 0; c < ncounts; c++)
                if (dtype != HVD_BOOL || ops[o] != HVD_AVERAGE)
                    check_one(dtype, ops[o], counts[c], c % 2, 0);
}

TEST(small_ones_are_right)
{
    static const int64_t counts[] = {0, 1, 2, 7, 8, 64, 1023, 5000};

    check_sizes(counts, 8);
}

TEST(large_ones_are_right)
{
    static const int64_t counts[] = {99991};

    check_sizes(counts, 1);
}

/* The tensor has more segments than are under way at once, and is not a
 * multiple of any. */
TEST(very_large_ones_are_right)
{
    check_one(HVD_FLOAT32, HVD_SUM, 5000011, 1, 0);
    check_one(HVD_FLOAT64, HVD_AVERAGE, 2500009, 0, 0);
    check_one(HVD_INT8, HVD_MAX, 7000003, 0, 0);
}

TEST(misaligned_ones_are_right)
{
    for (hvd_dtype dtype = 0; dtype < HVD_NUM_DTYPES; dtype++)
        for (size_t offset = 1; offset < 8; offset += 3) {
            check_one(dtype, HVD_SUM, 333, 0, offset);
            check_one(dtype, HVD_MIN, 70001, 1, offset);
        }
}

/* Above 2^53 a double would lose the last bits. */
TEST(int64_keeps_every_bit)
{
    int n = ranks_size();
    int64_t base = INT64_C(0x123456789abcdef), value, want = 0;
    int64_t mine = base / n + ranks_rank();

    for (int rank = 0; rank < n; rank++)
        want += base / n + rank;
    ck_hvd(hvd_allreduce(&mine, &value, 1, HVD_INT64, HVD_SUM));
    ck_assert_int_eq(value, want);
    ck_hvd(hvd_allreduce(&mine, &value, 1, HVD_INT64, HVD_AVERAGE));
    ck_assert_int_eq(value, want / n);
    mine = -mine;
    ck_hvd(hvd_allreduce(&mine, &value, 1, HVD_INT64, HVD_AVERAGE));
    ck_assert_int_eq(value, -(want / n));
    /* The sum of these does not fit; their average does. */
    mine = INT64_MAX - ranks_rank();
    ck_hvd(hvd_allreduce(&mine, &value, 1, HVD_INT64, HVD_AVERAGE));
    ck_assert_int_eq(value, INT64_MAX - (n - 1) / 2 - ((n - 1) % 2 ? 1 : 0));
}

static int scaled(hvd_dtype dtype, const void *in, void *out, int64_t count,
                  double prescale, double postscale)
{
    hvd_request request = ranks_sum(dtype, in, out, &count);

    request.prescale = prescale;
    request.postscale = postscale;
    return ranks_run(&request);
}

TEST(scales_apply_before_and_after)
{
    int n = ranks_size();
    float in[3], out[3];
    int32_t whole[2], result[2];

    for (int i = 0; i < 3; i++)
        in[i] = (float)(ranks_rank() + i);
    ck_hvd(scaled(HVD_FLOAT32, in, out, 3, 0.5, 4));
    for (int i = 0; i < 3; i++)
        ck_assert(out[i] == (float)(2 * (n * (n - 1) / 2 + n * i)));
    whole[0] = 10 + ranks_rank();
    whole[1] = -7;
    ck_hvd(scaled(HVD_INT32, whole, result, 2, 1, 0.5));
    ck_assert_int_eq(result[0], (10 * n + n * (n - 1) / 2) / 2);
    ck_assert_int_eq(result[1], -7 * n / 2);
}

TEST(nan_and_infinity_reach_everyone)
{
    int last = ranks_size() - 1;
    float in[3] = {ranks_rank() == last ? NAN : 1,
                   ranks_rank() == last ? INFINITY : 1, 1};
    float out[3];

    for (int o = 0; o < NOPS; o++) {
        ck_hvd(hvd_allreduce(in, out, 3, HVD_FLOAT32, ops[o]));
        ck_assert_msg(isnan(out[0]), "%s", hvd_op_name(ops[o]));
        if (ops[o] != HVD_MIN || last == 0)
            ck_assert(isinf(out[1]));
        ck_assert(out[2] == (ops[o] == HVD_SUM ? (float)(last + 1) : 1.0f));
    }
}

/* Sums of floats depend on their order: all ranks must have used the same. */
TEST(all_ranks_get_the_same_bits)
{
    enum { COUNT = 100003 };
    float *data = malloc(COUNT * sizeof *data);
    float *first = malloc(COUNT * sizeof *data);
    uint64_t state = 88172645463325252u + (uint64_t)ranks_rank();

    ck_assert(data && first);
    for (int i = 0; i < COUNT; i++)
        data[i] = (float)((double)ranks_random(&state) * 0x1p-64 - 0.5);
    ck_hvd(hvd_allreduce(data, data, COUNT, HVD_FLOAT32, HVD_AVERAGE));
    memcpy(first, data, COUNT * sizeof *data);
    ck_hvd(hvd_broadcast(first, COUNT, HVD_FLOAT32, 0));
    ck_assert_mem_eq(first, data, COUNT * sizeof *data);
    free(data);
    free(first);
}

/* Adds up the random numbers of all ranks in the order of the ranks. */
static void sum_in_order(float *sums, int64_t count)
{
    for (int rank = 0; rank < ranks_size(); rank++) {
        uint64_t state = 2463534242u + (uint64_t)rank;

        for (int64_t i = 0; i < count; i++) {
            float x = (float)((double)ranks_random(&state) * 0x1p-64 - 0.5);

            sums[i] = rank ? sums[i] + x : x;
        }
    }
}

/* The order is that of the ranks, whichever way the data goes on one host. */
TEST(sums_are_in_the_order_of_the_ranks)
{
    enum { MOST = 100003 };
    static const int64_t counts[] = {1, 13, 700, 9001, MOST};
    static float want[MOST];
    float *data = ranks_memory(sizeof want);

    for (int c = 0; c < 5 && hvd_local_size() == hvd_size(); c++) {
        uint64_t state = 2463534242u + (uint64_t)ranks_rank();

        for (int64_t i = 0; i < counts[c]; i++)
            data[i] = (float)((double)ranks_random(&state) * 0x1p-64 - 0.5);
        sum_in_order(want, counts[c]);
        ck_hvd(hvd_allreduce(data, data, counts[c], HVD_FLOAT32, HVD_SUM));
        ck_assert_mem_eq(data, want, (size_t)counts[c] * sizeof *data);
    }
    hvd_free(data);
}

static int64_t sent_bytes(void)
{
    hvd_metrics metrics = {.size = sizeof metrics};

    ck_hvd(hvd_get_metrics(&metrics));
    return metrics.sent_bytes;
}

/* A rank sends 2 (n - 1) / n of the tensor over MPI, which is the least
 * possible. It sends nothing in memory that all ranks share, and no more than
 * over MPI if only some ranks share memory. */
TEST(what_must_be_sent_is)
{
    const int64_t n = ranks_size(), count = n * 100000;
    const int64_t all = 2 * (n - 1) * count / n * 4;
    char *given = getenv("HVD_SHM_SIZE");
    float *data = malloc((size_t)count * sizeof *data);
    int64_t before;

    given = given ? strdup(given) : NULL;
    ck_assert(data != NULL);
    memset(data, 0, (size_t)count * sizeof *data);
    for (int shared = 1; shared >= 0; shared--) {
        ranks_restart_with("HVD_SHM_SIZE", shared ? NULL : "0");
        before = sent_bytes();
        ck_hvd(hvd_allreduce(data, data, count, HVD_FLOAT32, HVD_SUM));
        if (!shared || hvd_local_size() == n)
            ck_assert_int_eq(sent_bytes() - before, shared ? 0 : all);
        else
            ck_assert_int_le(sent_bytes() - before, all);
    }
    ranks_restart_with("HVD_SHM_SIZE", given);
    free(given);
    free(data);
}

TEST(the_default_is_the_average)
{
    double value = 3.0 * (ranks_rank() + 1);
    uint8_t flag = 1;
    hvd_request request;

    hvd_request_init(&request, sizeof request);
    request.dtype = HVD_FLOAT64;
    request.input = request.output = &value;
    ck_hvd(ranks_run(&request));
    ck_assert(value == 1.5 * (ranks_size() + 1));
    request.dtype = HVD_BOOL;
    request.input = request.output = &flag;
    ck_hvd_fails(ranks_run(&request), HVD_ERR_ARGUMENT);
    ck_error_says("bool has no average");
    ck_error_says("sum or max");
}

TEST(a_scalar_has_no_dimensions)
{
    double value = ranks_rank() + 1;
    int n = ranks_size();
    hvd_request request = ranks_sum(HVD_FLOAT64, &value, &value, NULL);

    request.name = "loss";
    ck_hvd(ranks_run(&request));
    ck_assert(value == n * (n + 1) / 2);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_allreduce")

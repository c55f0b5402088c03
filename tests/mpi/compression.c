/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of compression on the wire: casts, top-k, and schemes that the program
 * brings.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

static int reduce(const char *name, const void *in, void *out, int64_t count,
                  hvd_dtype dtype, hvd_op op, int32_t compression)
{
    hvd_request request = ranks_sum(dtype, in, out, &count);

    request.name = name;
    request.op = op;
    request.compression = compression;
    return ranks_run(&request);
}

/* ------------------------------------------------------------------- casts */

static double given(int rank, int64_t i)
{
    return (double)((i * 13 + rank * 7) % 32) - 15;
}

static void check_cast(hvd_dtype dtype, int64_t count, hvd_op op,
                       int32_t compression)
{
    void *in = malloc((size_t)(count * hvd_dtype_size(dtype)) + 1);
    void *out = malloc((size_t)(count * hvd_dtype_size(dtype)) + 1);
    int n = ranks_size();

    for (int64_t i = 0; i < count; i++)
        element_put(dtype, in, i, given(ranks_rank(), i));
    ck_hvd(reduce("cast", in, out, count, dtype, op, compression));
    for (int64_t i = 0; i < count; i++) {
        double want = 0, got = element_get(dtype, out, i);

        for (int rank = 0; rank < n; rank++)
            want += given(rank, i);
        if (op == HVD_AVERAGE)
            want /= n;
        /* Small whole numbers are exact in both; an average is rounded. */
        if (fabs(got - want) > (op == HVD_SUM ? 0 : fabs(want) * 0x1p-8 + 1e-9))
            ck_abort_msg("%s [%lld] element %lld: %.9g, not %.9g",
                         hvd_dtype_name(dtype), (long long)count, (long long)i,
                         got, want);
    }
    free(in);
    free(out);
}

TEST(casts_of_small_numbers_are_exact)
{
    for (int32_t c = HVD_COMPRESSION_NONE; c <= HVD_COMPRESSION_BF16; c++) {
        check_cast(HVD_FLOAT32, 1, HVD_SUM, c);
        check_cast(HVD_FLOAT32, 100003, HVD_SUM, c);
        check_cast(HVD_FLOAT64, 5001, HVD_SUM, c);
        check_cast(HVD_FLOAT32, 777, HVD_AVERAGE, c);
        check_cast(HVD_FLOAT64, 0, HVD_SUM, c);
    }
}

TEST(casts_lose_what_they_must)
{
    float value = 1 + 0x1p-12f, result;

    ck_hvd(reduce(NULL, &value, &result, 1, HVD_FLOAT32, HVD_AVERAGE,
                  HVD_COMPRESSION_FP16));
    ck_assert(result == 1);
    ck_hvd(reduce(NULL, &value, &result, 1, HVD_FLOAT32, HVD_AVERAGE,
                  HVD_COMPRESSION_NONE));
    ck_assert(result == value);
    value = 1e30f;
    ck_hvd(reduce(NULL, &value, &result, 1, HVD_FLOAT32, HVD_AVERAGE,
                  HVD_COMPRESSION_BF16));
    ck_assert(result > 0.99e30f && result < 1.01e30f);
    ck_hvd(reduce(NULL, &value, &result, 1, HVD_FLOAT32, HVD_AVERAGE,
                  HVD_COMPRESSION_FP16));
    ck_assert(isinf(result));
}

TEST(larger_than_the_fusion_buffer)
{
    ranks_restart_with("HVD_FUSION_THRESHOLD", "4K");
    check_cast(HVD_FLOAT32, 50021, HVD_SUM, HVD_COMPRESSION_BF16);
    check_cast(HVD_FLOAT64, 50021, HVD_SUM, HVD_COMPRESSION_FP16);
    ranks_restart_with("HVD_FUSION_THRESHOLD", NULL);
}

/* The values are exact in neither type. Over several hosts, only the sums of
 * hosts are narrowed. */
static void check_rounded(int64_t count, hvd_op op, int32_t compression,
                          bool in_place)
{
    float *in = malloc((size_t)count * sizeof *in);
    float *out = in_place ? in : malloc((size_t)count * sizeof *out);
    int32_t *least = malloc((size_t)count * sizeof *least);
    int32_t *most = malloc((size_t)count * sizeof *most);
    /* Each of n + 1 roundings loses at most half a unit of the sum of sizes. */
    double unit = compression == HVD_COMPRESSION_FP16 ? 0x1p-11 : 0x1p-8;
    int n = ranks_size();

    for (int64_t i = 0; i < count; i++)
        in[i] = sinf((float)i + 0.37f * (float)ranks_rank());
    ck_hvd(reduce("rounded", in, out, count, HVD_FLOAT32, op, compression));
    for (int64_t i = 0; i < count; i++) {
        double want = 0, size = 0;

        for (int rank = 0; rank < n; rank++) {
            double value = (double)sinf((float)i + 0.37f * (float)rank);
            want += value;
            size += fabs(value);
        }
        if (op == HVD_AVERAGE)
            want /= n, size /= n;
        if (!(fabs((double)out[i] - want) <= (n + 1) * unit * size + 1e-6))
            ck_abort_msg("element %lld: %.9g, not %.9g", (long long)i,
                         (double)out[i], want);
    }
    ck_hvd(hvd_allreduce(out, least, count, HVD_INT32, HVD_MIN));
    ck_hvd(hvd_allreduce(out, most, count, HVD_INT32, HVD_MAX));
    ck_assert_mem_eq(least, most, (size_t)count * sizeof *least);
    free(least);
    free(most);
    if (!in_place)
        free(out);
    free(in);
}

TEST(rounded_sums_are_the_same_on_all_ranks)
{
    for (int32_t c = HVD_COMPRESSION_FP16; c <= HVD_COMPRESSION_BF16; c++) {
        check_rounded(17, HVD_SUM, c, false);
        check_rounded(17003, HVD_AVERAGE, c, true);
        check_rounded(300007, HVD_SUM, c, true);
        check_rounded(1000003, HVD_AVERAGE, c, false);
    }
}

/* -------------------------------------------------------------------- top-k */

/* Top-k sends the rest later: after many steps of a constant gradient, the sum
 * of all updates equals that of the gradients, except for the residual. */
TEST(topk_loses_nothing_in_the_end)
{
    enum { COUNT = 1000, STEPS = 400 };
    static float given_now[COUNT], got[COUNT];
    static double total[COUNT];
    int n = ranks_size();

    memset(total, 0, sizeof total);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < COUNT; i++)
            given_now[i] = (float)((i % 10) + 1 + ranks_rank()) / 8;
        ck_hvd(reduce("gradient", given_now, got, COUNT, HVD_FLOAT32, HVD_SUM,
                      HVD_COMPRESSION_TOPK));
        for (int i = 0; i < COUNT; i++)
            total[i] += (double)got[i];
    }
    for (int i = 0; i < COUNT; i++) {
        double want = 0, most = 0;

        for (int rank = 0; rank < n; rank++) {
            want += ((i % 10) + 1 + rank) / 8.0 * STEPS;
            /* The residual is bounded: at 1 % a step, no value waits for more
             * than about 100 steps times the ratio of the largest value to it.
             */
            most += (10 + 1 + rank) / 8.0 * 120;
        }
        if (total[i] > want + 1e-3 || total[i] < want - most)
            ck_abort_msg("element %d: %g of %g has arrived", i, total[i], want);
    }
}

TEST(topk_sends_the_largest)
{
    float values[200] = {0}, got[200];
    int n = ranks_size();

    /* 1 % of 200 is 2: the two largest by magnitude. */
    values[17] = -5;
    values[18] = 4;
    values[19] = 3;
    ck_hvd(reduce("largest", values, got, 200, HVD_FLOAT32, HVD_AVERAGE,
                  HVD_COMPRESSION_TOPK));
    for (int i = 0; i < 200; i++)
        ck_assert(got[i] == (i == 17 ? -5.0f : i == 18 ? 4.0f : 0.0f));
    memset(values, 0, sizeof values);
    ck_hvd(reduce("largest", values, got, 200, HVD_FLOAT32, HVD_SUM,
                  HVD_COMPRESSION_TOPK));
    ck_assert(got[19] == 3.0f * (float)n);
    /* A name that is used for another size begins without a residual. */
    ck_hvd(reduce("largest", values, got, 199, HVD_FLOAT32, HVD_SUM,
                  HVD_COMPRESSION_TOPK));
    ck_assert(got[19] == 0);
    ck_hvd(reduce("largest", values, got, 0, HVD_FLOAT32, HVD_SUM,
                  HVD_COMPRESSION_TOPK));
}

/* ----------------------------------------------------------- one of our own */

/* The ways in which the compressor is broken. */
enum { WELL, FAILING, TOO_LONG, STATELESS };

/* The test's scheme stores 8 bits a value, linear, with error feedback: the
 * scale comes first, then the bytes. */
static int64_t most_bytes(void *context, int64_t count)
{
    (void)context;
    return count + (int64_t)sizeof(float);
}

static int64_t state_bytes(void *context, int64_t count)
{
    if (context && *(int *)context == STATELESS)
        return -1;
    return count * (int64_t)sizeof(float);
}

static int64_t encode(void *context, void *state, const float *values,
                      int64_t count, void *code)
{
    float *left = state, scale = 0;
    int8_t *bytes = (int8_t *)code + sizeof scale;

    /* Fails, or returns too much, if the test asks for it. */
    if (context && *(int *)context == FAILING)
        return HVD_ERR_UNSUPPORTED;
    if (context && *(int *)context == TOO_LONG)
        return most_bytes(context, count) + 1;
    for (int64_t i = 0; i < count; i++)
        scale = fmaxf(scale, fabsf(left[i] + values[i]));
    scale = scale > 0 ? scale / 127 : 1;
    memcpy(code, &scale, sizeof scale);
    for (int64_t i = 0; i < count; i++) {
        float value = left[i] + values[i];

        bytes[i] = (int8_t)lrintf(value / scale);
        left[i] = value - (float)bytes[i] * scale;
    }
    return count + (int64_t)sizeof scale;
}

static int add(void *context, const void *code, int64_t bytes, float *sum,
               int64_t count)
{
    const int8_t *values = (const int8_t *)code + sizeof(float);
    float scale;

    (void)context;
    if (bytes != count + (int64_t)sizeof scale)
        return HVD_ERR_INTERNAL;
    memcpy(&scale, code, sizeof scale);
    for (int64_t i = 0; i < count; i++)
        sum[i] += (float)values[i] * scale;
    return HVD_OK;
}

static int broken;

static int register_as(const char *name)
{
    const hvd_compressor compressor = {
        .size = sizeof compressor,
        .name = name,
        .context = &broken,
        .max_bytes = most_bytes,
        .state_bytes = state_bytes,
        .encode = encode,
        .add = add,
    };

    return hvd_register_compressor(&compressor);
}

static int registered(void)
{
    static int number;

    if (number == 0)
        number = register_as("int8");
    return number;
}

TEST(a_scheme_of_the_programs_own)
{
    enum { COUNT = 3001, STEPS = 50 };
    static float values[COUNT], got[COUNT];
    static double total[COUNT];
    int number = registered(), n = ranks_size();

    ck_assert_int_ge(number, HVD_COMPRESSION_REGISTERED);
    memset(total, 0, sizeof total);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < COUNT; i++)
            values[i] = sinf((float)(i + ranks_rank()));
        ck_hvd(reduce("mine", values, got, COUNT, HVD_FLOAT32, HVD_AVERAGE,
                      number));
        for (int i = 0; i < COUNT; i++)
            total[i] += (double)got[i];
    }
    for (int i = 0; i < COUNT; i++) {
        double want = 0;

        for (int rank = 0; rank < n; rank++)
            want += sin((double)(i + rank)) * STEPS / n;
        /* With feedback, the error of all steps together is no larger than that
         * of one. */
        if (fabs(total[i] - want) > 2.0 / 127 + 1e-3)
            ck_abort_msg("element %d: %g, not %g", i, total[i], want);
    }
}

TEST(a_scheme_that_fails_is_an_error_of_all)
{
    float value = 1, got;
    int number = registered(), last = ranks_size() - 1;

    for (int i = 0; i < 3; i++) {
        static const struct {
            int how, status;
            const char *text;
        } cases[] = {
            {FAILING, HVD_ERR_UNSUPPORTED, "'int8' failed"},
            {TOO_LONG, HVD_ERR_ARGUMENT,
             "'int8' made a code of 6 bytes, and max_bytes had said 5"},
            {STATELESS, HVD_ERR_UNSUPPORTED, "'int8' cannot do 1 values"},
        };

        broken = ranks_rank() == last ? cases[i].how : WELL;
        ck_hvd_fails(
            reduce("mine", &value, &got, 1, HVD_FLOAT32, HVD_SUM, number),
            ranks_rank() == last ? cases[i].status : HVD_ERR_PEER);
        ck_error_says(cases[i].text);
        broken = WELL;
        ck_hvd(reduce("mine", &value, &got, 1, HVD_FLOAT32, HVD_SUM, number));
        ck_assert(fabsf(got - (float)ranks_size()) < 1e-5f);
    }
}

static int64_t encode_plainly(void *context, void *state, const float *values,
                              int64_t count, void *code)
{
    int64_t bytes = count * (int64_t)sizeof *values;

    (void)context;
    if (state)
        return HVD_ERR_INTERNAL;
    if (count > 0)
        memcpy(code, values, (size_t)bytes);
    return bytes;
}

static int add_plainly(void *context, const void *code, int64_t bytes,
                       float *sum, int64_t count)
{
    (void)context;
    (void)bytes;
    for (int64_t i = 0; i < count; i++)
        sum[i] += ((const float *)code)[i];
    return HVD_OK;
}

/* A scheme may have no state, and encode tensors without elements or buffers.
 */
TEST(a_scheme_may_keep_nothing)
{
    const hvd_compressor compressor = {
        .size = sizeof compressor,
        .name = "plain",
        .max_bytes = state_bytes,
        .encode = encode_plainly,
        .add = add_plainly,
    };
    int number = hvd_register_compressor(&compressor), n = ranks_size();
    float value = 3, got = 0;

    ck_hvd(number);
    ck_hvd(reduce("p", &value, &got, 1, HVD_FLOAT32, HVD_SUM, number));
    ck_assert(got == 3.0f * (float)n);
    ck_hvd(reduce("p", NULL, NULL, 0, HVD_FLOAT32, HVD_SUM, number));
    ck_hvd(
        reduce("p", NULL, NULL, 0, HVD_FLOAT32, HVD_SUM, HVD_COMPRESSION_TOPK));
}

TEST(what_cannot_be_compressed)
{
    int32_t whole = 1;
    double wide = 1;
    float value = 1;

    ck_hvd_fails(reduce("c", &whole, &whole, 1, HVD_INT32, HVD_SUM,
                        HVD_COMPRESSION_FP16),
                 HVD_ERR_ARGUMENT);
    ck_error_says("fp16 does not compress int32");
    ck_hvd_fails(reduce("c", &wide, &wide, 1, HVD_FLOAT64, HVD_SUM,
                        HVD_COMPRESSION_TOPK),
                 HVD_ERR_ARGUMENT);
    ck_hvd_fails(reduce("c", &value, &value, 1, HVD_FLOAT32, HVD_MAX,
                        HVD_COMPRESSION_BF16),
                 HVD_ERR_UNSUPPORTED);
    ck_hvd_fails(reduce("c", &value, &value, 1, HVD_FLOAT32, HVD_SUM, 99),
                 HVD_ERR_ARGUMENT);
    ck_error_says("compression 99");
    ck_hvd_fails(hvd_register_compressor(NULL), HVD_ERR_ARGUMENT);
    ck_hvd_fails(register_as("half\tfloat"), HVD_ERR_ARGUMENT);
    ck_error_says("control character 0x09");
    if (ranks_size() == 1)
        return;
    ck_hvd_fails(
        reduce("c", &value, &value, 1, HVD_FLOAT32, HVD_SUM,
               ranks_rank() ? HVD_COMPRESSION_BF16 : HVD_COMPRESSION_FP16),
        HVD_ERR_MISMATCH);
    ck_error_says("compressed by fp16");
    ck_error_says("compressed by bf16");
}

/* This test is the last: from here on the ranks' tables differ. */
TEST(schemes_that_not_all_know)
{
    int rank = ranks_rank(), last = ranks_size() - 1, number = registered();
    char name[32], text[64];
    float value = 1;

    if (last == 0)
        return;
    snprintf(name, sizeof name, "of rank %d", rank);
    number = register_as(name);
    ck_assert_int_gt(number, HVD_COMPRESSION_REGISTERED);
    ck_hvd_fails(reduce("c", &value, &value, 1, HVD_FLOAT32, HVD_SUM, number),
                 HVD_ERR_MISMATCH);
    snprintf(text, sizeof text, "scheme %d (here of rank 0)", number);
    ck_error_says(text);
    number = rank == last ? register_as("of the last") : HVD_COMPRESSION_NONE;
    ck_hvd_fails(reduce("c", &value, &value, 1, HVD_FLOAT32, HVD_SUM, number),
                 HVD_ERR_MISMATCH);
    ck_error_says("not registered here");
    ck_hvd(reduce("c", &value, &value, 1, HVD_FLOAT32, HVD_SUM,
                  HVD_COMPRESSION_NONE));
    ck_assert(value == (float)ranks_size());
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_compression")

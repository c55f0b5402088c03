/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between the floating types, against the compiler's own. */
#include <stdlib.h>
#include <string.h>

#include "floats.h"
#include "suite.h"

static const hvd_dtype types[] = {HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT32,
                                  HVD_FLOAT64};

/* Converts one element: in float32, unless either is float64. */
static void convert_one(hvd_dtype to, void *out, hvd_dtype from, const void *in,
                        int64_t i, double factor)
{
    double value = load_element(from, in, i);

    if (to == HVD_FLOAT64 || from == HVD_FLOAT64)
        store_element(to, out, i, value * factor);
    else
        store_element(to, out, i, (double)((float)value * (float)factor));
}

/* Every variant converts all elements, and writes nothing behind them. */
static void check(hvd_dtype to, hvd_dtype from, const void *in, int64_t count,
                  double factor, size_t offset)
{
    size_t bytes = (size_t)count * hvd__dtype_bytes(to);
    unsigned char *want = malloc(bytes + 1), *out = malloc(bytes + offset + 1);
    const char *variant;

    for (int64_t i = 0; i < count; i++)
        convert_one(to, want, from, in, i, factor);
    want[bytes] = 0xa5;
    FOR_EACH_VARIANT(variant)
    {
        memset(out, 0xa5, bytes + offset + 1);
        hvd__convert(to, out + offset, from, in, count, factor);
        if (memcmp(out + offset, want, bytes + 1) == 0)
            continue;
        for (size_t i = 0; i < bytes; i++)
            ck_assert_msg(out[offset + i] == want[i],
                          "%s: %s to %s, %lld elements, times %g: element %zu",
                          variant, hvd_dtype_name(from), hvd_dtype_name(to),
                          (long long)count, factor, i / hvd__dtype_bytes(to));
        ck_abort_msg("%s: writes behind the end", variant);
    }
    free(want);
    free(out);
}

/* Buffers are misaligned, and longer than a block. */
TEST(every_pair)
{
    static const int64_t counts[] = {0, 1, 7, 8, 15, 16, 17, 33, 2100};
    static const double factors[] = {1, -0.25, 0.1};
    static unsigned char in[2100 * 8 + 1];

    for (int t = 0; t < 16; t++) {
        hvd_dtype to = types[t / 4], from = types[t % 4];

        for (int64_t i = 0; i < 2100; i++)
            store_element(from, in + 1, i, (double)(i - 150) * 1.2345678912345);
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (int f = 0; f < 3; f++)
                check(to, from, in + 1, counts[c], factors[f], (size_t)f);
    }
}

TEST(in_place_if_the_types_are_equal)
{
    const char *variant;

    FOR_EACH_VARIANT(variant)
    for (int t = 0; t < 4; t++) {
        unsigned char data[100 * 8], want[100 * 8];

        for (int64_t i = 0; i < 100; i++) {
            store_element(types[t], data, i, (double)i);
            store_element(types[t], want, i, (double)i / 2);
        }
        hvd__convert(types[t], data, types[t], data, 100, 0.5);
        ck_assert_mem_eq(data, want, 100 * hvd__dtype_bytes(types[t]));
    }
}

TEST(all_values_of_16_bits)
{
    static uint16_t in[65536];

    for (int i = 0; i < 65536; i++)
        in[i] = (uint16_t)i;
    for (int t = 0; t < 8; t++)
        check(types[t / 2], types[t % 2], in, 65536, 1, 0);
}

/* Every sign and exponent, each with the mantissas around the places where
 * rounding turns, all bits before them set or not; NaNs are among them. */
static int64_t hard_values(float *values)
{
    int64_t n = 0;

    for (uint32_t head = 0; head < 512; head++)
        for (int place = 0; place < 24; place++)
            for (uint32_t near = 0; near < 3; near++)
                for (int full = 0; full < 4; full++) {
                    uint32_t low = ((uint32_t)1 << place) - 1 + near;
                    uint32_t high = ~(((uint32_t)2 << place) - 1);
                    uint32_t next = (uint32_t)2 << place;
                    uint32_t mantissa = low | (full == 1   ? high
                                               : full == 2 ? next
                                                           : 0);

                    if (full == 3)
                        mantissa = (uint32_t)random64();
                    values[n++] =
                        float_of_bits(head << 23 | (mantissa & 0x7fffff));
                }
    return n;
}

TEST(hard_values_of_32_bits)
{
    enum { MOST = 512 * 24 * 3 * 4 };
    float *values = malloc(MOST * sizeof *values);
    double *wide = malloc(MOST * sizeof *wide);
    int64_t n = hard_values(values);

    ck_assert_int_eq(n, MOST);
    for (int t = 0; t < 4; t++) {
        check(types[t], HVD_FLOAT32, values, n, 1, 0);
        check(types[t], HVD_FLOAT32, values, n, 0x1p-14, 0);
    }
    /* The values and their near neighbours are converted. */
    for (int64_t i = 0; i < n; i++)
        wide[i] = (double)values[i] * (1 + (double)(i % 3 - 1) * 0x1p-40);
    for (int t = 0; t < 3; t++)
        check(types[t], HVD_FLOAT64, wide, n, 1, 0);
    free(values);
    free(wide);
}

TEST_MAIN("kernels_convert", .seconds = 120)

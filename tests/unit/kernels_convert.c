/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between the floating types, against the compiler's own. */
#include <math.h>
#include <string.h>

#include "check_main.h"
#include "kernels/kernels.h"

static const hvd_dtype types[] = {HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT32,
                                  HVD_FLOAT64};

static double bfloat(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;

    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

static double load(hvd_dtype dtype, const void *at)
{
    _Float16 half;
    uint16_t bits;
    float single;
    double wide;

    switch (dtype) {
    case HVD_FLOAT16: memcpy(&half, at, 2); return (double)half;
    case HVD_BFLOAT16: memcpy(&bits, at, 2); return bfloat(bits);
    case HVD_FLOAT32: memcpy(&single, at, 4); return (double)single;
    default: memcpy(&wide, at, 8); return wide;
    }
}

static double precision(hvd_dtype dtype)
{
    return dtype == HVD_FLOAT16    ? 0x1p-11
           : dtype == HVD_BFLOAT16 ? 0x1p-8
           : dtype == HVD_FLOAT32  ? 0x1p-24
                                   : 0x1p-53;
}

/* Misaligned by offset; values that all types can hold roughly. */
static void check(hvd_dtype to, hvd_dtype from, double factor, size_t offset)
{
    enum { COUNT = 300 };
    unsigned char in[COUNT * 8 + 8], out[COUNT * 8 + 8];
    double start[COUNT];

    for (int i = 0; i < COUNT; i++)
        start[i] = (i - 150) * 1.2345678912345;
    hvd__convert(from, in + offset, HVD_FLOAT64, start, COUNT, 1);
    hvd__convert(to, out + offset, from, in + offset, COUNT, factor);
    for (int i = 0; i < COUNT; i++) {
        size_t in_bytes = hvd__dtype_bytes(from);
        size_t out_bytes = hvd__dtype_bytes(to);
        double x = load(from, in + offset + (size_t)i * in_bytes);
        double y = load(to, out + offset + (size_t)i * out_bytes);
        double most = fmax(precision(to), to == from ? 0 : 0x1p-24);

        ck_assert_msg(fabs(x - start[i]) <=
                          fabs(start[i]) * precision(from) + 1e-300,
                      "%g as %s is %g", start[i], hvd_dtype_name(from), x);
        ck_assert_msg(fabs(y - x * factor) <= fabs(x * factor) * most * 1.001,
                      "%s to %s: %.17g * %g is %.17g", hvd_dtype_name(from),
                      hvd_dtype_name(to), x, factor, y);
    }
}

START_TEST(every_pair)
{
    for (int to = 0; to < 4; to++)
        for (int from = 0; from < 4; from++)
            for (size_t offset = 0; offset < 4; offset += 3) {
                check(types[to], types[from], 1, offset);
                check(types[to], types[from], -0.25, offset);
            }
}
END_TEST

START_TEST(what_has_no_neighbours)
{
    const double in[] = {INFINITY, -INFINITY, NAN, 0.0, -0.0, 1e300};

    for (int to = 0; to < 4; to++) {
        unsigned char out[48];
        size_t bytes = hvd__dtype_bytes(types[to]);

        hvd__convert(types[to], out, HVD_FLOAT64, in, 6, 1);
        ck_assert(load(types[to], out) > 1e308);
        ck_assert(load(types[to], out + bytes) < -1e308);
        ck_assert(isnan(load(types[to], out + 2 * bytes)));
        ck_assert(load(types[to], out + 3 * bytes) == 0);
        ck_assert(signbit(load(types[to], out + 4 * bytes)));
        ck_assert(types[to] == HVD_FLOAT64 ||
                  isinf(load(types[to], out + 5 * bytes)));
    }
}
END_TEST

static TCase *tcase_convert(void)
{
    TCase *tcase = tcase_create("convert");

    tcase_add_test(tcase, every_pair);
    tcase_add_test(tcase, what_has_no_neighbours);
    return tcase;
}

HVD_TEST_MAIN("kernels_convert", tcase_convert)

/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of an adaptive sum, against long double and the formula. */
#include <math.h>
#include <string.h>

#include "floats.h"
#include "suite.h"

enum { MOST = 1003 };

static const hvd_dtype types[] = {HVD_FLOAT32, HVD_FLOAT64};
static const int64_t counts[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, MOST};

static unsigned char memory_a[MOST * 8 + 16], memory_b[MOST * 8 + 16];

/* Two vectors of values in [-2, 2], as the type holds them. */
static void draw(hvd_dtype dtype, void *a, void *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        store_element(dtype, a, i, (double)(random64() >> 40) * 0x1p-22 - 2);
        store_element(dtype, b, i, (double)(random64() >> 40) * 0x1p-22 - 2);
    }
}

static void check_dots(hvd_dtype dtype, const void *a, const void *b,
                       int64_t count, const double dots[3])
{
    long double want[3] = {0, 0, 0};

    for (int64_t i = 0; i < count; i++) {
        long double x = (long double)load_element(dtype, a, i);
        long double y = (long double)load_element(dtype, b, i);

        want[0] += x * x;
        want[1] += x * y;
        want[2] += y * y;
    }
    for (int d = 0; d < 3; d++)
        ck_assert_msg(fabs(dots[d] - (double)want[d]) <=
                          4 * (double)count * 0x1p-50,
                      "%s, %d of %lld: %.17g, not %.17g", hvd_dtype_name(dtype),
                      d, (long long)count, dots[d], (double)want[d]);
}

TEST(dots_are_close_and_the_same_everywhere)
{
    for (int t = 0; t < 2; t++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (int offset = 0; offset < 4; offset += 3) {
                unsigned char *a = memory_a + offset, *b = memory_b + offset;
                double first[3], dots[3];
                const char *variant;

                draw(types[t], a, b, counts[c]);
                hvd__kernels_choose("generic");
                hvd__adasum_dots(types[t], a, b, counts[c], first);
                check_dots(types[t], a, b, counts[c], first);
                FOR_EACH_VARIANT(variant)
                {
                    hvd__adasum_dots(types[t], a, b, counts[c], dots);
                    ck_assert_msg(memcmp(first, dots, sizeof dots) == 0, "%s",
                                  variant);
                }
            }
}

static double coefficient(double ab, double square)
{
    return 1 - ab / (2 * square);
}

/* The sum may be made in place. */
TEST(sums_follow_the_formula)
{
    static unsigned char out[MOST * 8 + 16], want[MOST * 8];
    const double dots[3] = {3, 1.5, 2};
    const char *variant;

    FOR_EACH_VARIANT(variant)
    for (int t = 0; t < 2; t++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (int place = 0; place < 3; place++) {
                unsigned char *a = memory_a + 3, *b = memory_b + 1;
                unsigned char *to = place == 0 ? out + 5 : place == 1 ? a : b;
                size_t bytes = (size_t)counts[c] * hvd__dtype_bytes(types[t]);

                draw(types[t], a, b, counts[c]);
                for (int64_t i = 0; i < counts[c]; i++)
                    store_element(
                        types[t], want, i,
                        coefficient(1.5, 3) * load_element(types[t], a, i) +
                            coefficient(1.5, 2) * load_element(types[t], b, i));
                hvd__adasum_combine(types[t], to, a, b, counts[c], dots);
                ck_assert_msg(memcmp(to, want, bytes) == 0, "%s: %s", variant,
                              hvd_dtype_name(types[t]));
            }
}

static void adasum(const float *a, const float *b, float *out, int64_t count)
{
    double dots[3];

    hvd__adasum_dots(HVD_FLOAT32, a, b, count, dots);
    hvd__adasum_combine(HVD_FLOAT32, out, a, b, count, dots);
}

TEST(orthogonal_adds_and_parallel_averages)
{
    const float a[] = {2, 0, 4}, across[] = {0, 3, 0}, zero[] = {0, 0, 0};
    const char *variant;
    float out[3];

    FOR_EACH_VARIANT(variant)
    {
        adasum(a, across, out, 3);
        ck_assert(out[0] == 2 && out[1] == 3 && out[2] == 4);
        adasum(a, a, out, 3);
        ck_assert(out[0] == 2 && out[1] == 0 && out[2] == 4);
        adasum(a, zero, out, 3);
        ck_assert(out[0] == 2 && out[1] == 0 && out[2] == 4);
        adasum(zero, zero, out, 3);
        ck_assert(out[0] == 0 && out[1] == 0 && out[2] == 0);
    }
}

TEST_MAIN("kernels_adasum")

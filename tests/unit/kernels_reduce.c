/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions of every dtype and op, with every variant, bit by bit against
 * another computation, an element at a time: integers in 128 bits, floats as
 * reduce.c says they are rounded, 16-bit floats by the compiler's own type.
 */
#include <math.h>
#include <stdlib.h>

#include "floats.h"
#include "suite.h"

__extension__ typedef __int128 wide;

enum { MOST_BUFFERS = 8, MOST = 70001, GUARD = 64, BUFFER = MOST * 8 + 256 };

static const hvd_op ops[] = {HVD_AVERAGE, HVD_SUM, HVD_MIN, HVD_MAX,
                             HVD_PRODUCT};

/* given holds the sources' data, sources is where they lie during a reduction,
 * outs are the outputs, and want is the right result. */
static unsigned char *given[MOST_BUFFERS], *sources[MOST_BUFFERS],
    *outs[MOST_BUFFERS], *want;

static void allocate(void)
{
    for (int b = 0; b < MOST_BUFFERS; b++) {
        given[b] = malloc(BUFFER);
        sources[b] = malloc(BUFFER);
        outs[b] = malloc(BUFFER);
    }
    want = malloc(BUFFER);
}

static void release(void)
{
    for (int b = 0; b < MOST_BUFFERS; b++) {
        free(given[b]);
        free(sources[b]);
        free(outs[b]);
    }
    free(want);
}

/* ---------------------------------------------------- the other computation */

static int divisor_of(const struct hvd__reduction *r, int nsources)
{
    return r->op != HVD_AVERAGE ? 1 : r->divisor ? r->divisor : nsources;
}

#define FLOAT_REFERENCE(type)                                                  \
    static double expect_##type(const struct hvd__reduction *r, int nsources,  \
                                int64_t i)                                     \
    {                                                                          \
        type acc = 0;                                                          \
        for (int s = 0; s < nsources; s++) {                                   \
            type x = (type)load_element(r->dtype, given[s], i);                \
            x *= (type)r->prescale;                                            \
            if (s == 0)                                                        \
                acc = x;                                                       \
            else if (r->op == HVD_MIN)                                         \
                acc = x < acc || isnan(x) ? x : acc;                           \
            else if (r->op == HVD_MAX)                                         \
                acc = x > acc || isnan(x) ? x : acc;                           \
            else if (r->op == HVD_PRODUCT)                                     \
                acc *= x;                                                      \
            else                                                               \
                acc += x;                                                      \
        }                                                                      \
        return (double)(type)((double)acc / divisor_of(r, nsources) *          \
                              r->postscale);                                   \
    }

FLOAT_REFERENCE(float)
FLOAT_REFERENCE(double)

static wide load_integer(hvd_dtype dtype, const void *from, int64_t i)
{
    switch (dtype) {
    case HVD_UINT8: return ((const uint8_t *)from)[i];
    case HVD_INT8: return ((const int8_t *)from)[i];
    case HVD_UINT16: return ((const uint16_t *)from)[i];
    case HVD_INT16: return ((const int16_t *)from)[i];
    case HVD_INT32: return ((const int32_t *)from)[i];
    default: return ((const int64_t *)from)[i];
    }
}

/* Two's complement: the low bytes of any integer. */
static void store_integer(hvd_dtype dtype, void *to, int64_t i, wide value)
{
    size_t bytes = hvd__dtype_bytes(dtype);
    uint64_t low = (uint64_t)value;

    for (size_t b = 0; b < bytes; b++)
        ((unsigned char *)to)[(size_t)i * bytes + b] =
            (unsigned char)(low >> 8 * b);
}

/* Numbers here are size * factor / divisor with all binary digits: words of 32,
 * the lowest first; word UNITS is the lowest one of the integer part. */
enum { UNITS = 36, WORDS = 80 };

static void add_shifted(uint32_t *words, unsigned __int128 size, int bits)
{
    uint64_t carry = 0;

    for (int i = bits / 32; i < WORDS; i++) {
        int from = i * 32 - bits;
        uint32_t part = from >= 128 ? 0
                        : from < 0  ? (uint32_t)(size << -from)
                                    : (uint32_t)(size >> from);

        carry += (uint64_t)words[i] + part;
        words[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

static uint64_t all_digits(unsigned __int128 size, double factor, int divisor)
{
    uint32_t words[WORDS] = {0};
    uint64_t rest = 0;
    int exponent;
    uint64_t mantissa = (uint64_t)ldexp(frexp(factor, &exponent), 53);

    for (int b = 0; b < 53; b++)
        if (mantissa >> b & 1)
            add_shifted(words, size, UNITS * 32 + exponent - 53 + b);
    for (int i = WORDS - 1; i >= 0; i--) {
        rest = rest << 32 | words[i];
        words[i] = (uint32_t)(rest / (uint64_t)divisor);
        rest %= (uint64_t)divisor;
    }
    return (uint64_t)words[UNITS + 1] << 32 | words[UNITS];
}

/* Computes in double if all integers up to the value are doubles. */
static wide times(wide value, double factor, int divisor)
{
    unsigned __int128 size =
        value < 0 ? -(unsigned __int128)value : (unsigned __int128)value;
    double product = (double)value * factor;
    uint64_t digits;

    if (size <= (unsigned __int128)1 << 53 && fabs(product) <= 0x1p53)
        return (wide)trunc(product / divisor);
    digits = all_digits(size, fabs(factor), divisor);
    return (int64_t)((value < 0) != (factor < 0) ? -digits : digits);
}

static wide scaled(hvd_dtype dtype, wide value, double factor)
{
    int64_t cut;

    store_integer(dtype, &cut, 0, times(value, factor, 1));
    return load_integer(dtype, &cut, 0);
}

static wide expect_integer(const struct hvd__reduction *r, int nsources,
                           int64_t i)
{
    wide acc = 0;

    for (int s = 0; s < nsources; s++) {
        wide x = load_integer(r->dtype, given[s], i);

        if (r->prescale != 1)
            x = scaled(r->dtype, x, r->prescale);
        if (s == 0)
            acc = x;
        else if (r->op == HVD_MIN)
            acc = x < acc ? x : acc;
        else if (r->op == HVD_MAX)
            acc = x > acc ? x : acc;
        else if (r->op == HVD_PRODUCT)
            acc = (wide)((unsigned __int128)acc * (unsigned __int128)x);
        else
            acc += x;
        if (r->dtype != HVD_INT64)
            acc = (int64_t)acc; /* where a product wraps */
    }
    if (r->postscale == 1)
        return acc / divisor_of(r, nsources);
    return times(acc, r->postscale, divisor_of(r, nsources));
}

static int expect_bool(const struct hvd__reduction *r, int nsources, int64_t i)
{
    bool is_or = r->op == HVD_SUM || r->op == HVD_MAX;
    int set = 0;

    for (int s = 0; s < nsources; s++)
        set += given[s][i] != 0;
    return is_or ? set > 0 : set == nsources;
}

static bool is_float(hvd_dtype dtype)
{
    return dtype == HVD_FLOAT16 || dtype == HVD_BFLOAT16 ||
           dtype == HVD_FLOAT32 || dtype == HVD_FLOAT64;
}

static void expect(const struct hvd__reduction *r, int nsources, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (r->dtype == HVD_BOOL)
            want[i] = (unsigned char)expect_bool(r, nsources, i);
        else if (r->dtype == HVD_FLOAT64)
            store_element(r->dtype, want, i, expect_double(r, nsources, i));
        else if (is_float(r->dtype))
            store_element(r->dtype, want, i, expect_float(r, nsources, i));
        else
            store_integer(r->dtype, want, i, expect_integer(r, nsources, i));
}

/* ------------------------------------------------------------ what is given */

/* Mostly between -2 and 2, but also what floats are known for; of NaNs, one of
 * an element at most, given or from infinities: which of several comes out is
 * not laid down. */
static double draw_float(int buffer, int64_t i)
{
    static const double odd[] = {INFINITY, -INFINITY, 0.0,     -0.0,
                                 1e-44,    -6e-8,     65504.0, 3e38,
                                 1e-310,   -1e300,    0x1p-14, 0x1p-126};

    if (i % 97 == 5 && i / 97 % MOST_BUFFERS == buffer)
        return (double)NAN;
    if (i % 97 != 5 && random64() % 16 == 0)
        return odd[random64() % (sizeof odd / sizeof *odd)];
    return (double)(random64() >> 40) * 0x1p-22 - 2;
}

static void draw(hvd_dtype dtype)
{
    for (int b = 0; b < MOST_BUFFERS; b++)
        for (int64_t i = 0; i < MOST; i++)
            if (dtype == HVD_BOOL)
                given[b][i] = (unsigned char)(random64() % 4 ? i % 3 : 0);
            else if (is_float(dtype))
                store_element(dtype, given[b], i, draw_float(b, i));
            else
                store_integer(dtype, given[b], i, (wide)random64());
}

/* -------------------------------------------------------------- one attempt */

struct attempt {
    const struct hvd__reduction *reduction;
    const char *variant;
    int nsources, nouts;
    int64_t count;
    bool in_place, aligned;
};

static void check_out(const struct attempt *a, int k, const unsigned char *out)
{
    size_t bytes = (size_t)a->count * hvd__dtype_bytes(a->reduction->dtype);

    if (memcmp(out, want, bytes) != 0)
        for (size_t i = 0; i < bytes; i++)
            ck_assert_msg(
                out[i] == want[i],
                "%s: %s %s of %d into %d, %lld elements%s%s: out %d, element "
                "%zu",
                a->variant, hvd_dtype_name(a->reduction->dtype),
                hvd_op_name(a->reduction->op), a->nsources, a->nouts,
                (long long)a->count, a->in_place ? ", in place" : "",
                a->aligned ? "" : ", misaligned", k,
                i / hvd__dtype_bytes(a->reduction->dtype));
    for (size_t i = 0; i < GUARD; i++)
        if (out[bytes + i] != 0xa5 || *(out - 1 - i) != 0xa5)
            ck_abort_msg("%s: %s: writes around an out", a->variant,
                         hvd_dtype_name(a->reduction->dtype));
}

static void attempt(const struct attempt *a)
{
    size_t bytes = (size_t)a->count * hvd__dtype_bytes(a->reduction->dtype);
    const void *from[MOST_BUFFERS];
    void *to[MOST_BUFFERS];

    for (int b = 0; b < MOST_BUFFERS; b++) {
        size_t shift = a->aligned ? GUARD : GUARD + 1 + 3 * (size_t)b;
        unsigned char *source = sources[b] + shift;

        from[b] = source;
        to[b] = a->in_place && b < a->nsources ? source : outs[b] + shift;
        if (b < a->nouts)
            memset((unsigned char *)to[b] - GUARD, 0xa5, bytes + 2 * GUARD);
        if (b < a->nsources)
            memcpy(source, given[b], bytes);
    }
    if (a->nouts > 1) {
        hvd__reduce_to(a->reduction, to, a->nouts, from, a->nsources, a->count);
    } else {
        hvd__reduce(a->reduction, to[0], from, a->nsources, a->count);
    }
    for (int k = 0; k < a->nouts; k++)
        check_out(a, k, to[k]);
}

static void attempt_all(const struct hvd__reduction *r, int nsources)
{
    static const int nouts[] = {1, 2, 3, 8};
    static const int64_t counts[] = {0, 1, 2, 15, 16, 17, 63, 1000, 1025, MOST};
    struct attempt a = {.reduction = r, .nsources = nsources};

    expect(r, nsources, MOST);
    FOR_EACH_VARIANT(a.variant)
    for (int o = 0; o < 4; o++)
        for (int c = 0; c < 10; c++)
            for (int how = 0; how < 4; how++) {
                a.nouts = nouts[o];
                a.count = counts[c];
                a.in_place = how % 2 == 0;
                a.aligned = how / 2 == 0;
                if (a.count < MOST || how == o) /* large ones: each way once */
                    attempt(&a);
            }
}

/* _i: the dtype */
LOOP_TEST(every_op_and_number_of_sources, 0, HVD_NUM_DTYPES)
{
    static const int nsources[] = {1, 2, 3, 4, 5, 8};

    allocate();
    draw(_i);
    for (int o = 0; o < 5; o++)
        for (int n = 0; n < 6; n++) {
            struct hvd__reduction r = {_i, ops[o], 1, 1, 0};

            if (_i != HVD_BOOL || r.op != HVD_AVERAGE)
                attempt_all(&r, nsources[n]);
        }
    release();
}

static void attempt_scaled(const struct hvd__reduction *r, int nsources)
{
    struct attempt a = {.reduction = r,
                        .nsources = nsources,
                        .nouts = nsources,
                        .count = 1025,
                        .in_place = true};

    expect(r, nsources, a.count);
    FOR_EACH_VARIANT(a.variant)
    attempt(&a);
}

static void attempt_scales(hvd_dtype dtype, const struct hvd__reduction *scales,
                           int count)
{
    for (int s = 0; s < count; s++)
        for (int n = 1; n <= 4; n++)
            for (int o = 0; o < 5; o++) {
                struct hvd__reduction r = scales[s];

                r.dtype = dtype;
                r.op = ops[o];
                attempt_scaled(&r, n);
            }
}

/* Factors that a float32 holds exactly and that it does not, divisors with
 * and without an exact reciprocal; and for integers, huge ones. */
LOOP_TEST(scales_and_divisors, 0, HVD_NUM_DTYPES)
{
    static const struct hvd__reduction scales[] = {
        {0, 0, 0.5, 1, 0},     {0, 0, 1, 0.5, 0},    {0, 0, 1, 0.1, 0},
        {0, 0, 0.3, 3, 0},     {0, 0, 1, 1, 5},      {0, 0, 1, 1, 16},
        {0, 0, 1, 0.1, 16},    {0, 0, 0.7, 0.1, 7},  {0, 0, 1, 0x1p-130, 2},
        {0, 0, 1, 0x1p100, 0}, {0, 0, 1, 1e-310, 1}, {0, 0, 1, 0, 2}};
    static const struct hvd__reduction huge[] = {{0, 0, 1e300, 1, 0},
                                                 {0, 0, -3.7, 1e9, 3},
                                                 {0, 0, 1, 1e18, 7},
                                                 {0, 0, 0.37, -1, 0},
                                                 {0, 0, 1, 1.7e308, 3}};

    if (_i == HVD_BOOL)
        return;
    allocate();
    draw(_i);
    attempt_scales(_i, scales, sizeof scales / sizeof *scales);
    if (!is_float(_i))
        attempt_scales(_i, huge, sizeof huge / sizeof *huge);
    release();
}

TEST(a_nan_wins)
{
    const float a[] = {1, NAN, NAN}, b[] = {NAN, 2, NAN};
    const void *from[] = {a, b};
    const char *variant;
    float out[3];

    FOR_EACH_VARIANT(variant)
    for (int o = 0; o < 5; o++) {
        struct hvd__reduction r = {HVD_FLOAT32, ops[o], 1, 1, 0};

        hvd__reduce(&r, out, from, 2, 3);
        for (int i = 0; i < 3; i++)
            ck_assert_msg(isnan(out[i]), "%s: %s", variant,
                          hvd_op_name(ops[o]));
    }
}

TEST(integers_are_scaled_as_decimals_say)
{
    static const struct {
        hvd_dtype dtype;
        hvd_op op;
        double prescale, postscale;
        int64_t given, wanted; /* of three sources alike */
    } cases[] = {
        {HVD_INT32, HVD_MAX, 0.7, 1, 10, 7},
        {HVD_INT32, HVD_MAX, 1, 0.37, 100, 37},
        {HVD_INT8, HVD_MAX, 0.37, 1, 100, 37},
        {HVD_UINT8, HVD_MIN, 1, 0.29, 100, 28}, /* as in numpy */
        {HVD_INT16, HVD_SUM, 0.7, 1, -10, -21},
        {HVD_INT64, HVD_AVERAGE, 1, 0.7, 10, 7},
        {HVD_INT64, HVD_AVERAGE, 0.7, 0.1, -100, -7},
        {HVD_INT32, HVD_MAX, 1, 0.99, -1, 0}, /* toward zero */
        /* Beyond 2^53 nothing is rounded: 2^60 + 1, 2^62 + 2 and a half. */
        {HVD_INT64, HVD_MAX, 0x1p-1, 1, 0x1000000000000001, 0x800000000000000},
        {HVD_INT64, HVD_MAX, 3, 1, 0x1000000000000001, 0x3000000000000003},
        {HVD_INT64, HVD_MAX, 1.5, 1, 0x1fffffffffffff, 0x2ffffffffffffe},
        {HVD_INT64, HVD_AVERAGE, 1, 3, 0x2000000000000001, 0x6000000000000003},
        {HVD_INT64, HVD_SUM, 1, 0x1p-1, INT64_MAX, -0x4000000000000002},
        /* Results that do not fit wrap around. */
        {HVD_INT8, HVD_MAX, 2, 1, 100, -56},
        {HVD_UINT8, HVD_MAX, -1, 1, 1, 255},
        {HVD_INT64, HVD_MAX, 2, 1, INT64_MAX, -2},
        {HVD_INT64, HVD_MAX, 0x1p64, 1, 12345, 0},
        {HVD_INT16, HVD_MAX, 1e300, 1, 3, 0},
        {HVD_INT32, HVD_MAX, 5e-324, 1, INT32_MAX, 0},
    };

    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const struct hvd__reduction r = {cases[c].dtype, cases[c].op,
                                         cases[c].prescale, cases[c].postscale,
                                         0};
        const void *from[] = {&cases[c].given, &cases[c].given,
                              &cases[c].given};
        int64_t out = 0;

        hvd__reduce(&r, &out, from, 3, 1);
        ck_assert_msg((int64_t)load_integer(r.dtype, &out, 0) ==
                          cases[c].wanted,
                      "case %d gives %lld", (int)c,
                      (long long)load_integer(r.dtype, &out, 0));
    }
}

/* An infinite factor, which requests refuse, does no harm: the result is 0. */
TEST(integers_survive_absurd_factors)
{
    const int32_t a[] = {0, 1, -1, INT32_MAX};
    const void *from[] = {a};
    int32_t out[4];

    struct hvd__reduction r = {HVD_INT32, HVD_SUM, 1, INFINITY, 0};
    hvd__reduce(&r, out, from, 1, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(out[i], 0);
    r.postscale = 0x1p-31;
    hvd__reduce(&r, out, from, 1, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(out[i], 0);
}

TEST_MAIN("kernels_reduce", .seconds = 120)

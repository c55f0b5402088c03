/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.c - between the floating types, with rounding to nearest, and a
 * factor on the way. Each pair is one loop: the compiler vectorises those
 * that it can.
 */
#include <string.h>

#include "kernels/half.h"
#include "kernels/kernels.h"

#define KEEP(value) (value)

/* Loads and stores through memcpy: no alignment is needed. */
#define CONVERT(name, TO, STORE, FROM, LOAD, MIDDLE)                           \
    static void name(unsigned char *out, const unsigned char *in,              \
                     int64_t count, double factor)                             \
    {                                                                          \
        const MIDDLE scale = (MIDDLE)factor;                                   \
        for (int64_t i = 0; i < count; i++) {                                  \
            FROM from;                                                         \
            TO to;                                                             \
            memcpy(&from, in + i * (int64_t)sizeof from, sizeof from);         \
            to = (TO)STORE((MIDDLE)LOAD(from) * scale);                        \
            memcpy(out + i * (int64_t)sizeof to, &to, sizeof to);              \
        }                                                                      \
    }

#define TO_F16(value) hvd__to_float16((float)(value))
#define TO_BF16(value) hvd__to_bfloat16((float)(value))

CONVERT(f16_f16, uint16_t, TO_F16, uint16_t, hvd__from_float16, float)
CONVERT(f16_bf16, uint16_t, TO_BF16, uint16_t, hvd__from_float16, float)
CONVERT(f16_f32, float, KEEP, uint16_t, hvd__from_float16, float)
CONVERT(f16_f64, double, KEEP, uint16_t, hvd__from_float16, double)
CONVERT(bf16_f16, uint16_t, TO_F16, uint16_t, hvd__from_bfloat16, float)
CONVERT(bf16_bf16, uint16_t, TO_BF16, uint16_t, hvd__from_bfloat16, float)
CONVERT(bf16_f32, float, KEEP, uint16_t, hvd__from_bfloat16, float)
CONVERT(bf16_f64, double, KEEP, uint16_t, hvd__from_bfloat16, double)
CONVERT(f32_f16, uint16_t, TO_F16, float, KEEP, float)
CONVERT(f32_bf16, uint16_t, TO_BF16, float, KEEP, float)
CONVERT(f32_f32, float, KEEP, float, KEEP, float)
CONVERT(f32_f64, double, KEEP, float, KEEP, double)
CONVERT(f64_f16, uint16_t, TO_F16, double, KEEP, double)
CONVERT(f64_bf16, uint16_t, TO_BF16, double, KEEP, double)
CONVERT(f64_f32, float, KEEP, double, KEEP, double)
CONVERT(f64_f64, double, KEEP, double, KEEP, double)

typedef void convert_function(unsigned char *, const unsigned char *, int64_t,
                              double);

/* The floating types in the order of this table. */
static int place(hvd_dtype dtype)
{
    switch (dtype) {
    case HVD_FLOAT16: return 0;
    case HVD_BFLOAT16: return 1;
    case HVD_FLOAT32: return 2;
    default: return 3;
    }
}

void hvd__convert(hvd_dtype to, void *out, hvd_dtype from, const void *in,
                  int64_t count, double factor)
{
    static convert_function *const table[4][4] = {
        {f16_f16, f16_bf16, f16_f32, f16_f64},
        {bf16_f16, bf16_bf16, bf16_f32, bf16_f64},
        {f32_f16, f32_bf16, f32_f32, f32_f64},
        {f64_f16, f64_bf16, f64_f32, f64_f64},
    };

    table[place(from)][place(to)](out, in, count, factor);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.c - conversions between the floating types: one loop for a pair or,
 * for pairs with float32 between them, two loops over blocks that stay in the
 * first-level cache.
 */
#include "kernels/kernels.h"
#include "kernels/variant.h"

/* A block has 4 KiB of float32 between the two loops. */
enum { BLOCK = 1024 };

static hvd__convert_loop *to_f32(const struct hvd__kernel_variant *v,
                                 hvd_dtype from)
{
    switch (from) {
    case HVD_FLOAT16: return v->f16_f32;
    case HVD_BFLOAT16: return v->bf16_f32;
    case HVD_FLOAT64: return v->f64_f32;
    default: return v->f32_f32;
    }
}

static hvd__convert_loop *from_f32(const struct hvd__kernel_variant *v,
                                   hvd_dtype to)
{
    switch (to) {
    case HVD_FLOAT16: return v->f32_f16;
    case HVD_BFLOAT16: return v->f32_bf16;
    case HVD_FLOAT64: return v->f32_f64;
    default: return v->f32_f32;
    }
}

/* The factor is applied where it is rounded once: in float64, if that is one of
 * the two. */
static void convert_twice(hvd_dtype to, unsigned char *out, hvd_dtype from,
                          const unsigned char *in, int64_t count, double factor)
{
    const struct hvd__kernel_variant *v = hvd__kernel_variant();
    hvd__convert_loop *first = to_f32(v, from), *second = from_f32(v, to);
    double before = to == HVD_FLOAT64 ? 1 : factor;
    double after = to == HVD_FLOAT64 ? factor : 1;
    size_t in_bytes = hvd__dtype_bytes(from), out_bytes = hvd__dtype_bytes(to);
    float block[BLOCK];

    for (; count > 0; count -= BLOCK) {
        int64_t n = count < BLOCK ? count : BLOCK;

        first(block, in, n, before);
        second(out, block, n, after);
        in += (size_t)n * in_bytes;
        out += (size_t)n * out_bytes;
    }
}

void hvd__convert(hvd_dtype to, void *out, hvd_dtype from, const void *in,
                  int64_t count, double factor)
{
    const struct hvd__kernel_variant *v = hvd__kernel_variant();

    if (from == HVD_FLOAT64 && to == HVD_FLOAT64)
        v->f64_f64(out, in, count, factor);
    else if (to == HVD_FLOAT32)
        to_f32(v, from)(out, in, count, factor);
    else if (from == HVD_FLOAT32)
        from_f32(v, to)(out, in, count, factor);
    else
        convert_twice(to, out, from, in, count, factor);
}

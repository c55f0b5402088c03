/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variant.h - a variant of the kernels: the loops, compiled for one instruction
 * set. It is private to this room.
 */
#ifndef HVD_KERNELS_VARIANT_H
#define HVD_KERNELS_VARIANT_H

#include "base/dtype.h"

/* The last step for a combined value of a floating type before it is stored. */
enum hvd__finish {
    HVD__SCALE,  /* multiply by factor, in the type of combining */
    HVD__DIVIDE, /* divide by divisor, in the type of combining */
    HVD__EXACTLY /* divide by divisor and multiply by factor, both in float64 */
};

/* A pass of a loop over memory. Integers are neither scaled nor divided. */
struct hvd__pass {
    hvd_op op; /* HVD_SUM, HVD_PRODUCT, HVD_MIN or HVD_MAX */
    int nouts;
    int nsources;
    void *const *outs;
    const void *const *sources;
    int64_t count;
    double prescale;
    enum hvd__finish finish;
    double factor;
    double divisor;
};

typedef void hvd__reduce_loop(const struct hvd__pass *pass);

/* out[i] = factor * in[i] */
typedef void hvd__convert_loop(void *out, const void *in, int64_t count,
                               double factor);

/* dots = |a|², a·b, |b|² */
typedef void hvd__dots_loop(const void *a, const void *b, int64_t count,
                            double dots[3]);

/* out = ca * a + cb * b, computed in float64 */
typedef void hvd__blend_loop(void *out, const void *a, double ca, const void *b,
                             double cb, int64_t count);

/*
 * A variant. All give the same bits for the same input, but for which of
 * several NaNs of an element they pass on.
 */
struct hvd__kernel_variant {
    hvd__reduce_loop *reduce[HVD_NUM_DTYPES];
    /* Conversions that are made in one step; all pass through float32. */
    hvd__convert_loop *f16_f32, *bf16_f32, *f32_f32, *f64_f32;
    hvd__convert_loop *f32_f16, *f32_bf16, *f32_f64, *f64_f64;
    hvd__dots_loop *dots_f32, *dots_f64;
    hvd__blend_loop *blend_f32, *blend_f64;
};

extern const struct hvd__kernel_variant hvd__variant_generic;
#ifdef __x86_64__
extern const struct hvd__kernel_variant hvd__variant_avx2;
extern const struct hvd__kernel_variant hvd__variant_avx512;
#endif

/* Returns the variant in use: the best that this CPU has, unless another was
 * chosen. */
const struct hvd__kernel_variant *hvd__kernel_variant(void);

#endif

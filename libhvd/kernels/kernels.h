/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h - arithmetic on buffers: the door of this room.
 *
 * The loops exist in variants, for what processors of one architecture offer
 * beyond each other. All give the same bits, but for which of several NaNs of
 * an element is passed on. Nobody needs to choose: the best is used.
 */
#ifndef HVD_KERNELS_KERNELS_H
#define HVD_KERNELS_KERNELS_H

#include "base/dtype.h"

/* What to compute: postscale * op over sources of (prescale * source). */
struct hvd__reduction {
    hvd_dtype dtype;
    hvd_op op;
    double prescale;
    double postscale;
    int divisor; /* of HVD_AVERAGE; 0: the number of sources */
};

/*
 * out[i] = reduction of sources[0..nsources-1][i], for count elements and for
 * every out, in one pass over memory. Always combined in the order of the
 * sources, so that the result depends on nothing but the values and their
 * order.
 *
 * An out may be one of the sources; no other overlap. No alignment is needed.
 * nsources >= 1, nouts >= 1, and the reduction is valid: the caller has
 * checked it.
 */
void hvd__reduce_to(const struct hvd__reduction *reduction, void *const *outs,
                    int nouts, const void *const *sources, int nsources,
                    int64_t count);

/* The same into one out. */
void hvd__reduce(const struct hvd__reduction *reduction, void *out,
                 const void *const *sources, int nsources, int64_t count);

/* out[i] = factor * in[i], from one floating type to another, or the same;
 * rounded to nearest. Through float32 unless either is float64. No alignment
 * is needed; no overlap, but out may equal in for equal types. */
void hvd__convert(hvd_dtype to, void *out, hvd_dtype from, const void *in,
                  int64_t count, double factor);

/* Of two vectors of float32 or float64: |a|², a·b, |b|². */
void hvd__adasum_dots(hvd_dtype dtype, const void *a, const void *b,
                      int64_t count, double dots[3]);
/* out, which may be a or b: their adaptive sum, given the dots of the whole
 * vectors. */
void hvd__adasum_combine(hvd_dtype dtype, void *out, const void *a,
                         const void *b, int64_t count, const double dots[3]);

/* Use the variant of that name from now on, in all threads; "auto": the best.
 * HVD_ERR_CONFIG, with what there is: no such variant, or this processor
 * lacks instructions that it needs. */
int hvd__kernels_choose(const char *name);

/* The name of the variant in use. */
const char *hvd__kernels_name(void);

/* The name of the i-th variant that this processor can run, the plainest
 * first; NULL: there are no more. */
const char *hvd__kernels_offered(int i);

#endif

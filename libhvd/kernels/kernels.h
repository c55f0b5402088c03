/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h - the door of this room: arithmetic on buffers.
 *
 * The loops exist in variants for the instruction sets of an architecture. All
 * give the same bits, except that they may pass on a different one of several
 * NaNs of an element. Callers need not choose: the best variant is used.
 */
#ifndef HVD_KERNELS_KERNELS_H
#define HVD_KERNELS_KERNELS_H

#include "base/dtype.h"

/* A reduction: postscale * op over sources of (prescale * source). */
struct hvd__reduction {
    hvd_dtype dtype;
    hvd_op op;
    double prescale;
    double postscale;
    int divisor; /* for HVD_AVERAGE; 0: the number of sources */
};

/*
 * Sets out[i] to the reduction of sources[0..nsources-1][i], for count elements
 * and for every out, in one pass over memory. The sources are always combined
 * in their order, so that the result depends only on the values and their
 * order.
 *
 * An out may be one of the sources; they must not overlap otherwise. No
 * alignment is needed. nsources >= 1, nouts >= 1, and the caller has checked
 * the reduction.
 */
void hvd__reduce_to(const struct hvd__reduction *reduction, void *const *outs,
                    int nouts, const void *const *sources, int nsources,
                    int64_t count);

/* Does the same with one out. */
void hvd__reduce(const struct hvd__reduction *reduction, void *out,
                 const void *const *sources, int nsources, int64_t count);

/* Sets out[i] to factor * in[i], from one floating type to another, or the
 * same, rounded to nearest; through float32 unless either is float64. No
 * alignment is needed. The buffers must not overlap, but out may equal in for
 * equal types. */
void hvd__convert(hvd_dtype to, void *out, hvd_dtype from, const void *in,
                  int64_t count, double factor);

/* Computes |a|², a·b and |b|² of two vectors of float32 or float64. */
void hvd__adasum_dots(hvd_dtype dtype, const void *a, const void *b,
                      int64_t count, double dots[3]);
/* Sets out, which may be a or b, to their adaptive sum, given the dots of the
 * whole vectors. */
void hvd__adasum_combine(hvd_dtype dtype, void *out, const void *a,
                         const void *b, int64_t count, const double dots[3]);

/* Uses the variant of a name from now on, in all threads; "auto": the best.
 * Returns HVD_ERR_CONFIG, with the names that there are, if there is no such
 * variant, or if this processor lacks instructions that it needs. */
int hvd__kernels_choose(const char *name);

/* Returns the name of the variant in use. */
const char *hvd__kernels_name(void);

/* Returns the name of the i-th variant that this processor can run, the
 * plainest first; NULL: there are no more. */
const char *hvd__kernels_offered(int i);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair.h - ops of two elements each, with broadcasting, shared by arithmetic
 * and comparisons.
 */
#ifndef IPU_OPS_PAIR_H
#define IPU_OPS_PAIR_H

#include "ops/op.h"

typedef void ipu__pair_loop(void *y, const void *a, const void *b,
                            int64_t count);

/* binary.inc makes them. */
struct ipu__pair_loops {
    ipu__pair_loop *both;   /* y[i] of a[i] and b[i] */
    ipu__pair_loop *first;  /* of a[i] and b[0] */
    ipu__pair_loop *second; /* of a[0] and b[i] */
};

/* Both inputs are float32 or both int32, and fit together. */
int ipu__pair_shape(const struct ipu__call *call, struct ipu__shape *output);

/* Runs the loops of the op's row. */
int ipu__pair_run(const struct ipu__call *call);

/* The rows of these ops begin with these members. The output may take the place
 * of the first. */
#define IPU__OF_PAIR                                                           \
    .ninputs = 2, .in_place = IPU__FIRST, .by_element = true,                  \
    .run = ipu__pair_run

ipu_tensor ipu__pair_add(ipu_graph *graph, const struct ipu__op *op,
                         ipu_tensor a, ipu_tensor b);

#endif

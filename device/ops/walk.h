/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.h - walks over the elements of a shape, in rows, with the offsets of
 * several operands that lie in memory in different ways: broadcast, permuted,
 * or as a part of something larger.
 *
 * Dimensions that every operand steps through evenly are merged, so that rows
 * are as long as they can be:
 *
 *     struct ipu__walk walk;
 *     for (ipu__walk_start(&walk, shape, 2, strides); !walk.done;
 *          ipu__walk_next(&walk))
 *         ... walk.length elements from walk.offsets[i] on, each
 *         ... walk.steps[i] after the last
 */
#ifndef IPU_OPS_WALK_H
#define IPU_OPS_WALK_H

#include "base/shape.h"

enum { IPU__WALKED = 3 }; /* most operands */

/* The number of elements by which each dimension moves an operand. */
typedef int64_t ipu__strides[IPU_MAX_DIMS];

struct ipu__walk {
    int32_t noperands;
    int32_t ndim; /* dimensions outside of the rows, innermost first */
    int64_t extents[IPU_MAX_DIMS], index[IPU_MAX_DIMS];
    ipu__strides strides[IPU__WALKED];
    int64_t length; /* of a row */
    int64_t steps[IPU__WALKED];
    int64_t offsets[IPU__WALKED];
    bool done;
};

void ipu__walk_start(struct ipu__walk *walk, const struct ipu__shape *shape,
                     int32_t noperands, const ipu__strides *strides);
void ipu__walk_next(struct ipu__walk *walk);

/* The strides of a tensor that lies row-major in memory. */
void ipu__strides_of(const struct ipu__shape *shape, ipu__strides strides);

/* Sets the strides of a tensor that is broadcast to another shape: 0 where it
 * is repeated. */
void ipu__strides_broadcast(const struct ipu__shape *from,
                            const struct ipu__shape *to, ipu__strides strides);

#endif

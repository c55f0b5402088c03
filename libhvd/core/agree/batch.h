/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.h - chooses which requests go together in one collective. The functions
 * are pure.
 */
#ifndef HVD_CORE_BATCH_H
#define HVD_CORE_BATCH_H

#include "core/request/signature.h"

/* Returns true if two requests may share one buffer and one pass: reductions of
 * the same dtype, op, scales, compression and root; broadcasts from one root;
 * allgathers. Adasum is not fused, since its coefficients belong to one tensor;
 * nor are exchanges. */
bool hvd__fusible(const struct hvd__signature *a,
                  const struct hvd__signature *b);

/* Returns the bytes that a request takes in the fusion buffer of nranks ranks.
 * rows is the sum over all ranks if the rows vary. */
size_t hvd__fusion_bytes(const struct hvd__signature *signature, int nranks,
                         int64_t rows);

/* A batch that is being chosen. The caller sets threshold alone. */
struct hvd__fusion {
    size_t threshold; /* most bytes of a batch of several requests */
    const struct hvd__signature *first; /* borrowed; NULL: none is taken yet */
    size_t bytes;                       /* of the requests taken */
};

/* Returns true if the batch takes a request of bytes. The caller offers all
 * that are ready, in the order in which they should go. The first is always
 * taken; each later one that is fusible with it is taken if the sum stays
 * within threshold. A smaller request behind one that does not fit may still be
 * taken, because the order of different tensors does not matter. */
bool hvd__fuse(struct hvd__fusion *fusion,
               const struct hvd__signature *signature, size_t bytes);

#endif

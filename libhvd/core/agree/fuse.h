/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse.h - which requests go together in one collective: pure functions.
 */
#ifndef HVD_CORE_FUSE_H
#define HVD_CORE_FUSE_H

#include "core/request/signature.h"

/* A request that is ready, as far as fusion is concerned. */
struct hvd__fusee {
    const struct hvd__signature *signature;
    size_t bytes; /* of the fusion buffer that it would take */
};

/*
 * Returns true if two requests may share one buffer and one pass: reductions of
 * the same dtype, op, scales, compression and root; broadcasts from one root;
 * allgathers. Adasum is not fused, since its coefficients belong to one tensor;
 * nor are exchanges.
 */
bool hvd__fusible(const struct hvd__signature *a,
                  const struct hvd__signature *b);

/*
 * Returns the bytes that a request takes in the fusion buffer of nranks ranks.
 * rows: those of all ranks together, where they vary.
 */
size_t hvd__fusion_bytes(const struct hvd__signature *signature, int nranks,
                         int64_t rows);

/*
 * Choose a batch from n requests that are ready, in the order in which they
 * should go. The first is always taken; each later one that is fusible with
 * it is taken if the sum stays within threshold bytes. One that does not fit
 * does not keep smaller ones behind it from being taken: order means nothing
 * between different tensors.
 *
 * taken, n flags, is written. Returns how many are taken; 0 only if n is 0.
 */
int hvd__fuse(const struct hvd__fusee *ready, int n, size_t threshold,
              bool *taken);

#endif

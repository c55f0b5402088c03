/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse.h - chooses which requests go together in one collective. The functions
 * are pure.
 */
#ifndef HVD_CORE_FUSE_H
#define HVD_CORE_FUSE_H

#include "core/request/signature.h"

/* A request that is ready, as far as fusion is concerned. */
struct hvd__fusee {
    const struct hvd__signature *signature;
    size_t bytes; /* space that it would take in the fusion buffer */
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
 * rows is the sum over all ranks if the rows vary.
 */
size_t hvd__fusion_bytes(const struct hvd__signature *signature, int nranks,
                         int64_t rows);

/*
 * Chooses a batch from n ready requests, which are given in the order in which
 * they should go. The first is always taken; each later one that is fusible
 * with it is taken if the sum stays within threshold bytes. A smaller request
 * behind one that does not fit may still be taken, because the order of
 * different tensors does not matter.
 *
 * Writes n flags to taken. Returns how many are taken; 0 only if n is 0.
 */
int hvd__fuse(const struct hvd__fusee *ready, int n, size_t threshold,
              bool *taken);

#endif

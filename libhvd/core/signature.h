/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signature.h - what all ranks must agree on before a request's data moves.
 */
#ifndef HVD_CORE_SIGNATURE_H
#define HVD_CORE_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>

#include "hvd.h"

/* X(constant, name): the one list of request kinds. */
#define HVD__KINDS(X)                                                          \
    X(HVD_ALLREDUCE, "allreduce")                                              \
    X(HVD_BROADCAST, "broadcast")                                              \
    X(HVD_BARRIER, "barrier")

/* Normalised: what a kind does not use is zero, so that equal requests have
 * equal signatures. */
struct hvd__signature {
    int32_t kind;
    int32_t dtype;
    int32_t op;
    int32_t root;
    int32_t ndim;
    double prescale;
    double postscale;
    int64_t shape[HVD_MAX_DIMS];
};

bool hvd__signature_equal(const struct hvd__signature *a,
                          const struct hvd__signature *b);

/* Elements of the tensor. The signature is valid, so there is no overflow. */
int64_t hvd__signature_count(const struct hvd__signature *signature);
size_t hvd__signature_bytes(const struct hvd__signature *signature);

/* "allreduce sum float32 [17,3]" into text, cut to size. Returns text. */
const char *hvd__signature_print(const struct hvd__signature *signature,
                                 char *text, size_t size);

#endif

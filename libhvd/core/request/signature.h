/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signature.h - what all ranks must agree on before a request's data moves.
 */
#ifndef HVD_CORE_SIGNATURE_H
#define HVD_CORE_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>

#include "hvd.h"

/* What a kind of request has. */
enum {
    HVD__HAS_TENSOR = 1, /* dtype and shape */
    HVD__HAS_OP = 2,     /* op and scales: a rank that joined is left out */
    HVD__HAS_ROOT = 4,
    HVD__HAS_ROWS = 8,  /* the first dimension is dealt out or collected */
    HVD__MAY_VARY = 16, /* ... and each rank may have its own */
    HVD__HAS_INPUT = 32 /* besides the output */
};

/* X(constant, name, what it has): the one list of kinds. */
#define HVD__KINDS(X)                                                          \
    X(HVD_ALLREDUCE, "allreduce",                                              \
      HVD__HAS_TENSOR | HVD__HAS_OP | HVD__HAS_INPUT)                          \
    X(HVD_ALLGATHER, "allgather",                                              \
      HVD__HAS_TENSOR | HVD__HAS_ROWS | HVD__MAY_VARY | HVD__HAS_INPUT)        \
    X(HVD_BROADCAST, "broadcast", HVD__HAS_TENSOR | HVD__HAS_ROOT)             \
    X(HVD_JOIN, "join", 0)                                                     \
    X(HVD_ALLTOALL, "alltoall",                                                \
      HVD__HAS_TENSOR | HVD__HAS_ROWS | HVD__MAY_VARY | HVD__HAS_INPUT)        \
    X(HVD_BARRIER, "barrier", 0)                                               \
    X(HVD_REDUCESCATTER, "reducescatter",                                      \
      HVD__HAS_TENSOR | HVD__HAS_OP | HVD__HAS_ROWS | HVD__HAS_INPUT)          \
    X(HVD_GATHER, "gather",                                                    \
      HVD__HAS_TENSOR | HVD__HAS_ROOT | HVD__HAS_ROWS | HVD__MAY_VARY |        \
          HVD__HAS_INPUT)                                                      \
    X(HVD_REDUCE, "reduce",                                                    \
      HVD__HAS_TENSOR | HVD__HAS_OP | HVD__HAS_ROOT | HVD__HAS_INPUT)

/* Normalised: what a kind does not use is zero, so that equal requests have
 * equal signatures. */
struct hvd__signature {
    int32_t kind;
    int32_t dtype;
    int32_t op;
    int32_t root; /* a rank of the world */
    int32_t flags;
    int32_t compression;
    int32_t ndim;
    double prescale;
    double postscale;
    int64_t shape[HVD_MAX_DIMS]; /* [0] is HVD__VARIES if each rank may have
                                    its own */
};

#define HVD__VARIES INT64_C(-1)

/* Flags of our own. */
enum {
    HVD__SPARSE = 1 << 16,   /* an allgather of sparse rows, whose op applies */
    HVD__OWN_ROWS = 1 << 17, /* rows vary even if the output has no room */
    /* A gradient of a strategy; or the join of a rank that takes the variables
     * of the last rank afterwards. The first can do without ranks that joined
     * only if they made the second. */
    HVD__OF_STRATEGY = 1 << 18,
    /* A program has set one of these. */
    HVD__FORGED = 1 << 19,
    HVD__OWN_FLAGS = HVD__SPARSE | HVD__OWN_ROWS | HVD__OF_STRATEGY
};

/* By kind; of one that is valid. */
extern const uint8_t hvd__kind_what[HVD_NUM_KINDS];

/* Whether a kind has all of what. */
static inline bool hvd__kind_has(hvd_kind kind, int what)
{
    return (hvd__kind_what[kind] & what) == what;
}

/* Each rank has its own number of rows. */
bool hvd__signature_varies(const struct hvd__signature *signature);
/* Beside the signature each rank announces a number that all must know. */
bool hvd__signature_carries(const struct hvd__signature *signature);

bool hvd__signature_equal(const struct hvd__signature *a,
                          const struct hvd__signature *b);
uint64_t hvd__signature_fingerprint(uint64_t before,
                                    const struct hvd__signature *signature);

/* Elements of the tensor; of one row where the first dimension varies. The
 * signature is valid, so there is no overflow. */
int64_t hvd__signature_count(const struct hvd__signature *signature);
size_t hvd__signature_bytes(const struct hvd__signature *signature);
/* Bytes of one row. */
size_t hvd__signature_row_bytes(const struct hvd__signature *signature);

/* "allreduce sum float32 [17,3]" into text, cut to size. Returns text. */
const char *hvd__signature_print(const struct hvd__signature *signature,
                                 char *text, size_t size);

#endif

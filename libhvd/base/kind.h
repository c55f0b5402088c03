/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kind.h - the one list of the kinds of requests. Their names and what a
 * request of each kind has are made from it.
 */
#ifndef HVD_BASE_KIND_H
#define HVD_BASE_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "hvd.h"

/* The properties of a kind of request. */
enum {
    HVD__HAS_TENSOR = 1, /* dtype and shape */
    HVD__HAS_OP = 2,     /* op and scales: a rank that joined is left out */
    HVD__HAS_ROOT = 4,
    HVD__HAS_ROWS = 8,  /* the first dimension is split or gathered */
    HVD__MAY_VARY = 16, /* ... and may differ from rank to rank */
    HVD__HAS_INPUT = 32 /* an input besides the output */
};

/* X(constant, name, properties): the one list of kinds. */
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

/* The properties of each valid kind. */
extern const uint8_t hvd__kind_what[HVD_NUM_KINDS];

/* Returns whether a valid kind has all of these properties. */
static inline bool hvd__kind_has(hvd_kind kind, int what)
{
    return (hvd__kind_what[kind] & what) == what;
}

#endif

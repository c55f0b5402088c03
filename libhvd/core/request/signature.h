/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signature.h - the signature of a request holds everything that all ranks must
 * agree on before its data moves.
 */
#ifndef HVD_CORE_SIGNATURE_H
#define HVD_CORE_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/kind.h"

/* A signature is normalised: fields that a kind does not use are zero, so that
 * equal requests have equal signatures. */
struct hvd__signature {
    int32_t kind;
    int32_t dtype;
    int32_t op;
    int32_t root; /* a rank of the world */
    int32_t flags;
    int32_t compression;
    int32_t ndim;
    int32_t unused; /* 0: no byte is left unset (core/agree/wire.h) */
    double prescale;
    double postscale;
    int64_t shape[HVD_MAX_DIMS]; /* [0] is HVD__VARIES if it may differ between
                                    ranks */
};

#define HVD__VARIES INT64_C(-1)

/* Flags of the library. */
enum {
    HVD__SPARSE = 1 << 16, /* an allgather of sparse rows; op applies to them */
    HVD__OWN_ROWS = 1 << 17, /* rows vary even if the output has no capacity */
    /* A gradient of a strategy, or the join of a rank that takes the variables
       of the last rank afterwards. The gradient runs without ranks that have
       joined only if their joins have this flag. */
    HVD__OF_STRATEGY = 1 << 18,
    /* A program has set one of the library's flags. */
    HVD__FORGED = 1 << 19,
    HVD__OWN_FLAGS = HVD__SPARSE | HVD__OWN_ROWS | HVD__OF_STRATEGY
};

/* Returns true if each rank has its own number of rows. */
bool hvd__signature_varies(const struct hvd__signature *signature);
/* Returns true if each rank announces a number with the signature, which all
 * ranks must know: its rows, or the bytes of its code. */
bool hvd__signature_carries(const struct hvd__signature *signature);

bool hvd__signature_equal(const struct hvd__signature *a,
                          const struct hvd__signature *b);
uint64_t hvd__signature_fingerprint(uint64_t before,
                                    const struct hvd__signature *signature);

/* Returns the elements of the tensor, or of one row if the first dimension
 * varies. The signature is valid, so there is no overflow. */
int64_t hvd__signature_count(const struct hvd__signature *signature);
size_t hvd__signature_bytes(const struct hvd__signature *signature);
/* Returns the bytes of one row. */
size_t hvd__signature_row_bytes(const struct hvd__signature *signature);

/* Writes a text like "allreduce sum float32 [17,3]" into text, cut to size.
 * Returns text. */
const char *hvd__signature_print(const struct hvd__signature *signature,
                                 char *text, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * types.h - the element types and the reductions of the benchmark.
 *
 * Each is one list: the number in hvd.h, the name that nccl-tests prints, hvd's
 * name if it differs, and the facts about the type that the fill pattern needs.
 */
#ifndef BENCH_TYPES_H
#define BENCH_TYPES_H

#include "hvd.h"

#include <stddef.h>
#include <stdint.h>

enum bench_class {
    BENCH_UNSIGNED,
    BENCH_SIGNED,
    BENCH_FLOATING,
    BENCH_BOOLEAN
};

struct bench_dtype {
    hvd_dtype id;
    enum bench_class class;
    size_t bytes;      /* size of one element */
    const char *name;  /* name in the table */
    const char *alias; /* second name; NULL: none */
    int64_t exact; /* largest integer up to which all are represented exactly */
    double epsilon; /* spacing of floating-point values at 1; integers: 0 */
};

struct bench_op {
    hvd_op id;
    const char *name;
    const char *alias;
};

/* The lists; the name in the last entry is NULL. */
extern const struct bench_dtype bench_dtypes[];
extern const struct bench_op bench_ops[];

/* Find by name or alias; return NULL if there is none. */
const struct bench_dtype *bench_dtype_find(const char *name);
const struct bench_op *bench_op_find(const char *name);

/* Returns 1 if the reduction is defined for the type: all but averages of
 * bool. */
int bench_op_defined(const struct bench_op *op, const struct bench_dtype *type);

#endif

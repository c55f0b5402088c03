/* SPDX-License-Identifier: Apache-2.0 */
/*
 * types.h - the element types and reductions the benchmark knows.
 *
 * One list each: number in hvd.h, name as nccl-tests prints it, our own name
 * where it differs, and what the fill pattern needs to know about the type.
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
    size_t bytes;      /* of one element */
    const char *name;  /* as in the table */
    const char *alias; /* also accepted; NULL if there is none */
    int64_t exact;     /* integers up to this are represented exactly */
    double epsilon;    /* spacing of floating-point values at 1; else 0 */
};

struct bench_op {
    hvd_op id;
    const char *name;
    const char *alias;
};

/* The lists, ended by an entry whose name is NULL. */
extern const struct bench_dtype bench_dtypes[];
extern const struct bench_op bench_ops[];

/* By name or alias; NULL if there is none of that name. */
const struct bench_dtype *bench_dtype_find(const char *name);
const struct bench_op *bench_op_find(const char *name);

/* 1 if the reduction is defined for the type: all but averages of bool. */
int bench_op_defined(const struct bench_op *op, const struct bench_dtype *type);

#endif

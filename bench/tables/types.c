/* SPDX-License-Identifier: Apache-2.0 */
#include "tables/types.h"

#include <string.h>

const struct bench_dtype bench_dtypes[] = {
    {HVD_INT8, BENCH_SIGNED, 1, "int8", NULL, 127, 0},
    {HVD_UINT8, BENCH_UNSIGNED, 1, "uint8", NULL, 255, 0},
    {HVD_INT16, BENCH_SIGNED, 2, "int16", NULL, 32767, 0},
    {HVD_UINT16, BENCH_UNSIGNED, 2, "uint16", NULL, 65535, 0},
    {HVD_INT32, BENCH_SIGNED, 4, "int32", NULL, INT32_MAX, 0},
    {HVD_INT64, BENCH_SIGNED, 8, "int64", NULL, INT64_MAX, 0},
    {HVD_FLOAT16, BENCH_FLOATING, 2, "half", "float16", 2048, 0x1p-10},
    {HVD_BFLOAT16, BENCH_FLOATING, 2, "bfloat16", NULL, 256, 0x1p-7},
    {HVD_FLOAT32, BENCH_FLOATING, 4, "float", "float32", 1 << 24, 0x1p-23},
    {HVD_FLOAT64, BENCH_FLOATING, 8, "double", "float64", INT64_C(1) << 53,
     0x1p-52},
    {HVD_BOOL, BENCH_BOOLEAN, 1, "bool", NULL, 1, 0},
    {0, BENCH_UNSIGNED, 0, NULL, NULL, 0, 0},
};

const struct bench_op bench_ops[] = {
    {HVD_SUM, "sum", NULL},          {HVD_PRODUCT, "prod", "product"},
    {HVD_MIN, "min", NULL},          {HVD_MAX, "max", NULL},
    {HVD_AVERAGE, "avg", "average"}, {0, NULL, NULL},
};

static int is_called(const char *wanted, const char *name, const char *alias)
{
    return strcmp(wanted, name) == 0 ||
           (alias != NULL && strcmp(wanted, alias) == 0);
}

const struct bench_dtype *bench_dtype_find(const char *name)
{
    for (const struct bench_dtype *t = bench_dtypes; t->name != NULL; t++) {
        if (is_called(name, t->name, t->alias)) {
            return t;
        }
    }
    return NULL;
}

const struct bench_op *bench_op_find(const char *name)
{
    for (const struct bench_op *o = bench_ops; o->name != NULL; o++) {
        if (is_called(name, o->name, o->alias)) {
            return o;
        }
    }
    return NULL;
}

int bench_op_defined(const struct bench_op *op, const struct bench_dtype *type)
{
    return op->id != HVD_AVERAGE || type->class != BENCH_BOOLEAN;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"

#include <string.h>

#include "base/status.h"

static const struct {
    const char *name;
    int bytes;
} dtypes[HVD_NUM_DTYPES] = {
#define X(constant, name, bytes, suffix) [constant] = {name, bytes},
    HVD__DTYPES(X)
#undef X
};

static const char *const ops[HVD_NUM_OPS] = {
#define X(constant, name) [constant] = name,
    HVD__OPS(X)
#undef X
};

const char *hvd_dtype_name(hvd_dtype dtype)
{
    return dtype >= 0 && dtype < HVD_NUM_DTYPES ? dtypes[dtype].name : NULL;
}

const char *hvd_op_name(hvd_op op)
{
    return op >= 0 && op < HVD_NUM_OPS ? ops[op] : NULL;
}

int hvd_dtype_from_name(const char *name)
{
    for (int i = 0; name && i < HVD_NUM_DTYPES; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return i;
    return hvd__fail(HVD_ERR_ARGUMENT, "there is no dtype '%s'",
                     name ? name : "(NULL)");
}

int hvd_op_from_name(const char *name)
{
    for (int i = 0; name && i < HVD_NUM_OPS; i++)
        if (strcmp(ops[i], name) == 0)
            return i;
    return hvd__fail(HVD_ERR_ARGUMENT, "there is no reduction operation '%s'",
                     name ? name : "(NULL)");
}

int hvd_dtype_size(hvd_dtype dtype)
{
    if (dtype < 0 || dtype >= HVD_NUM_DTYPES)
        return hvd__fail(HVD_ERR_ARGUMENT, "dtype %d is none (0 to %d)",
                         (int)dtype, HVD_NUM_DTYPES - 1);
    return dtypes[dtype].bytes;
}

size_t hvd__dtype_bytes(hvd_dtype dtype)
{
    return (size_t)dtypes[dtype].bytes;
}

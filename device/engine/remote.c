/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of remote buffers, between runs. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "engine/engine.h"

/* The value of the buffer, checked. */
static int find_row(const ipu_engine *engine, const char *name, int64_t row,
                    const void *data, size_t bytes)
{
    const struct ipu_executable *x;
    int32_t v = 0;
    size_t wanted;

    if (!engine || !name || !data)
        return ipu__fail(IPU_ERR_ARGUMENT, "remote buffer: %s is NULL",
                         !engine ? "the engine"
                         : !name ? "the name"
                                 : "the host memory");
    if (ipu__engine_is_running(engine))
        return ipu__fail(IPU_ERR_STATE,
                         "remote buffer '%s': the engine is running", name);
    x = ipu__engine_executable(engine);
    while (v < x->nvalues &&
           (x->values[v].kind != IPU__VARIABLE || !x->values[v].rows ||
            strcmp(x->values[v].name, name) != 0))
        v++;
    if (v == x->nvalues)
        return ipu__fail(IPU_ERR_NAME, "there is no remote buffer '%s'", name);
    if (row < 0 || row >= x->values[v].shape.extents[0])
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "remote buffer '%s' has rows 0 to %" PRId64
                         ", not %" PRId64,
                         name, x->values[v].shape.extents[0] - 1, row);
    wanted = x->values[v].bytes / (size_t)x->values[v].shape.extents[0];
    if (bytes != wanted)
        return ipu__fail(IPU_ERR_SHAPE,
                         "a row of remote buffer '%s' is %zu bytes, not %zu",
                         name, wanted, bytes);
    return v;
}

int ipu_remote_write(ipu_engine *engine, const char *name, int64_t row,
                     const void *data, size_t bytes)
{
    int v = find_row(engine, name, row, data, bytes);

    IPU_TRY(v);
    memcpy((char *)ipu__engine_value(engine, v) + bytes * (size_t)row, data,
           bytes);
    return IPU_OK;
}

int ipu_remote_read(ipu_engine *engine, const char *name, int64_t row,
                    void *data, size_t bytes)
{
    int v = find_row(engine, name, row, data, bytes);

    IPU_TRY(v);
    memcpy(data, (char *)ipu__engine_value(engine, v) + bytes * (size_t)row,
           bytes);
    return IPU_OK;
}

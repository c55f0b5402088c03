/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row.c - rows of a buffer in the memory beside the chip.
 *
 * A buffer is a variable that no tile holds: [rows, shape...]. Loading copies a
 * row out of it; storing changes one in place, and nodes that are built
 * afterwards see the changed buffer (graph/bodies.c). Its cycles are those of
 * streaming a row, which the compiler counts.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/op.h"

static int check_row(const struct ipu__call *call, int64_t *row)
{
    int64_t rows = call->inputs[0].shape.extents[0];

    *row = *(const int32_t *)call->inputs[1].data;
    if (*row >= 0 && *row < rows)
        return IPU_OK;
    return ipu__fail(IPU_ERR_DATA,
                     "%s: there is no row %" PRId64
                     " in remote buffer '%s': it has 0 to %" PRId64,
                     call->op->name, *row, call->inputs[0].name, rows - 1);
}

/* Buffers have rows: who makes them, or reads them from a file, has seen to
 * that. */
static int check_index(const struct ipu__call *call)
{
    return ipu__expect(call, 1, IPU_INT32, 0, "scalar, the row's number");
}

static void row_shape(const struct ipu__call *call, struct ipu__shape *row)
{
    const struct ipu__shape *all = &call->inputs[0].shape;

    *row = (struct ipu__shape){.dtype = all->dtype, .ndim = all->ndim - 1};
    for (int32_t i = 0; i < row->ndim; i++)
        row->extents[i] = all->extents[i + 1];
}

/* Sets the work of one row between the chip and the memory beside it. */
static void stream_row(const struct ipu__call *call, struct ipu__work *work)
{
    struct ipu__shape row;

    row_shape(call, &row);
    work->kind = IPU__WORK_STREAMING;
    work->outputs = ipu__shape_count(&row);
    work->element_bytes = (int32_t)ipu__dtype_bytes(row.dtype);
}

static int load_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(check_index(call));
    row_shape(call, output);
    return IPU_OK;
}

static int load(const struct ipu__call *call)
{
    size_t bytes = ipu__shape_bytes(&call->output.shape);
    int64_t row;

    IPU_TRY(check_row(call, &row));
    memcpy(call->output.data,
           (const char *)call->inputs[0].data + bytes * (size_t)row, bytes);
    return IPU_OK;
}

const struct ipu__op ipu__row_load = {
    .name = "load_row",
    .ninputs = 2,
    .raw = true,
    .checks = true,
    .shape = load_shape,
    .run = load,
    .cost = stream_row,
};

static int store_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    struct ipu__shape row;

    IPU_TRY(check_index(call));
    row_shape(call, &row);
    if (!ipu__shape_equal(&row, &call->inputs[2].shape))
        return ipu__fail(
            IPU_ERR_SHAPE, "store_row: %s is %s, a row of '%s' is %s",
            call->inputs[2].name, ipu__shape_print(&call->inputs[2].shape).text,
            call->inputs[0].name, ipu__shape_print(&row).text);
    *output = call->inputs[0].shape;
    return IPU_OK;
}

/* The output is where the buffer is. */
static int store(const struct ipu__call *call)
{
    size_t bytes = ipu__shape_bytes(&call->inputs[2].shape);
    int64_t row;

    IPU_TRY(check_row(call, &row));
    memcpy((char *)call->inputs[0].data + bytes * (size_t)row,
           call->inputs[2].data, bytes);
    return IPU_OK;
}

const struct ipu__op ipu__row_store = {
    .name = "store_row",
    .ninputs = 3,
    .raw = true,
    .writes = true,
    .checks = true,
    .effects = true,
    .shape = store_shape,
    .run = store,
    .cost = stream_row,
};

/* ---------------------------------------------------------------- builders */

/* The output of a store's node, its last, becomes the buffer's newest state. */
static int renew_buffer(ipu_graph *g, int32_t before)
{
    int32_t last = g->nnodes - 1;
    struct ipu__tensor *state = &g->tensors[g->nodes[last].output];
    char *name = strdup(g->tensors[before].name);

    if (!name)
        return ipu__fail_memory(strlen(g->tensors[before].name) + 1);
    free(state->name);
    state->name = name;
    state->kind = IPU__VARIABLE;
    ipu__renew_as(g, g->nodes[last].output, before, last);
    g->nodes[last].effect = true;
    return IPU_OK;
}

/* The place of a tensor among dimensions with one more, in front. */
static int buffer_shape(const char *name, ipu_dtype dtype, int64_t rows,
                        int32_t ndim, const int64_t *shape, int64_t *extents)
{
    struct ipu__shape row;
    char what[128];

    snprintf(what, sizeof what, "remote buffer '%.80s'", name ? name : "");
    if (ndim >= IPU_MAX_DIMS)
        return ipu__fail(IPU_ERR_SHAPE,
                         "%s: rows of %d dimensions; they have at most %d",
                         what, (int)ndim, IPU_MAX_DIMS - 1);
    IPU_TRY(ipu__shape_make(what, dtype, ndim, shape, &row));
    if (rows < 1 || rows > INT32_MAX)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "%s: %" PRId64 " rows; it has 1 to 2^31 - 1", what,
                         rows);
    if (ipu__shape_bytes(&row) < 1 ||
        ipu__shape_bytes(&row) > IPU_MAX_REMOTE_BYTES)
        return ipu__fail(IPU_ERR_SHAPE,
                         "%s: a row is %zu bytes; a transfer has 1 to %d "
                         "(128 MiB): make more rows of it",
                         what, ipu__shape_bytes(&row), IPU_MAX_REMOTE_BYTES);
    extents[0] = rows;
    for (int32_t i = 0; i < ndim; i++)
        extents[i + 1] = shape[i];
    return IPU_OK;
}

/* Marks the buffer as remote, in the outermost graph, too. */
static void mark_remote(ipu_graph *g, ipu_tensor tensor)
{
    for (int32_t index; g; g = g->parent) {
        index = ipu__index(g, tensor);
        g->tensors[index].remote = true;
        if (g->tensors[index].imported)
            for (int32_t i = 0; i < g->nimports; i++)
                if (g->imports[i].inner == index)
                    tensor = ipu__handle(g->parent, g->imports[i].outer);
    }
}

ipu_remote_buffer ipu_remote_buffer_new(ipu_graph *graph, const char *name,
                                        ipu_dtype dtype, int64_t rows,
                                        int32_t ndim, const int64_t *shape)
{
    int64_t extents[IPU_MAX_DIMS];
    ipu_tensor tensor;
    int status;

    if (!graph) {
        ipu__fail(IPU_ERR_ARGUMENT, "remote buffer: the graph is NULL");
        return (ipu_remote_buffer){-1};
    }
    if (graph->status < 0)
        return (ipu_remote_buffer){-1};
    status = buffer_shape(name, dtype, rows, ndim, shape, extents);
    if (status < 0) {
        ipu__graph_fail(graph, status);
        return (ipu_remote_buffer){-1};
    }
    tensor = ipu_variable(graph, name, dtype, ndim + 1, extents);
    if (tensor.id >= 0)
        mark_remote(graph, tensor);
    return (ipu_remote_buffer){tensor.id};
}

/* The buffer as a tensor; it fails in the op if it is none. */
static int check_buffer(ipu_graph *graph, const struct ipu__op *op,
                        ipu_remote_buffer buffer)
{
    int32_t index = ipu__index_of(graph, op, (ipu_tensor){.id = buffer.id});

    IPU_TRY(index);
    if (graph->tensors[index].remote)
        return index;
    return ipu__graph_fail(
        graph, ipu__fail(IPU_ERR_ARGUMENT, "%s: %s is no remote buffer",
                         op->name, graph->tensors[index].name));
}

ipu_tensor ipu_remote_load(ipu_graph *graph, ipu_remote_buffer buffer,
                           ipu_tensor index)
{
    const ipu_tensor inputs[] = {{buffer.id}, index};

    if (check_buffer(graph, &ipu__row_load, buffer) < 0)
        return (ipu_tensor){-1};
    return ipu__add(graph, &ipu__row_load, inputs, NULL);
}

int ipu_remote_store(ipu_graph *graph, ipu_remote_buffer buffer,
                     ipu_tensor index, ipu_tensor value)
{
    const ipu_tensor inputs[] = {{buffer.id}, index, value};
    int32_t before = check_buffer(graph, &ipu__row_store, buffer);
    ipu_tensor output;
    int status;

    IPU_TRY(before);
    output = ipu__add(graph, &ipu__row_store, inputs, NULL);
    if (output.id < 0)
        return ipu__graph_status(graph);
    status = renew_buffer(graph, before);
    return status < 0 ? ipu__graph_fail(graph, status) : IPU_OK;
}

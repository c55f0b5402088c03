/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop_unroll.c - builds the iterations of a Loop or Scan one after the other.
 * What is known of carried values and rows stays known. The number of nodes of
 * all iterations is limited.
 */
#include <inttypes.h>
#include <string.h>

#include "onnx/operators/loops.h"

/* Nodes and outputs of all iterations. */
enum { MOST_NODES = 1 << 14 };

/* The rows of an iteration. */
static struct ipu__onnx_value take_row(struct onnx__loop *loop, int i,
                                       int64_t iteration, ipu_graph *scratch)
{
    const struct onnx__rows *rows = &loop->taken[i];
    struct ipu__onnx_value all = rows->value, row = onnx__loop_row(&all);
    int64_t n = all.extents[0], starts[IPU_MAX_DIMS] = {0}, sizes[IPU_MAX_DIMS];
    int64_t at = rows->backward ? n - 1 - iteration : iteration;
    int64_t each = onnx__size(&row);
    ipu_graph *g = loop->call->graph;

    if (onnx__known(loop->call, &all)) {
        row.floats = all.floats ? all.floats + at * each : NULL;
        row.wholes = all.wholes ? all.wholes + at * each : NULL;
        return row;
    }
    if (scratch)
        return ipu__onnx_placeholder(loop->call, scratch, &row);
    starts[0] = at;
    memcpy(sizes, all.extents, sizeof sizes);
    sizes[0] = 1;
    row.tensor = ipu_slice(g, onnx__tensor(loop->call, &all), starts, sizes);
    row.tensor = ipu_reshape(g, row.tensor, row.ndim, row.extents);
    return row;
}

/* Builds an iteration. Carried values and rows are in the graph of the node, or
 * in scratch. */
static int add_iteration(struct onnx__loop *loop, int64_t iteration,
                         struct ipu__onnx_value *carried, ipu_graph *scratch)
{
    struct ipu__onnx_value *inputs = loop->inputs;
    int64_t *number = onnx__loop_keep(loop, 1, sizeof *number);
    size_t n = 0;
    int status;

    if (!number)
        return ipu__onnx_end(loop->call->builder, IPU_ERR_MEMORY);
    *number = iteration;
    if (loop->numbered) {
        inputs[n++] = onnx__loop_number(IPU_ONNX_INT64, number);
        inputs[n++] = onnx__loop_number(IPU_ONNX_BOOL, &onnx__loop_holds);
    }
    for (int i = 0; i < loop->ncarried; i++)
        inputs[n++] = carried[i];
    for (int i = 0; i < loop->ntaken; i++)
        inputs[n++] = take_row(loop, i, iteration, scratch);
    status =
        ipu__onnx_scope_open(loop->call, loop->body, scratch, &loop->scope);
    if (status >= 0)
        status = onnx__loop_body(loop, scratch ? scratch : loop->call->graph);
    ipu__onnx_scope_close(loop->call, &loop->scope, scratch != NULL);
    return status;
}

int64_t onnx__loop_most(const struct onnx__loop *loop)
{
    size_t each = loop->body->nodes.count + loop->body->outputs.count + 1;

    return 1 + MOST_NODES / (int64_t)each;
}

/* Iterations that have been built. */
struct unrolled {
    struct ipu__onnx_value *carried;
    struct ipu__onnx_value *rows; /* [iteration][those that are made] */
    int64_t count;
};

static int unroll(struct onnx__loop *loop, struct unrolled *u,
                  ipu_graph *scratch)
{
    int first = onnx__loop_first_output(loop), made = first + loop->ncarried;
    bool goes_on = true;

    for (; goes_on && u->count != loop->trips; u->count++) {
        if (u->count == onnx__loop_most(loop))
            return onnx__refuse(loop->call,
                                "it cannot be a loop of the device, and more "
                                "than %" PRId64 " iterations are too many to "
                                "be built one after the other",
                                u->count);
        IPU_TRY(add_iteration(loop, u->count, u->carried, scratch));
        IPU_TRY(onnx__loop_condition(loop, &goes_on));
        if (loop->ends && u->count + 1 != loop->trips)
            return onnx__refuse(loop->call,
                                "it cannot be a loop of the device, and "
                                "whether it goes on depends on data");
        for (int i = 0; i < loop->ncarried; i++)
            u->carried[i] = loop->outputs[first + i];
        for (int i = 0; i < loop->nmade; i++)
            u->rows[u->count * loop->nmade + i] = loop->outputs[made + i];
    }
    return IPU_OK;
}

/* Copies rows that are known into one value. Returns whether they are. */
static bool join_known(struct onnx__loop *loop, const struct unrolled *u, int i)
{
    struct ipu__onnx_value *to = &loop->made[i].value;
    size_t each = (size_t)onnx__size(&u->rows[i]), at = 0;
    bool whole = onnx__is_whole(to->type);
    float *floats = NULL;
    int64_t *wholes = NULL;

    for (int64_t t = 0; t < u->count; t++)
        if (!onnx__known(loop->call, &u->rows[t * loop->nmade + i]))
            return false;
    if (whole)
        to->wholes = wholes =
            onnx__loop_keep(loop, (size_t)u->count * each, sizeof *wholes);
    else
        to->floats = floats =
            onnx__loop_keep(loop, (size_t)u->count * each, sizeof *floats);
    for (int64_t k = 0; k < u->count && (floats || wholes); k++, at += each) {
        int64_t t = loop->made[i].backward ? u->count - 1 - k : k;
        const struct ipu__onnx_value *row = &u->rows[t * loop->nmade + i];

        if (whole)
            memcpy(wholes + at, row->wholes, each * sizeof *wholes);
        else
            memcpy(floats + at, row->floats, each * sizeof *floats);
    }
    return floats || wholes;
}

/* Stacks the rows of number i, of which there is at least one. */
static int join_rows(struct onnx__loop *loop, const struct unrolled *u, int i)
{
    struct ipu__onnx_value *to = &loop->made[i].value;
    struct ipu__onnx_value *first = &u->rows[i];
    ipu_tensor *parts;

    for (int64_t t = 1; t < u->count; t++)
        if (!onnx__same_shape(first, &u->rows[t * loop->nmade + i]))
            return onnx__refuse(loop->call,
                                "its iterations make rows of different types "
                                "or shapes");
    if (first->ndim == IPU_MAX_DIMS)
        return onnx__check_shape(loop->call, first->ndim + 1, NULL);
    *to = onnx__loop_number(first->type, NULL);
    to->ndim = first->ndim + 1;
    to->extents[0] = u->count;
    memcpy(to->extents + 1, first->extents,
           (size_t)first->ndim * sizeof *to->extents);
    if (join_known(loop, u, i))
        return IPU_OK;
    parts = onnx__loop_keep(loop, (size_t)u->count, sizeof *parts);
    if (!parts)
        return ipu__onnx_end(loop->call->builder, IPU_ERR_MEMORY);
    for (int64_t k = 0; k < u->count; k++) {
        int64_t t = loop->made[i].backward ? u->count - 1 - k : k;

        parts[k] = onnx__tensor(loop->call, &u->rows[t * loop->nmade + i]);
    }
    to->tensor = ipu_stack(loop->call->graph, (int32_t)u->count, parts, 0);
    return IPU_OK;
}

/* Makes rows of no iterations, whose shapes the trial has shown. */
static int join_nothing(struct onnx__loop *loop, int i)
{
    const struct ipu__onnx_value *row =
        &loop->outputs[onnx__loop_first_output(loop) + loop->ncarried + i];
    struct unrolled none = {
        .rows = onnx__loop_keep(loop, (size_t)loop->nmade, sizeof *none.rows)};

    if (!none.rows)
        return ipu__onnx_end(loop->call->builder, IPU_ERR_MEMORY);
    none.rows[i] = *row;
    return join_rows(loop, &none, i);
}

int onnx__loop_unroll(struct onnx__loop *loop, ipu_graph *scratch)
{
    size_t n = (size_t)loop->ncarried;
    struct unrolled u = {
        .carried = onnx__loop_keep(loop, n, sizeof *u.carried),
        .rows =
            onnx__loop_keep(loop, (size_t)(onnx__loop_most(loop) * loop->nmade),
                            sizeof *u.rows)};

    if (!u.carried || !u.rows)
        return ipu__onnx_end(loop->call->builder, IPU_ERR_MEMORY);
    for (size_t i = 0; i < n; i++) {
        u.carried[i] = scratch ? ipu__onnx_in_scratch(loop->call, scratch,
                                                      &loop->carried[i])
                               : loop->carried[i];
    }
    if (loop->trips == 0)
        for (int i = 0; i < loop->nmade; i++)
            IPU_TRY(join_nothing(loop, i));
    IPU_TRY(unroll(loop, &u, scratch));
    if (scratch)
        return IPU_OK;
    for (size_t i = 0; i < n; i++)
        loop->carried[i] = u.carried[i];
    for (int i = 0; i < loop->nmade && u.count > 0; i++)
        IPU_TRY(join_rows(loop, &u, i));
    return IPU_OK;
}

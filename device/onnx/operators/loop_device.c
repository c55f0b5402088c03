/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop_device.c - Loop and Scan as loops of the device: ipu_repeat for a known
 * number of iterations, ipu_while for a condition.
 *
 * The device's loop carries the number of the iteration, the condition (of
 * ipu_while alone), the carried values, and those that are made: each of them
 * is as large as for all iterations from the beginning, and an iteration
 * updates its row. Rows that are taken are gathered by the number of the
 * iteration from values around the loop.
 */
#include <string.h>

#include "onnx/operators/loops.h"

/* The values that a loop of the device carries, in this order: the number of
 * the iteration, the condition if there is one, and those of ONNX. */
enum { NUMBER, CONDITION, OTHERS };

/* The place of the first carried value of ONNX. */
static int32_t first_of(const struct onnx__loop *loop)
{
    return loop->ends ? OTHERS : CONDITION;
}

static ipu_tensor scalar(ipu_graph *g, double value)
{
    return ipu_fill(g, IPU_INT32, 0, NULL, value);
}

/* The number of a row in this iteration. */
static ipu_tensor row_number(const struct onnx__rows *rows, ipu_graph *g,
                             ipu_tensor number)
{
    double last = (double)(rows->value.extents[0] - 1);

    return rows->backward ? ipu_subtract(g, scalar(g, last), number) : number;
}

static struct ipu__onnx_value as_value(const struct ipu__onnx_value *like,
                                       ipu_tensor tensor)
{
    struct ipu__onnx_value value = *like;

    value.floats = NULL;
    value.wholes = NULL;
    value.initializer = NULL;
    value.last.id = value.input = -1;
    value.tensor = tensor;
    return value;
}

static void set_inputs(struct onnx__loop *loop, ipu_graph *g, int32_t first,
                       const ipu_tensor *in)
{
    const struct ipu__onnx_value number =
        onnx__loop_number(IPU_ONNX_INT64, NULL);
    struct ipu__onnx_value *to = loop->inputs;

    if (loop->numbered) {
        *to++ = as_value(&number, in[NUMBER]);
        *to++ = onnx__loop_number(IPU_ONNX_BOOL, &onnx__loop_holds);
    }
    for (int i = 0; i < loop->ncarried; i++)
        *to++ = as_value(&loop->carried[i], in[first + i]);
    for (int i = 0; i < loop->ntaken; i++) {
        const struct onnx__rows *rows = &loop->taken[i];
        struct ipu__onnx_value row = as_value(
            &rows->value, ipu_gather(g, rows->value.tensor,
                                     row_number(rows, g, in[NUMBER]), 0));

        row.ndim--;
        memmove(row.extents, row.extents + 1,
                (size_t)row.ndim * sizeof *row.extents);
        *to++ = row;
    }
}

static int iterate(ipu_graph *g, void *context, int32_t ninputs,
                   const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    struct onnx__loop *loop = context;
    struct ipu__onnx_value *from = loop->outputs;
    int32_t first = first_of(loop), made = first + loop->ncarried;
    struct ipu__onnx_call inner = *loop->call;

    (void)ninputs, (void)noutputs;
    set_inputs(loop, g, first, in);
    IPU_TRY(onnx__loop_body(loop, g));
    inner.builder = &loop->scope;
    inner.graph = g;
    if (first > CONDITION)
        out[CONDITION] =
            loop->numbered
                ? ipu_reshape(g, onnx__tensor(&inner, &from[0]), 0, NULL)
                : in[CONDITION];
    from += onnx__loop_first_output(loop);
    out[NUMBER] = ipu_add(g, in[NUMBER], scalar(g, 1));
    for (int i = 0; i < loop->ncarried; i++)
        out[first + i] = onnx__tensor(&inner, from++);
    for (int i = 0; i < loop->nmade; i++)
        out[made + i] = ipu_dynamic_update(
            g, in[made + i], row_number(&loop->made[i], g, in[NUMBER]),
            onnx__tensor(&inner, from++), 0);
    return loop->scope.status;
}

static int go_on(ipu_graph *g, void *context, int32_t ninputs,
                 const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    const struct onnx__loop *loop = context;
    ipu_tensor holds_now = in[CONDITION];

    (void)ninputs, (void)noutputs;
    out[0] = holds_now;
    if (loop->limit.id >= 0)
        out[0] =
            ipu_multiply(g, holds_now, ipu_less(g, in[NUMBER], loop->limit));
    return IPU_OK;
}

/* Sets what the loop carries before the first iteration. Returns its number. */
static int32_t begin(struct onnx__loop *loop, ipu_tensor *v)
{
    int32_t first = first_of(loop), n = first;
    struct ipu__onnx_call *call = loop->call;

    v[NUMBER] = scalar(call->graph, 0);
    if (first > CONDITION)
        v[CONDITION] =
            loop->begins.id >= 0 ? loop->begins : scalar(call->graph, 1);
    for (int i = 0; i < loop->ncarried; i++)
        v[n++] = onnx__tensor(call, &loop->carried[i]);
    for (int i = 0; i < loop->nmade; i++) {
        const struct ipu__onnx_value *to = &loop->made[i].value;

        v[n++] = ipu_fill(call->graph, ipu__onnx_kind(to->type)->dtype,
                          to->ndim, to->extents, 0);
    }
    for (int i = 0; i < loop->ntaken; i++)
        loop->taken[i].value.tensor = onnx__tensor(call, &loop->taken[i].value);
    return n;
}

/* Sets the shapes of what is made to those of rows that the trial has made. */
static int set_made(struct onnx__loop *loop)
{
    const struct ipu__onnx_value *row =
        &loop->outputs[onnx__loop_first_output(loop) + loop->ncarried];

    for (int i = 0; i < loop->nmade; i++, row++) {
        struct ipu__onnx_value *to = &loop->made[i].value;

        if (row->ndim == IPU_MAX_DIMS)
            return onnx__check_shape(loop->call, row->ndim + 1, NULL);
        *to = onnx__loop_number(row->type, NULL);
        to->ndim = row->ndim + 1;
        to->extents[0] = loop->trips;
        memcpy(to->extents + 1, row->extents,
               (size_t)row->ndim * sizeof *row->extents);
        IPU_TRY(onnx__check_shape(loop->call, to->ndim, to->extents));
    }
    return IPU_OK;
}

static void run(struct onnx__loop *loop, ipu_tensor *v)
{
    ipu_graph *g = loop->call->graph;
    int32_t n = begin(loop, v);

    if (first_of(loop) == CONDITION)
        ipu_repeat(g, loop->trips, iterate, loop, n, v, NULL, v);
    else
        ipu_while(g, loop->trips < 0 ? 0 : loop->trips, go_on, iterate, loop, n,
                  v, NULL, v);
}

/* Sets what the loop has made. */
static int end(struct onnx__loop *loop, const ipu_tensor *v)
{
    int32_t n = first_of(loop);

    for (int i = 0; i < loop->ncarried; i++)
        loop->carried[i] = as_value(&loop->carried[i], v[n++]);
    for (int i = 0; i < loop->nmade; i++)
        loop->made[i].value.tensor = v[n++];
    return IPU_OK;
}

int onnx__loop_iterate(struct onnx__loop *loop)
{
    struct ipu__onnx_call *call = loop->call;
    size_t n = OTHERS + (size_t)(loop->ncarried + loop->nmade);
    ipu_tensor *v =
        ipu__onnx_keep_outside(&call->builder->model->file, n * sizeof *v);
    int status;

    if (!v)
        return ipu__onnx_end(call->builder, IPU_ERR_MEMORY);
    memset(v, -1, n * sizeof *v);
    IPU_TRY(set_made(loop));
    status = ipu__onnx_scope_open(call, loop->body, NULL, &loop->scope);
    if (status >= 0)
        run(loop, v);
    ipu__onnx_scope_close(call, &loop->scope, false);
    IPU_TRY(status);
    return end(loop, v);
}

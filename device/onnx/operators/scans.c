/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scans.c - Scan: a loop over the slices of its last inputs along an axis of
 * each. The inputs before them are carried.
 *
 * In version 8, the first axis of all values is a batch, whose elements are
 * scanned by themselves, along the second axis.
 */
#include <string.h>

#include "onnx/operators/loops.h"

enum { BATCHED_VERSION = 8, MOST_BATCH = 64 };

struct scan {
    struct onnx__loop loop;
    int first;              /* input of the node */
    int64_t batch, element; /* -1: there is no batch */
};

/* Reads number i of a list of integers, which need not be there. */
static int read_list(struct ipu__onnx_call *call, const char *name, int i,
                     int count, int64_t *number)
{
    const struct ipu__onnx_ints *list = onnx__ints(call, name);

    *number = 0;
    if (!list)
        return IPU_OK;
    if (list->count != (size_t)count)
        return onnx__refuse(call, "%s has %zu numbers instead of %d", name,
                            list->count, count);
    *number = list->at[i];
    return IPU_OK;
}

/* Returns an element of a batch, or the value itself. */
static struct ipu__onnx_value element_of(const struct scan *scan,
                                         struct ipu__onnx_value *value)
{
    struct ipu__onnx_call *call = scan->loop.call;
    struct ipu__onnx_value row = onnx__loop_value(call, value);
    int64_t starts[IPU_MAX_DIMS] = {0}, sizes[IPU_MAX_DIMS];
    ipu_tensor slice;

    if (scan->element < 0)
        return row;
    starts[0] = scan->element;
    memcpy(sizes, value->extents, sizeof sizes);
    sizes[0] = 1;
    slice = ipu_slice(call->graph, onnx__tensor(call, value), starts, sizes);
    row = onnx__loop_number(value->type, NULL);
    row.ndim = value->ndim - 1;
    memcpy(row.extents, value->extents + 1,
           (size_t)row.ndim * sizeof *row.extents);
    row.tensor = ipu_reshape(call->graph, slice, row.ndim, row.extents);
    return row;
}

/* Returns a value with an axis moved to another place. */
static struct ipu__onnx_value move_axis(struct ipu__onnx_call *call,
                                        struct ipu__onnx_value *value,
                                        int32_t from, int32_t to)
{
    struct ipu__onnx_value moved = *value;
    int32_t order[IPU_MAX_DIMS], n = 0;

    if (from == to)
        return moved;
    for (int32_t d = 0; d < value->ndim; d++) {
        if (n == to)
            order[n++] = from;
        if (d != from)
            order[n++] = d;
    }
    if (n < value->ndim)
        order[n] = from;
    moved = onnx__loop_number(value->type, NULL);
    moved.ndim = value->ndim;
    for (int32_t d = 0; d < value->ndim; d++)
        moved.extents[d] = value->extents[order[d]];
    moved.tensor = onnx__permuted(call, value, order);
    return moved;
}

/* Sets what the loop takes of its input i of rows, and its number of
 * iterations. */
static int read_taken(struct scan *scan, int i)
{
    struct onnx__loop *loop = &scan->loop;
    struct ipu__onnx_call *call = loop->call;
    struct ipu__onnx_value value =
        element_of(scan, call->inputs[scan->first + loop->ncarried + i]);
    int64_t axis, backward;
    int32_t at;

    IPU_TRY(read_list(call, "scan_input_axes", i, loop->ntaken, &axis));
    IPU_TRY(read_list(
        call, scan->element < 0 ? "scan_input_directions" : "directions", i,
        loop->ntaken, &backward));
    IPU_TRY(onnx__axis(call, axis, value.ndim, &at));
    loop->taken[i].value = move_axis(call, &value, at, 0);
    loop->taken[i].backward = backward != 0;
    if (i > 0 && loop->taken[i].value.extents[0] != loop->trips)
        return onnx__refuse(call, "its inputs have different numbers of "
                                  "slices");
    loop->trips = loop->taken[i].value.extents[0];
    return IPU_OK;
}

static int read_inputs(struct scan *scan)
{
    struct onnx__loop *loop = &scan->loop;
    int64_t backward;

    IPU_TRY(onnx__loop_new(loop));
    for (int i = 0; i < loop->ncarried; i++)
        loop->carried[i] =
            element_of(scan, loop->call->inputs[scan->first + i]);
    for (int i = 0; i < loop->ntaken; i++)
        IPU_TRY(read_taken(scan, i));
    for (int i = 0; i < loop->nmade; i++) {
        IPU_TRY(read_list(loop->call, "scan_output_directions", i, loop->nmade,
                          &backward));
        loop->made[i].backward = backward != 0;
    }
    return IPU_OK;
}

/* Runs the loop, and moves the axes of what it makes. */
static int run_scan(struct scan *scan)
{
    struct onnx__loop *loop = &scan->loop;

    IPU_TRY(read_inputs(scan));
    IPU_TRY(onnx__loop_run(loop));
    for (int i = 0; i < loop->nmade; i++) {
        struct ipu__onnx_value *made = &loop->made[i].value;
        int64_t axis;
        int32_t at;

        IPU_TRY(
            read_list(loop->call, "scan_output_axes", i, loop->nmade, &axis));
        IPU_TRY(onnx__axis(loop->call, axis, made->ndim, &at));
        *made = move_axis(loop->call, made, 0, at);
    }
    return IPU_OK;
}

/* Returns what the loop has made for output i. */
static struct ipu__onnx_value *result_of(struct onnx__loop *loop, int i)
{
    return i < loop->ncarried ? &loop->carried[i]
                              : &loop->made[i - loop->ncarried].value;
}

/* Runs each element of a batch, and stacks what they make. */
static int run_batch(struct scan *scan)
{
    struct ipu__onnx_call *call = scan->loop.call;
    int outputs = scan->loop.ncarried + scan->loop.nmade;
    size_t n = (size_t)outputs * MOST_BATCH;
    ipu_tensor *parts = ipu__onnx_keep_outside(&call->builder->model->file,
                                               (n + 1) * sizeof *parts);

    if (!parts)
        return ipu__onnx_end(call->builder, IPU_ERR_MEMORY);
    for (int64_t e = 0; e < scan->batch; e++) {
        scan->element = e;
        IPU_TRY(run_scan(scan));
        for (int i = 0; i < outputs; i++)
            parts[i * MOST_BATCH + e] =
                onnx__tensor(call, result_of(&scan->loop, i));
    }
    for (int i = 0; i < outputs; i++)
        IPU_TRY(onnx__give(call, i, result_of(&scan->loop, i)->type,
                           ipu_stack(call->graph, (int32_t)scan->batch,
                                     parts + i * MOST_BATCH, 0)));
    return IPU_OK;
}

/* Finds the batch of version 8, which all inputs have. */
static int find_batch(struct scan *scan)
{
    struct ipu__onnx_call *call = scan->loop.call;

    if (onnx__in(call, 0))
        return onnx__refuse(call, "sequence_lens is not supported");
    for (int i = scan->first; i < call->ninputs; i++) {
        const struct ipu__onnx_value *value = call->inputs[i];

        if (value->ndim < 1 ||
            (i > scan->first && value->extents[0] != scan->batch))
            return onnx__refuse(call, "its inputs have different batches");
        scan->batch = value->extents[0];
    }
    if (scan->batch < 1 || scan->batch > MOST_BATCH)
        return onnx__refuse(call, "its batch is not 1 to %d", MOST_BATCH);
    return IPU_OK;
}

/* Sets the numbers of inputs and outputs. */
static int count_values(struct scan *scan)
{
    struct onnx__loop *loop = &scan->loop;
    struct ipu__onnx_call *call = loop->call;
    int64_t taken = onnx__int(call, "num_scan_inputs", 0);
    int inputs = call->ninputs - scan->first;

    if (!loop->body)
        return onnx__refuse(call, "its body is missing");
    if (taken < 1 || taken > inputs)
        return onnx__refuse(call, "num_scan_inputs is not 1 to %d", inputs);
    for (int i = scan->first; i < call->ninputs; i++)
        if (!call->inputs[i])
            return onnx__refuse(call, "its input %d is missing", i);
    loop->ntaken = (int)taken;
    loop->ncarried = inputs - loop->ntaken;
    loop->nmade = (int)loop->body->outputs.count - loop->ncarried;
    if (loop->nmade < 0 || call->noutputs > loop->ncarried + loop->nmade)
        return onnx__refuse(call, "its body has %zu outputs",
                            loop->body->outputs.count);
    return IPU_OK;
}

static int build_scan(struct ipu__onnx_call *call)
{
    struct scan scan = {
        .loop = {.call = call, .body = onnx__attribute_graph(call, "body")},
        .first = call->version == BATCHED_VERSION,
        .element = -1};

    IPU_TRY(count_values(&scan));
    if (call->version == BATCHED_VERSION) {
        IPU_TRY(find_batch(&scan));
        return run_batch(&scan);
    }
    IPU_TRY(run_scan(&scan));
    for (int i = 0; i < scan.loop.ncarried + scan.loop.nmade; i++)
        IPU_TRY(onnx__loop_give(call, i, result_of(&scan.loop, i)));
    return IPU_OK;
}

const struct ipu__onnx_operator onnx__scan_rows[] = {
    {"Scan", 8,
     "body directions num_scan_inputs scan_input_axes scan_input_directions "
     "scan_output_axes scan_output_directions",
     0, IPU__ONNX_ANY_NUMBER, build_scan, NULL,
     "in version 8, sequence_lens and batches of more than 64 are refused"},
    {.name = NULL},
};

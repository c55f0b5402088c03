/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recurrent.c - LSTM, GRU and RNN: reads the inputs of a node, runs a cell for
 * each direction (cells.c), and gives what they make in the node's layout.
 */
#include <inttypes.h>
#include <stdio.h>

#include "onnx/operators/cells.h"
#include "onnx/operators/rows.h"

enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES };

static const ipu_tensor NONE = {-1};

/* ------------------------------------------------------------------- inputs */

/* A node, and its inputs for all directions. */
struct layer {
    struct ipu__onnx_call *call;
    struct onnx__cell cell; /* what both directions have */
    int directions;
    bool first_backward, batch_first, resets_last;
    int64_t width; /* of all gates */
    struct onnx__gate activations[ONNX__MOST_GATES];
    ipu_tensor x;        /* [time, batch, in] */
    ipu_tensor w, r;     /* [directions, in or units, width] */
    ipu_tensor b, p;     /* [directions, ...], or invalid */
    ipu_tensor state[2]; /* [directions, batch, units], or invalid */
};

static int read_direction(struct layer *layer)
{
    struct ipu__onnx_call *call = layer->call;
    bool both = onnx__text_is(call, "direction", "bidirectional", "forward");

    layer->directions = both ? 2 : 1;
    layer->first_backward =
        onnx__text_is(call, "direction", "reverse", "forward");
    if (!both && !layer->first_backward &&
        !onnx__text_is(call, "direction", "forward", "forward"))
        return onnx__refuse(call, "it has no such direction");
    return IPU_OK;
}

/* Refuses an input, with the shape that it should have. */
static int refuse_shape(struct ipu__onnx_call *call, int i, const char *what,
                        int32_t ndim, const int64_t *extents)
{
    char text[96] = "";
    int at = 0;

    for (int32_t d = 0; d < ndim; d++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%" PRId64,
                       d > 0 ? "," : "", extents[d]);
    return onnx__refuse(call,
                        "input %d (%s) does not fit the others: it should be "
                        "[%s]",
                        i, what, text);
}

/* Checks the shape of an input, if it is there. */
static int check_shape(struct ipu__onnx_call *call, int i, const char *what,
                       int32_t ndim, const int64_t *extents)
{
    const struct ipu__onnx_value *value = onnx__in(call, i);
    bool fits = value && value->ndim == ndim;

    if (!value)
        return IPU_OK;
    for (int32_t d = 0; fits && d < ndim; d++)
        fits = value->extents[d] == extents[d];
    if (!fits)
        return refuse_shape(call, i, what, ndim, extents);
    if (i != LENGTHS && value->type != call->inputs[X]->type)
        return onnx__refuse(call, "input %d (%s) has another type than X", i,
                            what);
    return IPU_OK;
}

/* Finds the sizes, and checks all shapes. */
static int check_shapes(struct layer *layer)
{
    struct ipu__onnx_call *call = layer->call;
    const struct ipu__onnx_value *x = call->inputs[X], *r = call->inputs[R];
    int64_t d = layer->directions, units, width, batch;

    if (x->ndim != 3 || r->ndim != 3)
        return onnx__refuse(call, "X and R should have 3 dimensions");
    units = layer->cell.units = r->extents[2];
    width = layer->width = layer->cell.kind->gates * units;
    layer->cell.time = x->extents[layer->batch_first];
    batch = layer->cell.batch = x->extents[!layer->batch_first];
    if (onnx__int(call, "hidden_size", units) != units)
        return onnx__refuse(call, "hidden_size is not that of R");
    if (units < 1 || batch < 1 || layer->cell.time < 1 || x->extents[2] < 1)
        return onnx__refuse(call, "an extent is 0");
    const int64_t w[] = {d, width, x->extents[2]}, rr[] = {d, width, units},
                  b[] = {d, 2 * width}, p[] = {d, 3 * units},
                  state[] = {layer->batch_first ? batch : d,
                             layer->batch_first ? d : batch, units};

    IPU_TRY(check_shape(call, W, "W", 3, w));
    IPU_TRY(check_shape(call, R, "R", 3, rr));
    IPU_TRY(check_shape(call, B, "B", 2, b));
    IPU_TRY(check_shape(call, LENGTHS, "sequence_lens", 1, &batch));
    IPU_TRY(check_shape(call, INITIAL_H, "initial_h", 3, state));
    IPU_TRY(check_shape(call, INITIAL_C, "initial_c", 3, state));
    return check_shape(call, PEEPHOLES, "P", 2, p);
}

/* Lengths that are known to be those of all sequences need no selection. */
static int read_lengths(struct layer *layer)
{
    struct ipu__onnx_call *call = layer->call;
    struct ipu__onnx_value *lengths = onnx__in(call, LENGTHS);
    const int64_t column[] = {layer->cell.batch, 1};
    bool all = true;

    layer->cell.lengths = NONE;
    if (!lengths)
        return IPU_OK;
    if (!onnx__is_whole(lengths->type))
        return onnx__refuse(call, "sequence_lens are no integers");
    if (onnx__known(call, lengths)) {
        for (int64_t i = 0; i < layer->cell.batch; i++) {
            int64_t n = lengths->wholes[i];

            if (n < 0 || n > layer->cell.time)
                return onnx__refuse(call,
                                    "sequence_lens has %" PRId64 ", and X has "
                                    "%" PRId64 " steps",
                                    n, layer->cell.time);
            all = all && n == layer->cell.time;
        }
        if (all)
            return IPU_OK;
    }
    layer->cell.lengths =
        ipu_reshape(call->graph, onnx__tensor(call, lengths), 2, column);
    return IPU_OK;
}

/* Returns an input as a tensor, with its first two dimensions exchanged if
 * exchange; the invalid tensor if it is left out. */
static ipu_tensor read_input(struct layer *layer, int i, bool exchange)
{
    static const int32_t order[] = {1, 0, 2};
    struct ipu__onnx_value *value = onnx__in(layer->call, i);

    if (!value)
        return NONE;
    return exchange ? onnx__permuted(layer->call, value, order)
                    : onnx__tensor(layer->call, value);
}

/* Sets the tensors, whose shapes have been checked. */
static int read_inputs(struct layer *layer)
{
    static const int32_t order[] = {0, 2, 1};
    struct ipu__onnx_call *call = layer->call;
    bool exchange = layer->batch_first;

    layer->cell.dtype = ipu__onnx_kind(call->inputs[X]->type)->dtype;
    layer->x = read_input(layer, X, exchange);
    layer->w = onnx__permuted(call, call->inputs[W], order);
    layer->r = onnx__permuted(call, call->inputs[R], order);
    layer->b = read_input(layer, B, false);
    layer->p = read_input(layer, PEEPHOLES, false);
    layer->state[0] = read_input(layer, INITIAL_H, exchange);
    layer->state[1] = read_input(layer, INITIAL_C, exchange);
    return read_lengths(layer);
}

/* --------------------------------------------------------------- directions */

/* Returns columns of the matrix, or of the row, that belongs to a direction. */
static ipu_tensor part_of(struct layer *layer, ipu_tensor x, int direction,
                          int64_t first, int64_t count)
{
    int64_t starts[IPU_MAX_DIMS] = {direction}, sizes[IPU_MAX_DIMS];
    ipu_graph *g = layer->call->graph;
    int32_t ndim = ipu_tensor_info(g, x, NULL, sizes, NULL);

    if (ndim < 2)
        return NONE;
    sizes[0] = 1;
    starts[ndim - 1] = first;
    sizes[ndim - 1] = count;
    return ipu_reshape(g, ipu_slice(g, x, starts, sizes), ndim - 1, sizes + 1);
}

static void set_biases(struct layer *layer, struct onnx__cell *cell,
                       int direction)
{
    int64_t width = layer->width;
    ipu_graph *g = layer->call->graph;
    ipu_tensor of_x, of_h;

    cell->bias = NONE;
    if (layer->b.id < 0)
        return;
    of_x = part_of(layer, layer->b, direction, 0, width);
    of_h = part_of(layer, layer->b, direction, width, width);
    if (layer->resets_last)
        cell->bias = of_h; /* the reset gate multiplies its part */
    else
        of_x = ipu_add(g, of_x, of_h);
    cell->inputs = ipu_bias_add(g, cell->inputs, of_x);
}

static void set_weights(struct layer *layer, struct onnx__cell *cell,
                        int direction)
{
    int64_t width = layer->width, units = cell->units, in = width;
    ipu_graph *g = layer->call->graph;

    cell->inputs =
        ipu_matmul(g, layer->x, part_of(layer, layer->w, direction, 0, width));
    set_biases(layer, cell, direction);
    cell->last = NONE;
    if (cell->kind->resets && !layer->resets_last) {
        in = width - units;
        cell->last = part_of(layer, layer->r, direction, in, units);
    }
    cell->kernel = part_of(layer, layer->r, direction, 0, in);
    for (int i = 0; i < 3; i++)
        cell->peepholes[i] =
            layer->p.id < 0
                ? NONE
                : part_of(layer, layer->p, direction, i * units, units);
}

/* Runs a direction. Sets its last state, and y if it is wanted. */
static void run_direction(struct layer *layer, int direction, ipu_tensor *state,
                          ipu_tensor *y)
{
    const int64_t shape[] = {layer->cell.batch, layer->cell.units};
    struct onnx__cell cell = layer->cell;

    cell.backward = direction == 1 || layer->first_backward;
    cell.activations = layer->activations + direction * cell.kind->activations;
    set_weights(layer, &cell, direction);
    for (int i = 0; i < (cell.kind->has_cell ? 2 : 1); i++)
        state[i] =
            layer->state[i].id < 0
                ? ipu_fill(layer->call->graph, cell.dtype, 2, shape, 0)
                : part_of(layer, layer->state[i], direction, 0, cell.units);
    onnx__run_cell(layer->call->graph, &cell, state, y);
}

/* ------------------------------------------------------------------ outputs */

/* Gives Y, [time, directions, batch, units] or [batch, time, directions,
 * units]. */
static int give_all(struct layer *layer, ipu_tensor *y)
{
    static const int32_t order[] = {1, 0, 2};
    ipu_graph *g = layer->call->graph;

    for (int i = 0; i < layer->directions && layer->batch_first; i++)
        y[i] = ipu_transpose(g, y[i], order);
    return onnx__give(
        layer->call, 0, layer->call->inputs[X]->type,
        ipu_stack(g, layer->directions, y, layer->batch_first ? 2 : 1));
}

static int run_layer(struct layer *layer)
{
    struct ipu__onnx_call *call = layer->call;
    ipu_tensor lasts[2][2], y[2];

    for (int i = 0; i < layer->directions; i++) {
        ipu_tensor state[2];

        run_direction(layer, i, state, &y[i]);
        lasts[0][i] = state[0];
        lasts[1][i] = layer->cell.kind->has_cell ? state[1] : NONE;
    }
    if (layer->cell.all)
        IPU_TRY(give_all(layer, y));
    for (int i = 0; i < (layer->cell.kind->has_cell ? 2 : 1); i++)
        if (onnx__wants(call, i + 1))
            IPU_TRY(onnx__give(call, i + 1, call->inputs[X]->type,
                               ipu_stack(call->graph, layer->directions,
                                         lasts[i], layer->batch_first)));
    return IPU_OK;
}

static int build_recurrent(struct ipu__onnx_call *call)
{
    const struct onnx__cell_kind *kind = call->op->how;
    struct layer layer = {.call = call, .cell = {.kind = kind}};

    layer.cell.all = onnx__wants(call, 0);
    layer.cell.coupled = onnx__int(call, "input_forget", 0) != 0;
    layer.batch_first = onnx__int(call, "layout", 0) != 0;
    layer.resets_last =
        kind->resets && onnx__int(call, "linear_before_reset", 0) != 0;
    IPU_TRY(onnx__want_floats(call, X));
    IPU_TRY(read_direction(&layer));
    IPU_TRY(onnx__read_gates(call, layer.directions, kind->activations,
                             kind->names, layer.activations));
    IPU_TRY(check_shapes(&layer));
    IPU_TRY(read_inputs(&layer));
    return run_layer(&layer);
}

#define COMMON                                                                 \
    "activation_alpha activation_beta activations clip direction hidden_size " \
    "layout"

const struct ipu__onnx_operator onnx__recurrent_rows[] = {
    {"GRU", 7, COMMON " linear_before_reset", 3, 6, build_recurrent,
     &onnx__gru_cell, NULL},
    {"LSTM", 7, COMMON " input_forget", 3, 8, build_recurrent, &onnx__lstm_cell,
     NULL},
    {"RNN", 7, COMMON, 3, 6, build_recurrent, &onnx__rnn_cell, NULL},
    {.name = NULL},
};

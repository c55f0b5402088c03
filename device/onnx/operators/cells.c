/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cells.c - the cells of LSTM, GRU and RNN, in a loop of the device.
 *
 * What the inputs of all steps give the gates is one product, outside of the
 * loop. An iteration takes its row of that, adds what the state before gives
 * them, and makes the next state; gates lie side by side in the last dimension.
 * The loop carries the number of the step, the state, and all states so far if
 * they are wanted. So the program does not grow with the sequence, and
 * derivatives pass it as any loop of a known number of iterations.
 *
 *     LSTM    i, f, o = F(x + h R + P c)     g = G(x + h R)
 *             c' = f c + i g                 h' = o H(c')
 *     GRU     z, r = F(x + h R)              n = G(x + (r h) R)
 *             h' = z h + (1 - z) n
 *     RNN     h' = F(x + h R)
 *
 * where x, R and P stand for the parts of each gate; the gate o of an LSTM sees
 * c' through its P. With linear_before_reset, n of a GRU is G(x + r (h R + b)).
 * A sequence that ends early keeps its last state from there on, and its part
 * of all states is 0; backward it keeps the initial state until its last step.
 */
#include "onnx/operators/cells.h"

#include <string.h>

/* What loops carry: number, h, c and all states. */
enum { HIDDEN = 1, MOST_CARRIED = 4 };

/* -------------------------------------------------------------------- cells */

static ipu_tensor gates_of(const struct onnx__cell *cell, ipu_graph *g,
                           ipu_tensor x, int32_t first, int32_t count)
{
    const int64_t starts[] = {0, first * cell->units};
    const int64_t sizes[] = {cell->batch, count * cell->units};

    return ipu_slice(g, x, starts, sizes);
}

/* Opens a gate of an LSTM, which may see c through a peephole. */
static ipu_tensor open_gate(const struct onnx__cell *cell, ipu_graph *g,
                            ipu_tensor x, int32_t gate, int peephole,
                            ipu_tensor c)
{
    ipu_tensor p = cell->peepholes[peephole];

    x = gates_of(cell, g, x, gate, 1);
    if (p.id >= 0)
        x = ipu_add(g, x, ipu_multiply(g, c, p));
    return onnx__activate(g, &cell->activations[0], x);
}

/* The gates are i, o, f, g, and the peepholes i, o, f. */
static ipu_tensor step_lstm(const struct onnx__cell *cell, ipu_graph *g,
                            ipu_tensor x, ipu_tensor *state)
{
    const struct onnx__gate *activations = cell->activations;
    ipu_tensor c = state[1], in, forget, made;

    x = ipu_add(g, x, ipu_matmul(g, state[0], cell->kernel));
    in = open_gate(cell, g, x, 0, 0, c);
    forget = cell->coupled ? ipu_scale(g, in, -1, 1)
                           : open_gate(cell, g, x, 2, 2, c);
    made = onnx__activate(g, &activations[1], gates_of(cell, g, x, 3, 1));
    state[1] =
        ipu_add(g, ipu_multiply(g, forget, c), ipu_multiply(g, in, made));
    return ipu_multiply(g, open_gate(cell, g, x, 1, 1, state[1]),
                        onnx__activate(g, &activations[2], state[1]));
}

/* The gates are z, r, n. The kernel has all three if the reset follows. */
static ipu_tensor step_gru(const struct onnx__cell *cell, ipu_graph *g,
                           ipu_tensor x, ipu_tensor *state)
{
    bool follows = cell->last.id < 0;
    ipu_tensor h = state[0], hr = ipu_matmul(g, h, cell->kernel), z, r, n;

    if (cell->bias.id >= 0)
        hr = ipu_bias_add(g, hr, cell->bias);
    z = ipu_add(g, gates_of(cell, g, x, 0, 1), gates_of(cell, g, hr, 0, 1));
    z = onnx__activate(g, &cell->activations[0], z);
    r = ipu_add(g, gates_of(cell, g, x, 1, 1), gates_of(cell, g, hr, 1, 1));
    r = onnx__activate(g, &cell->activations[0], r);
    n = follows ? ipu_multiply(g, r, gates_of(cell, g, hr, 2, 1))
                : ipu_matmul(g, ipu_multiply(g, r, h), cell->last);
    n = ipu_add(g, gates_of(cell, g, x, 2, 1), n);
    n = onnx__activate(g, &cell->activations[1], n);
    return ipu_add(g, n, ipu_multiply(g, z, ipu_subtract(g, h, n)));
}

static ipu_tensor step_rnn(const struct onnx__cell *cell, ipu_graph *g,
                           ipu_tensor x, ipu_tensor *state)
{
    x = ipu_add(g, x, ipu_matmul(g, state[0], cell->kernel));
    return onnx__activate(g, &cell->activations[0], x);
}

/* --------------------------------------------------------------------- loop */

/* Has rows whose sequences do not reach step t keep the state that they had,
 * and returns the row of Y. */
static ipu_tensor mask_ended(const struct onnx__cell *cell, ipu_graph *g,
                             ipu_tensor t, const ipu_tensor *before,
                             ipu_tensor *state)
{
    ipu_tensor lasts, shown = state[0];

    if (cell->lengths.id < 0)
        return shown;
    lasts = ipu_less(g, t, cell->lengths);
    if (cell->all)
        shown = ipu_select(g, lasts, state[0],
                           ipu_fill(g, cell->dtype, 0, NULL, 0));
    for (int i = 0; i < (cell->kind->has_cell ? 2 : 1); i++)
        state[i] = ipu_select(g, lasts, state[i], before[i]);
    return shown;
}

static int iterate(ipu_graph *g, void *context, int32_t ninputs,
                   const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    const struct onnx__cell *cell = context;
    ipu_tensor x = ipu_gather(g, cell->inputs, in[0], 0), shown;
    double next = cell->backward ? -1 : 1;

    (void)noutputs;
    memcpy(out, in, (size_t)ninputs * sizeof *in);
    out[HIDDEN] = cell->kind->step(cell, g, x, out + HIDDEN);
    shown = mask_ended(cell, g, in[0], in + HIDDEN, out + HIDDEN);
    if (cell->all)
        out[ninputs - 1] =
            ipu_dynamic_update(g, in[ninputs - 1], in[0], shown, 0);
    out[0] = ipu_add(g, in[0], ipu_fill(g, IPU_INT32, 0, NULL, next));
    return 0;
}

void onnx__run_cell(ipu_graph *g, struct onnx__cell *cell, ipu_tensor *state,
                    ipu_tensor *y)
{
    const int64_t all[] = {cell->time, cell->batch, cell->units};
    int32_t parts = cell->kind->has_cell ? 2 : 1, n = 0;
    ipu_tensor v[MOST_CARRIED];

    v[n++] = ipu_fill(g, IPU_INT32, 0, NULL,
                      cell->backward ? (double)(cell->time - 1) : 0);
    for (int32_t i = 0; i < parts; i++)
        v[n++] = state[i];
    if (cell->all)
        v[n++] = ipu_fill(g, cell->dtype, 3, all, 0);
    ipu_repeat(g, cell->time, iterate, cell, n, v, NULL, v);
    memcpy(state, v + HIDDEN, (size_t)parts * sizeof *v);
    *y = v[n - 1];
}

const struct onnx__cell_kind onnx__lstm_cell = {
    .gates = 4,
    .activations = 3,
    .names = {"Sigmoid", "Tanh", "Tanh"},
    .step = step_lstm,
    .has_cell = true};
const struct onnx__cell_kind onnx__gru_cell = {.gates = 3,
                                               .activations = 2,
                                               .names = {"Sigmoid", "Tanh"},
                                               .step = step_gru,
                                               .resets = true};
const struct onnx__cell_kind onnx__rnn_cell = {
    .gates = 1, .activations = 1, .names = {"Tanh"}, .step = step_rnn};

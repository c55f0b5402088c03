/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cells.h - the cells of recurrent operators, and the loop that runs one.
 */
#ifndef IPU_ONNX_OPERATORS_CELLS_H
#define IPU_ONNX_OPERATORS_CELLS_H

#include "onnx/operators/gates.h"

struct onnx__cell;

/* Makes the next h from what x and h R give the gates. state: h, c. */
typedef ipu_tensor onnx__step_fn(const struct onnx__cell *cell, ipu_graph *g,
                                 ipu_tensor x, ipu_tensor *state);

/* What differs between the operators. */
struct onnx__cell_kind {
    int32_t gates;
    int activations;
    const char *names[3];
    onnx__step_fn *step;
    bool has_cell; /* the state has two parts */
    bool resets;   /* it has linear_before_reset */
};

/* One direction. */
struct onnx__cell {
    const struct onnx__cell_kind *kind;
    const struct onnx__gate *activations;
    int64_t time, batch, units;
    bool all;      /* Y is wanted */
    bool backward; /* from the last step to the first */
    bool coupled;  /* an LSTM that forgets what it does not take in */
    ipu_dtype dtype;
    /* [time, batch, gates units], [units, gates units]; last: the last gate's
     * part of a kernel that has the others only, or invalid; bias: of the
     * recurrence, [gates units], or invalid */
    ipu_tensor inputs, kernel, last, bias;
    ipu_tensor peepholes[3]; /* [units]; invalid: none */
    ipu_tensor lengths;      /* [batch, 1] steps of each row; invalid: all */
};

extern const struct onnx__cell_kind onnx__lstm_cell, onnx__gru_cell,
    onnx__rnn_cell;

/* Runs all steps in a loop of the device. state: h, c, before and after; y: all
 * h, [time, batch, units], if they are wanted. */
void onnx__run_cell(ipu_graph *g, struct onnx__cell *cell, ipu_tensor *state,
                    ipu_tensor *y);

#endif

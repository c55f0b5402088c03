/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recurrent.c - the recurrent layers of hvd_model.h, by loops of the device.
 *
 * What the inputs of all steps give the gates is one product, outside of the
 * loop. An iteration takes its row of that, adds what the state before gives
 * them, and makes the next state; gates lie side by side in the last dimension.
 *
 *     LSTM           i, f, o = sigmoid(x + h U)   g = tanh(x + h U)
 *                    c' = f c + i g               h' = o tanh(c')
 *     GRU            z, r = sigmoid(x + h U + b)  n = tanh(x + r (h U + b))
 *                    h' = z h + (1 - z) n
 *     reset first    n = tanh(x + (r h) U), where b is missing
 *
 * where x, U and b stand for the parts of each gate. The loop carries the
 * number of the step, the state, and the states so far if they are asked for.
 * Backward it counts down. Rows whose sequences are over select their old
 * state.
 */
#include "net/net.h"

#include <stdio.h>
#include <string.h>

enum { HIDDEN = 1, CELL = 2, MOST_CARRIED = 4 };

struct cell {
    int32_t gates;
    ipu_tensor (*step)(const struct cell *cell, ipu_graph *g, ipu_tensor x,
                       ipu_tensor *state);
    bool has_cell; /* the state has two parts */
    bool all;      /* all states are wanted */
    bool backward; /* from the last step to the first */
    int64_t units, batch;
    /* [batch, time, gates units], [units, gates units], [gates units]; last:
     * the last gate's part of a kernel that has the others only, or invalid */
    ipu_tensor inputs, kernel, bias, last;
    ipu_tensor lengths; /* [batch, 1] steps of each row; invalid: all */
};

/* Returns gates first to first + count - 1 of x. */
static ipu_tensor gates_of(const struct cell *cell, ipu_graph *g, ipu_tensor x,
                           int32_t first, int32_t count)
{
    const int64_t starts[] = {0, first * cell->units};
    const int64_t sizes[] = {cell->batch, count * cell->units};

    return ipu_slice(g, x, starts, sizes);
}

/* Each gate has a sigmoid of its own: of one for several, training would keep
 * both the whole and its parts. */
static ipu_tensor open_gate(const struct cell *cell, ipu_graph *g, ipu_tensor x,
                            int32_t gate)
{
    return ipu_sigmoid(g, gates_of(cell, g, x, gate, 1));
}

/* The second part of the state is c. The gates are i, f, g, o. */
static ipu_tensor step_lstm(const struct cell *cell, ipu_graph *g, ipu_tensor x,
                            ipu_tensor *state)
{
    ipu_tensor in, forget, made, out;

    x = ipu_add(g, x, ipu_matmul(g, state[0], cell->kernel));
    in = open_gate(cell, g, x, 0);
    forget = open_gate(cell, g, x, 1);
    made = ipu_tanh(g, gates_of(cell, g, x, 2, 1));
    out = open_gate(cell, g, x, 3);
    state[1] = ipu_add(g, ipu_multiply(g, forget, state[1]),
                       ipu_multiply(g, in, made));
    return ipu_multiply(g, out, ipu_tanh(g, state[1]));
}

/* Returns z h + (1 - z) n. */
static ipu_tensor mix(ipu_graph *g, ipu_tensor z, ipu_tensor h, ipu_tensor n)
{
    return ipu_add(g, n, ipu_multiply(g, z, ipu_subtract(g, h, n)));
}

/* The gates are z, r, n. */
static ipu_tensor step_gru(const struct cell *cell, ipu_graph *g, ipu_tensor x,
                           ipu_tensor *state)
{
    ipu_tensor all = ipu_matmul(g, state[0], cell->kernel), both, n;

    if (cell->bias.id >= 0)
        all = ipu_bias_add(g, all, cell->bias);
    both = ipu_add(g, gates_of(cell, g, x, 0, 2), gates_of(cell, g, all, 0, 2));
    n = ipu_multiply(g, open_gate(cell, g, both, 1),
                     gates_of(cell, g, all, 2, 1));
    n = ipu_tanh(g, ipu_add(g, gates_of(cell, g, x, 2, 1), n));
    return mix(g, open_gate(cell, g, both, 0), state[0], n);
}

static ipu_tensor step_gru_reset_first(const struct cell *cell, ipu_graph *g,
                                       ipu_tensor x, ipu_tensor *state)
{
    ipu_tensor both = ipu_matmul(g, state[0], cell->kernel), n;

    both = ipu_add(g, gates_of(cell, g, x, 0, 2), both);
    n = ipu_multiply(g, open_gate(cell, g, both, 1), state[0]);
    n = ipu_add(g, gates_of(cell, g, x, 2, 1), ipu_matmul(g, n, cell->last));
    return mix(g, open_gate(cell, g, both, 0), state[0], ipu_tanh(g, n));
}

/* Has rows whose sequences do not reach step t keep the state that they had,
 * before. state: [1] or [2]. */
static void keep_ended(const struct cell *cell, ipu_graph *g, ipu_tensor t,
                       const ipu_tensor *before, ipu_tensor *state)
{
    ipu_tensor lasts;

    if (cell->lengths.id < 0)
        return;
    lasts = ipu_less(g, t, cell->lengths);
    for (int i = 0; i < (cell->has_cell ? 2 : 1); i++)
        state[i] = ipu_select(g, lasts, state[i], before[i]);
}

/* An iteration. The states so far are the last value, if they are wanted. */
static int step(ipu_graph *g, void *context, int32_t ninputs,
                const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    const struct cell *cell = context;
    ipu_tensor x = ipu_gather(g, cell->inputs, in[0], 1);

    (void)noutputs;
    memcpy(out, in, (size_t)ninputs * sizeof *in);
    out[HIDDEN] = cell->step(cell, g, x, out + HIDDEN);
    keep_ended(cell, g, in[0], in + HIDDEN, out + HIDDEN);
    if (cell->all)
        out[ninputs - 1] =
            ipu_dynamic_update(g, in[ninputs - 1], in[0], out[HIDDEN], 1);
    out[0] = ipu_add(g, in[0],
                     ipu_fill(g, IPU_INT32, 0, NULL, cell->backward ? -1 : 1));
    return 0;
}

/* Gives the last gate a kernel of its own. */
static void split_kernel(ipu_graph *g, struct cell *cell)
{
    const int64_t sizes[] = {2 * cell->units, cell->units};
    ipu_tensor parts[] = {{-1}, {-1}};

    ipu_split(g, cell->kernel, 1, 2, sizes, parts);
    cell->kernel = parts[0];
    cell->last = parts[1];
}

/* Runs all steps from a state of zeros. */
static ipu_tensor run(hvd_net *net, struct cell *cell, int64_t time)
{
    const int64_t state[] = {cell->batch, cell->units};
    const int64_t all[] = {cell->batch, time, cell->units};
    ipu_tensor v[MOST_CARRIED];
    ipu_graph *g = net->graph;
    ipu_dtype dtype;
    int32_t n = 0;

    if (ipu_tensor_info(g, cell->inputs, &dtype, NULL, NULL) < 0)
        return (ipu_tensor){-1};
    v[n++] = ipu_fill(g, IPU_INT32, 0, NULL,
                      cell->backward ? (double)(time - 1) : 0);
    v[n++] = ipu_fill(g, dtype, 2, state, 0);
    if (cell->has_cell)
        v[n++] = ipu_fill(g, dtype, 2, state, 0);
    if (cell->all)
        v[n++] = ipu_fill(g, dtype, 3, all, 0);
    if (ipu_repeat(g, time, step, cell, n, v, NULL, v) < 0)
        return (ipu_tensor){-1};
    return cell->all ? v[n - 1] : v[HIDDEN];
}

/* One layer: x [batch, time, in]. */
static ipu_tensor add_layer(hvd_net *net, const char *name, ipu_tensor x,
                            struct cell *cell, const hvd_recurrent_options *o)
{
    int64_t shape[IPU_MAX_DIMS];
    const int64_t width = cell->gates * cell->units;

    if (net_layer_shape(net, name, x, 3, shape) < 0)
        return (ipu_tensor){-1};
    const int64_t kernel[] = {shape[2], width},
                  recurrent[] = {cell->units, width};

    cell->batch = shape[0];
    hvd_net_work(net, shape[0] * shape[1] * (shape[2] + cell->units) * width);
    cell->inputs = ipu_matmul(
        net->graph, x,
        net_layer_variable(net, name, "kernel", o->kernel, 2, kernel));
    cell->kernel = net_layer_variable(net, name, "recurrent_kernel",
                                      o->recurrent, 2, recurrent);
    cell->bias = cell->last = (ipu_tensor){-1};
    if (!o->no_bias)
        cell->inputs = ipu_bias_add(
            net->graph, cell->inputs,
            net_layer_variable(net, name, "bias", o->bias, 1, &width));
    if (!o->no_bias && cell->step == step_gru)
        cell->bias =
            net_layer_variable(net, name, "recurrent_bias",
                               (hvd_initializer){HVD_INIT_ZEROS, 0}, 1, &width);
    if (cell->step == step_gru_reset_first)
        split_kernel(net->graph, cell);
    return run(net, cell, shape[1]);
}

/* One layer in the direction of the options, or in both. */
static ipu_tensor add_directions(hvd_net *net, const char *name, ipu_tensor x,
                                 struct cell *cell,
                                 const hvd_recurrent_options *o)
{
    static const char *const names[] = {"forward", "backward"};
    ipu_tensor both[2];

    cell->backward = o->direction == HVD_BACKWARD;
    if (o->direction != HVD_BIDIRECTIONAL)
        return add_layer(net, name, x, cell, o);
    for (int i = 0; i < 2; i++) {
        char part[64];

        snprintf(part, sizeof part, "%.50s/%s", name, names[i]);
        cell->backward = i == 1;
        both[i] = add_layer(net, part, x, cell, o);
    }
    return ipu_concat(net->graph, 2, both, cell->all ? 2 : 1);
}

/* Sets the cell's lengths, and checks them. Returns false on a failure. */
static bool take_lengths(hvd_net *net, const char *name, int64_t batch,
                         struct cell *cell, const hvd_recurrent_options *o)
{
    const int64_t column[] = {batch, 1};
    int64_t shape[IPU_MAX_DIMS];
    ipu_dtype dtype;
    int32_t ndim;

    cell->lengths = (ipu_tensor){-1};
    if (!o->lengths)
        return true;
    ndim = ipu_tensor_info(net->graph, *o->lengths, &dtype, shape, NULL);
    if (ndim < 0)
        return false;
    if (dtype != IPU_INT32 || ndim != 1 || shape[0] != batch) {
        net_fail(net,
                 "layer '%s': its lengths are no int32 [%lld], a number of "
                 "steps for each row",
                 name, (long long)batch);
        return false;
    }
    cell->lengths = ipu_reshape(net->graph, *o->lengths, 2, column);
    return true;
}

static ipu_tensor add_layers(hvd_net *net, const char *name, ipu_tensor x,
                             int64_t units, struct cell *cell,
                             const hvd_recurrent_options *o)
{
    int64_t shape[IPU_MAX_DIMS];

    if (net_layer_shape(net, name, x, 3, shape) < 0)
        return (ipu_tensor){-1};
    if (units < 1 || o->layers < 1 || shape[1] < 1)
        return net_fail(net,
                        "layer '%s': %lld units, %d layers, %lld steps of "
                        "time: each must be 1 or more",
                        name, (long long)units, (int)o->layers,
                        (long long)shape[1]);
    if (o->direction < HVD_FORWARD || o->direction > HVD_BIDIRECTIONAL)
        return net_fail(net, "layer '%s': there is no direction %d", name,
                        (int)o->direction);
    if (!take_lengths(net, name, shape[0], cell, o))
        return (ipu_tensor){-1};
    cell->units = units;
    for (int32_t i = 0; i < o->layers && x.id >= 0; i++) {
        bool last = i == o->layers - 1;
        char number[64];

        snprintf(number, sizeof number, "%.40s/%d", name, (int)i);
        cell->all = !last || o->states == HVD_ALL_STATES;
        x = add_directions(net, o->layers > 1 ? number : name, x, cell, o);
        if (!last)
            x = hvd_dropout(net, x, o->dropout);
    }
    return x;
}

void hvd_recurrent_options_init(hvd_recurrent_options *options, size_t size)
{
    memset(options, 0, size);
    options->size = (uint32_t)size;
    options->layers = 1;
    options->kernel.kind = HVD_INIT_GLOROT_UNIFORM;
    options->recurrent = (hvd_initializer){HVD_INIT_ORTHOGONAL, 1};
}

ipu_tensor hvd_lstm_with(hvd_net *net, const char *name, ipu_tensor x,
                         int64_t units, const hvd_recurrent_options *options)
{
    struct cell cell = {.gates = 4, .step = step_lstm, .has_cell = true};
    hvd_recurrent_options o = *options;

    if (o.bias.kind == HVD_INIT_ZEROS && !o.no_forget_bias)
        o.bias.kind = HVD_INIT_FORGET_GATE;
    return add_layers(net, name, x, units, &cell, &o);
}

ipu_tensor hvd_gru_with(hvd_net *net, const char *name, ipu_tensor x,
                        int64_t units, const hvd_recurrent_options *options)
{
    struct cell cell = {.gates = 3,
                        .step = options->reset_first ? step_gru_reset_first
                                                     : step_gru};

    return add_layers(net, name, x, units, &cell, options);
}

static hvd_recurrent_options usual(hvd_states states, hvd_direction direction)
{
    hvd_recurrent_options options;

    hvd_recurrent_options_init(&options, sizeof options);
    options.states = states;
    options.direction = direction;
    return options;
}

ipu_tensor hvd_lstm(hvd_net *net, const char *name, ipu_tensor x, int64_t units,
                    hvd_states states)
{
    const hvd_recurrent_options o = usual(states, HVD_FORWARD);

    return hvd_lstm_with(net, name, x, units, &o);
}

ipu_tensor hvd_gru(hvd_net *net, const char *name, ipu_tensor x, int64_t units,
                   hvd_states states)
{
    const hvd_recurrent_options o = usual(states, HVD_FORWARD);

    return hvd_gru_with(net, name, x, units, &o);
}

ipu_tensor hvd_bidirectional_lstm(hvd_net *net, const char *name, ipu_tensor x,
                                  int64_t units, hvd_states states)
{
    const hvd_recurrent_options o = usual(states, HVD_BIDIRECTIONAL);

    return hvd_lstm_with(net, name, x, units, &o);
}

ipu_tensor hvd_bidirectional_gru(hvd_net *net, const char *name, ipu_tensor x,
                                 int64_t units, hvd_states states)
{
    const hvd_recurrent_options o = usual(states, HVD_BIDIRECTIONAL);

    return hvd_gru_with(net, name, x, units, &o);
}

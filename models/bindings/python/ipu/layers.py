# SPDX-License-Identifier: Apache-2.0
"""
Layers, which make their own variables. A layer is called with a tensor within the
function of a Model, or stands in a Model's list. The same layer, called twice, uses the
same variables. hvd_model.h says more of each.
"""
from ._graph import Tensor

ACTIVATIONS = {None: 0, "linear": 0, "relu": 1, "gelu": 2, "silu": 3, "tanh": 4, "sigmoid": 5,
               "softmax": 6, "gelu_tanh": 7}
INITIALIZERS = {"zeros": 0, "ones": 1, "constant": 2, "uniform": 3, "normal": 4,
                "truncated_normal": 5, "glorot_uniform": 6, "glorot_normal": 7,
                "he_uniform": 8, "he_normal": 9, "lecun_uniform": 10, "lecun_normal": 11,
                "orthogonal": 12, "forget_gate": 13}
DIRECTIONS = {"forward": 0, "backward": 1, "bidirectional": 2}


def _chosen(table, value, what):
    if value not in table:
        names = ", ".join(str(name) for name in table if name is not None)
        raise ValueError(f"there is no {what} {value!r}: one of {names}")
    return table[value]


def _initializer(value):
    """Returns kind and value of a name, or of a pair of both, ("normal", 0.02)."""
    name, number = value if isinstance(value, tuple) else (value, 1.0)
    return _chosen(INITIALIZERS, name, "initializer"), float(number)


class Layer:
    """What all layers have. Calling one adds it to the graph of its input."""
    kind = ""

    def __init__(self, name=None):
        self.name = name

    def _arguments(self, x):
        return ()

    def __call__(self, x):
        if not isinstance(x, Tensor):
            raise TypeError(f"the input of a layer is a Tensor, not {type(x).__name__}")
        name = x.graph.name_of(self, self.kind, self.name)
        return x.graph.layer(self.kind, name, x, *self._arguments(x))

    def __repr__(self):
        options = ", ".join(f"{key}={value!r}" for key, value in vars(self).items()
                            if value is not None)
        return f"{type(self).__name__}({options})"


class Dense(Layer):
    """x [..., in] -> [..., units]: x kernel + bias, and the activation."""
    kind = "dense"

    def __init__(self, units, activation=None, *, bias=True, kernel="glorot_uniform",
                 name=None):
        super().__init__(name)
        self.units, self.activation, self.bias, self.kernel = units, activation, bias, kernel

    def _arguments(self, x):
        return (self.units, _chosen(ACTIVATIONS, self.activation, "activation"),
                int(self.bias), *_initializer(self.kernel))


class Conv2D(Layer):
    """x [batch, h, w, channels] -> [batch, ho, wo, filters], by kernels of extent x
    extent. padding is "valid" or "same"."""
    kind = "conv2d"

    def __init__(self, filters, extent, activation=None, *, stride=1, padding="valid",
                 groups=1, dilation=1, bias=True, kernel="glorot_uniform", name=None):
        super().__init__(name)
        self.filters, self.extent, self.activation = filters, extent, activation
        self.stride, self.padding, self.groups, self.dilation = stride, padding, groups, dilation
        self.bias, self.kernel = bias, kernel

    def _arguments(self, x):
        same = _chosen({"valid": 0, "same": 1}, self.padding, "padding")
        return (self.filters, self.extent,
                _chosen(ACTIVATIONS, self.activation, "activation"), int(self.bias),
                *_initializer(self.kernel), self.stride, same, self.groups, self.dilation)


class Flatten(Layer):
    """x [batch, ...] -> [batch, all the rest]"""
    kind = "flatten"


class BatchNorm(Layer):
    """Normalises over all but the channels, which are last: in training by the batch,
    else by moving averages."""
    kind = "batch_norm"


class LayerNorm(Layer):
    """Normalises over the last dimension."""
    kind = "layer_norm"


class GroupNorm(Layer):
    """x [batch, ..., channels]: normalises groups of channels."""
    kind = "group_norm"

    def __init__(self, groups, name=None):
        super().__init__(name)
        self.groups = groups

    def _arguments(self, x):
        return (self.groups,)


class Embedding(Layer):
    """int32 indices [...] -> rows [..., width] of a table of so many rows."""
    kind = "embedding"

    def __init__(self, vocabulary, width, name=None):
        super().__init__(name)
        self.vocabulary, self.width = vocabulary, width

    def _arguments(self, x):
        return self.vocabulary, self.width


class Attention(Layer):
    """Self-attention of several heads: x [batch, time, width] -> the same shape. With
    causal a place sees itself and those before it."""
    kind = "attention"

    def __init__(self, heads, causal=False, name=None):
        super().__init__(name)
        self.heads, self.causal = heads, causal

    def _arguments(self, x):
        return self.heads, int(self.causal)


class _Recurrent(Layer):
    def __init__(self, units, *, all_states=False, layers=1, direction="forward", dropout=0.0,
                 lengths=None, name=None):
        super().__init__(name)
        self.units, self.all_states, self.layers = units, all_states, layers
        self.direction, self.dropout, self.lengths = direction, dropout, lengths

    def _arguments(self, x):
        lengths = -1 if self.lengths is None else input(x, self.lengths).number
        return (self.units, int(self.all_states), self.layers,
                _chosen(DIRECTIONS, self.direction, "direction"), float(self.dropout), lengths)


class LSTM(_Recurrent):
    """x [batch, time, in] -> the last state, [batch, units], or with all_states
    [batch, time, units]. direction is "forward", "backward" or "bidirectional"; lengths
    is the name of an input, int32 [batch], that says how many steps of each row count."""
    kind = "lstm"


class GRU(_Recurrent):
    """A gated recurrent unit, with the arguments of LSTM."""
    kind = "gru"


class Dropout(Layer):
    """In training replaces elements by 0 with the probability rate, and divides the
    others by 1 - rate."""
    kind = "dropout"

    def __init__(self, rate, name=None):
        super().__init__(name)
        self.rate = rate

    def _arguments(self, x):
        return (float(self.rate),)


class NextPiece(Layer):
    """Marks where the next stage of a pipeline may begin (Model.compile, stages)."""
    kind = "next_piece"


class MaxPool2D:
    """Maximum of windows size x size of [batch, h, w, channels]."""

    def __init__(self, size=2):
        self.size = size

    def __call__(self, x):
        return x.graph.op("max_pool2d", x, self.size)


class AvgPool2D:
    """Mean of windows size x size of [batch, h, w, channels]."""

    def __init__(self, size=2):
        self.size = size

    def __call__(self, x):
        return x.graph.op("avg_pool2d", x, self.size)


def input(x, name):
    """Returns another input of the model, by its name in the data. x is any tensor of
    the model."""
    return x.graph.named_input(name, x)


def variable(x, name, shape, initializer="glorot_uniform", trained=True):
    """Returns a variable, made when it is asked for first. x is any tensor of the
    model. One that is not trained is changed by Graph.assign alone."""
    shape = (shape,) if hasattr(shape, "__index__") else tuple(shape)
    return x.graph.layer("variable", name, x, shape, *_initializer(initializer), int(trained))

# SPDX-License-Identifier: Apache-2.0
"""Graphs, and their tensors."""
import os
import sys

import numpy as np

from ._library import engine

#: The dtypes of the device, by name, with their numbers.
DTYPES = {"float32": 0, "int32": 1, "float16": 2, "bfloat16": 3}
NAMES = {number: name for name, number in DTYPES.items()}
# bfloat16 has no dtype in numpy: its bits are uint16.
NUMPY = {0: np.dtype("float32"), 1: np.dtype("int32"), 2: np.dtype("float16"),
         3: np.dtype("uint16")}
_HERE = os.path.dirname(os.path.abspath(__file__))


def dtype_number(dtype):
    """Returns the number of a dtype that is given by its name, or as numpy's."""
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    if name not in DTYPES:
        raise TypeError(f"the device has no dtype {name}: one of {', '.join(DTYPES)}")
    return DTYPES[name]


def extents(shape):
    """Returns a shape as a tuple; a number is one extent."""
    return (shape,) if hasattr(shape, "__index__") else tuple(shape)


def _caller():
    """Returns the file and the line outside of this package that is being run."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(_HERE + os.sep):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


class Tensor:
    """
    A tensor of a graph: a value that the device computes in each run. The operators
    + - * / @ and ** work as with numpy; ipu.ops has all others.
    """
    __slots__ = ("graph", "number", "_info")

    def __init__(self, graph, number):
        self.graph, self.number, self._info = graph, number, None

    def _described(self):
        if self._info is None:
            self._info = self.graph._graph.info(self.number)
        return self._info

    @property
    def dtype(self):
        """The name of the dtype: "float32", "int32", "float16" or "bfloat16"."""
        return NAMES[self._described()[0]]

    @property
    def shape(self):
        """The extents, a tuple."""
        return self._described()[1]

    @property
    def name(self):
        """The name in reports."""
        return self._described()[2]

    def __repr__(self):
        return f"<ipu.Tensor '{self.name}' {self.dtype}{list(self.shape)}>"

    def _with(self, op, other, swapped=False):
        """Returns the result of an op with a tensor, a number, or an array."""
        other = self.graph.tensor(other, self.dtype)
        pair = (other, self) if swapped else (self, other)
        return self.graph.op(op, *pair)

    def __add__(self, other):
        return self._with("add", other)

    def __radd__(self, other):
        return self._with("add", other, True)

    def __sub__(self, other):
        return self._with("subtract", other)

    def __rsub__(self, other):
        return self._with("subtract", other, True)

    def __mul__(self, other):
        return self._with("multiply", other)

    def __rmul__(self, other):
        return self._with("multiply", other, True)

    def __truediv__(self, other):
        return self._with("divide", other)

    def __rtruediv__(self, other):
        return self._with("divide", other, True)

    def __pow__(self, other):
        return self._with("power", other)

    def __matmul__(self, other):
        return self._with("matmul", other)

    def __rmatmul__(self, other):
        return self._with("matmul", other, True)

    def __neg__(self):
        # The device negates floats alone.
        return 0 - self if self.dtype == "int32" else self.graph.op("negate", self)

    def reshape(self, *shape):
        """Returns the same elements in another shape; one extent may be -1."""
        return self.graph.op("reshape", self, shape[0] if len(shape) == 1 and
                             not hasattr(shape[0], "__index__") else shape)


#: The place of each op in the module's table, by name.
OPS = {name: (number, parameters, text)
       for number, (name, parameters, text) in enumerate(engine.ops())}


class Graph:
    """
    A graph: inputs, variables, what is computed of them, and outputs.

        g = ipu.Graph()
        x = g.input("x", (4, 3))
        g.output("y", ipu.ops.relu(x @ g.constant(w)))
        y = ipu.Program(g).run(x=array)["y"]

    An op that is refused raises ipu.Error, and the graph cannot be compiled any more.
    """

    def __init__(self, *, mode=None, seed=1, _graph=None):
        self._graph = engine.Graph(mode, seed) if _graph is None else _graph
        self._clear()
        self.mode = mode

    def _clear(self):
        self._inputs = {}       # (dtype, shape) by name
        self._outputs = {}      # tensors by name
        self._trains = False    # there are derivatives
        self._named = {}        # tensors that layers ask for by name
        self._layers = {}       # names of layers that were used, and these, by id
        self._counts = {}       # layers of each kind

    def _restart(self, mode):
        """Begins an empty graph in another mode, with the variables of the layers."""
        self._graph.restart(mode)
        self._clear()
        self.mode = mode

    def _add(self, number):
        return Tensor(self, number)

    def _at_caller(self):
        self._graph.at(*_caller())

    def input(self, name, shape, dtype="float32"):
        """Adds an input, which each run gets from the host."""
        self._at_caller()
        number, shape = dtype_number(dtype), extents(shape)
        tensor = self._add(self._graph.input(name, number, shape))
        self._inputs[name] = number, shape
        return tensor

    def variable(self, name, shape, dtype="float32"):
        """Adds a variable, which stays on the device from run to run, and is 0 until
        Program.write."""
        self._at_caller()
        return self._add(self._graph.variable(name, dtype_number(dtype), extents(shape)))

    def constant(self, value, dtype=None):
        """Adds a constant of these elements. Other floats become float32, and other
        integers int32."""
        array = np.asarray(value)
        if dtype is None and array.dtype.name not in DTYPES:
            if array.dtype.kind not in "fiub":
                raise TypeError(f"the device has no constants of {array.dtype}")
            dtype = "float32" if array.dtype.kind == "f" else "int32"
        number = dtype_number(array.dtype if dtype is None else dtype)
        made = np.ascontiguousarray(array, NUMPY[number]).reshape(array.shape)
        if NAMES[number] == "int32" and not np.array_equal(made, array):
            raise ValueError("a constant is beyond int32, which the device has")
        self._at_caller()
        return self._add(self._graph.constant(number, made.shape, made))

    def tensor(self, value, dtype=None):
        """Returns a tensor of this graph: value itself, or a constant."""
        if not isinstance(value, Tensor):
            return self.constant(np.asarray(value, NUMPY[DTYPES[dtype]]), dtype)
        if value.graph is not self:
            raise ValueError(f"{value!r} is of another graph")
        return value

    def op(self, name, *arguments):
        """Adds an op of ipu.ops by its name."""
        self._at_caller()
        return self._add(self._graph.op(OPS[name][0], *[
            self.tensor(each).number if isinstance(each, Tensor) else each
            for each in arguments]))

    def layer(self, kind, name, x, *arguments):
        """Adds a layer (ipu.layers), of a graph that a model builds."""
        self._at_caller()
        return self._add(self._graph.layer(kind, name, x.number, *arguments))

    def name_of(self, layer, kind, name=None):
        """Returns the name of a layer in this graph: its own, or that of its kind and a
        number. The same layer has the same name again, and so the same variables."""
        if id(layer) not in self._layers:
            if name is None:
                count = self._counts.get(kind, 0)
                self._counts[kind] = count + 1
                name = f"{kind}_{count}" if count else kind
            self._layers[id(layer)] = name, layer  # kept, so that no other gets its id
        return self._layers[id(layer)][0]

    def output(self, name, tensor):
        """Adds an output, which each run gives to the host."""
        self._graph.output(name, self.tensor(tensor).number)
        self._outputs[name] = tensor

    def assign(self, variable, value):
        """Assigns a value to a variable in each run."""
        self._graph.assign(variable.number, self.tensor(value, variable.dtype).number)

    def find(self, name):
        """Returns the tensor of that name."""
        return self._add(self._graph.find(name))

    def gradients(self, loss, tensors):
        """Returns the derivatives of a loss, a scalar, by each of the tensors."""
        self._trains = True
        return [self._add(number) for number in self._graph.gradients(
            loss.number, [tensor.number for tensor in tensors])]

    def minimize(self, loss, variables, optimizer="sgd", rate=0.01, momentum=0.0):
        """Updates the variables in each run, so that the loss, a scalar, becomes less.
        optimizer is "sgd", "adam", "adamw", "lamb", "lion", "rmsprop", "adagrad",
        "adadelta" or "lars"; rate is a number or a scalar tensor."""
        names = ("sgd", "adam", "adamw", "lamb", "lion", "rmsprop", "adagrad", "adadelta",
                 "lars")
        if optimizer not in names:
            raise ValueError(f"there is no optimizer '{optimizer}': one of {', '.join(names)}")
        gradients = self.gradients(loss, variables)
        self._graph.optimize(names.index(optimizer), self.tensor(rate, "float32").number,
                             momentum, [each.number for each in variables],
                             [each.number for each in gradients])

    def named_input(self, name, x):
        """Returns an input of a model by the name that it has in the data."""
        if name in self._named:
            return self._named[name]
        return self.layer("input", name, x)

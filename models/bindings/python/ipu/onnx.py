# SPDX-License-Identifier: Apache-2.0
"""Models of ONNX files (docs/ONNX.md says which operators they may have)."""
import collections
import os
import threading

import numpy as np

from ._errors import Error, Status
from ._graph import NUMPY, Graph
from ._library import engine
from .program import Footprint, Program

# The numpy dtypes of ONNX's types, by their numbers; the bits of bfloat16 are uint16.
TYPES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
         9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 16: "uint16"}
# Programs that a model keeps, for shapes that were used last.
MOST_PROGRAMS = 8

Value = collections.namedtuple("Value", "name dtype shape")
Value.__doc__ = """An input or output of a model. shape has None, or the name of the
dimension, where the extent is open; it is None if the number of dimensions is. Arrays
of bfloat16 are its bits, uint16."""


def _value(found):
    name, number, extents, symbols, *_ = found
    shape = None if extents is None else tuple(
        symbol if extent < 0 else extent for extent, symbol in zip(extents, symbols))
    return Value(name, "bfloat16" if number == 16 else TYPES.get(number), shape)


class _Built:
    """A model that was built for inputs of certain shapes."""

    def __init__(self, path, arrays, trained=(), frozen=()):
        """trained has the names of the initialisers that become variables; None stands
        for all. frozen has patterns of names that do not."""
        self.model = engine.Onnx(path)
        for name, number, *_ in self.model.inputs():
            if name in arrays:
                array = arrays[name]
                self.model.offer(name, number, array.shape, array)
        for name in [None] if trained is None else trained:
            self.model.train(name)
        for pattern in frozen:
            self.model.freeze(pattern)
        if trained == ():
            self.model.no_gradients()
        self.graph = Graph()
        self.model.build(self.graph._graph)
        inputs = self.model.inputs()
        #: Inputs whose elements are part of the program.
        self.bound = {each[0]: arrays[each[0]].copy() for each in inputs if each[4]}
        self.types = {each[0]: each[1] for each in inputs + self.model.outputs()}
        self.shapes = {name: array.shape for name, array in arrays.items()}
        for name, *_ in inputs:
            if name not in self.bound:
                self._add_input(name)
        for each in self.model.outputs():
            self.graph._outputs[each[0]] = self.graph.find(each[0])

    def _add_input(self, name):
        """Makes an input of the model one of the graph. One whose elements nothing reads,
        such as that of Shape, is in no graph."""
        try:
            tensor = self.graph.find(name)
        except Error as error:
            if error.status is not Status.NAME:
                raise
            return
        self.graph._inputs[name] = tensor._described()[:2]

    def on_device(self, arrays):
        """Returns the inputs that the program reads, as the device has them."""
        return {name: _to_device(self.types[name], arrays[name])
                for name in self.graph._inputs if name in arrays}

    def suits(self, arrays):
        """Whether the program computes what these inputs ask for."""
        return self.shapes == {name: array.shape for name, array in arrays.items()} and all(
            np.array_equal(arrays[name], bound) for name, bound in self.bound.items())


def _to_device(number, array):
    """Returns the elements of an array of ONNX's type as the device has them."""
    dtype = NUMPY[_DEVICE[number]]
    if array.dtype == dtype:
        return array
    made = np.empty(array.shape, dtype)
    engine.Onnx.to_device(number, array.size, array, made)
    return made


def _from_device(number, array):
    wanted = np.dtype(TYPES[number])
    if array.dtype == wanted:
        return array
    made = np.empty(array.shape, wanted)
    engine.Onnx.from_device(number, array.size, array, made)
    return made


# The dtype of the device for each of ONNX's types (ipu_onnx_type_dtype).
_DEVICE = {number: 2 if number == 10 else 3 if number == 16 else
           0 if number in (1, 11) else 1 for number in TYPES}


class OnnxModel:
    """
    A model of an ONNX file.

        model = ipu.load_onnx("resnet18.onnx")
        scores = model(images)               # or model.run(x=images)["y"]
        model.footprint(batch=16)            # a picture in a notebook

    A program is compiled for the shapes that the inputs have, and kept. Inputs have the
    dtypes of the file: int64 indices, for example. Several threads may call run; they
    take turns.
    """

    def __init__(self, path, target="mk2", *, allow_out_of_memory=True):
        self.path, self.target = os.fspath(path), target
        self._out_of_memory = allow_out_of_memory
        model = engine.Onnx(self.path)
        #: What the model takes and gives: Values, with name, dtype and shape.
        self.inputs = [_value(each) for each in model.inputs()]
        self.outputs = [_value(each) for each in model.outputs()]
        self._types = {each[0]: each[1] for each in model.inputs()}
        self._programs, self._lock = [], threading.Lock()

    def __repr__(self):
        def said(values):
            return ", ".join(f"{v.name} {v.dtype}{list(v.shape or ())}" for v in values)
        return f"<ipu.OnnxModel '{self.path}': {said(self.inputs)} -> {said(self.outputs)}>"

    def _checked(self, value, given):
        """Returns an array for an input."""
        number = self._types[value.name]
        if number not in TYPES:
            raise TypeError(f"input '{value.name}' has elements that the device has not")
        array = given if isinstance(given, np.ndarray) else np.asarray(given, TYPES[number])
        if array.dtype != TYPES[number]:
            raise TypeError(f"input '{value.name}' is {array.dtype}, the model takes "
                            f"{TYPES[number]}: array.astype('{TYPES[number]}') converts it")
        shape = value.shape
        if shape is not None and (len(shape) != array.ndim or any(
                isinstance(want, int) and want != got
                for want, got in zip(shape, array.shape))):
            raise ValueError(f"input '{value.name}' has the shape {list(array.shape)}, the "
                             f"model takes {list(shape)}")
        return np.ascontiguousarray(array).reshape(array.shape)

    def _arrays(self, args, inputs, named):
        given = dict(inputs or {}, **named)
        if len(args) > len(self.inputs):
            raise TypeError(f"{len(args)} arrays for a model of {len(self.inputs)} inputs")
        for value, array in zip(self.inputs, args):
            if value.name in given:
                raise TypeError(f"input '{value.name}' is given twice")
            given[value.name] = array
        known = {value.name: value for value in self.inputs}
        for name in given:
            if name not in known:
                raise ValueError(f"there is no input '{name}': the model takes "
                                 f"{', '.join(known) or 'none'}")
        for name in known:
            if name not in given:
                raise ValueError(f"input '{name}' is not given")
        return {name: self._checked(known[name], array) for name, array in given.items()}

    def _program(self, arrays):
        """Returns what was built for inputs like these, and its program. Holds the
        lock."""
        for place, (built, program) in enumerate(self._programs):
            if built.suits(arrays):
                self._programs.append(self._programs.pop(place))
                return built, program
        built = _Built(self.path, arrays)
        program = Program(built.graph, self.target, allow_out_of_memory=self._out_of_memory)
        self._programs.append((built, program))
        if len(self._programs) > MOST_PROGRAMS:
            self._programs.pop(0)[1].close()
        return built, program

    def run(self, inputs=None, **named):
        """Runs the model, and returns its outputs, a dict of arrays. inputs is a dict of
        arrays by name; or each is an argument of its name."""
        return self._run(self._arrays((), inputs, named))

    def _run(self, arrays):
        with self._lock:
            built, program = self._program(arrays)
            results = program.run(built.on_device(arrays))
        return {name: _from_device(built.types[name], array)
                for name, array in results.items()}

    def __call__(self, *arrays):
        """Runs the model on its inputs in their order. Returns its output, or a tuple of
        them if there are several."""
        results = self._run(self._arrays(arrays, None, {}))
        found = tuple(results[value.name] for value in self.outputs)
        return found[0] if len(found) == 1 else found

    def predict(self, x, batch_size=32):
        """Runs a model of one input and one output on batches of the rows of x, and
        returns its output for all rows."""
        if len(self.inputs) != 1 or len(self.outputs) != 1:
            raise ValueError(f"predict is for a model of one input and one output, not of "
                             f"{len(self.inputs)} and {len(self.outputs)}: use run")
        fixed = self.inputs[0].shape and self.inputs[0].shape[0]
        size = fixed if isinstance(fixed, int) else batch_size
        return np.concatenate([self._padded(x[i:i + size], fixed)
                               for i in range(0, len(x), size)])

    def _padded(self, rows, fixed):
        """Runs a batch, with zeros behind it if the model takes more rows."""
        n = len(rows)
        if isinstance(fixed, int) and n < fixed:
            rows = np.concatenate([rows, np.zeros((fixed - n, *rows.shape[1:]), rows.dtype)])
        return self(rows)[:n]

    def _zeros(self, batch, dims):
        """Returns inputs of zeros, whose open dimensions are given."""
        arrays = {}
        for value in self.inputs:
            if value.shape is None:
                raise ValueError(f"the number of dimensions of input '{value.name}' is not "
                                 "known: run the model first, and ask its program")
            shape = []
            for place, extent in enumerate(value.shape):
                if not isinstance(extent, int):
                    extent = dims.get(extent, batch if place == 0 else None)
                if extent is None:
                    raise ValueError(f"dimension {place} of input '{value.name}' is open: give "
                                     f"{value.shape[place] or 'fixed shapes'}=...")
                shape.append(extent)
            arrays[value.name] = np.zeros(shape, TYPES[self._types[value.name]])
        return arrays

    def graph(self, batch=1, **dims):
        """Returns the graph of the model for a batch; dims gives other open dimensions
        by their names. The initialisers are constants."""
        return _Built(self.path, self._zeros(batch, dims)).graph

    def footprint(self, batch=1, target=None, ipus=1, **dims):
        """Returns what the model takes of a chip, or of several (ipu.fits), a Footprint,
        which is true if it fits."""
        return Footprint(self.graph(batch, **dims), target or self.target, ipus=ipus)

    def profile(self, directory, batch=1, runs=3, **dims):
        """Runs the model on zeros, and writes its profile (docs/PROFILE.md): the pages
        profile.json and report.html. Returns it as text."""
        arrays = self._zeros(batch, dims)
        with self._lock:
            built, program = self._program(arrays)
            program.measure()
            for _ in range(runs):
                program.run(built.on_device(arrays))
            return program.profile(directory, os.path.basename(self.path))

    def fit(self, x, y, save, **options):
        """
        Trains the initialisers of the model, and writes the model with what they have
        become to a file, which load_onnx reads; this model stays as it is. Returns a dict
        of each epoch, with its loss. Under a launcher all ranks call it with the same
        arrays.

        x: the rows of the model's input, or a dict of those of its inputs.
        y: the labels.
        save: the path of the file; rank 0 writes it.
        loss: of Model.compile, of the model's first output; "softmax_cross_entropy".
        optimizer: "sgd", "momentum", "nesterov", "adam" (the default), "adamw", "lamb",
            "rmsprop", "adagrad", "adadelta", "lion" or "lars".
        learning_rate: 0.001.
        batch_size: rows of a step of all ranks together, 32.
        epochs: 1.
        shuffle: whether each epoch has another order, which seed (1) decides; True.
        trainable: names of the initialisers; by default all that have floats.
        freeze: patterns, such as ["*bn*"], of names that are not trained: ONNX does not
            tell a parameter from what PyTorch keeps as a buffer.
        verbose: whether rank 0 prints a line for each epoch; True.
        """
        from ._training import Training
        with Training(self, x, y, **options) as training:
            history = training.run()
            training.save(os.fspath(save))
        return history

    def close(self):
        """Frees the programs. The model can be used again."""
        with self._lock:
            while self._programs:
                self._programs.pop()[1].close()


def load_onnx(path, target="mk2", *, allow_out_of_memory=True):
    """
    Reads a model of an ONNX file.

    target: the chip that it is compiled for.
    allow_out_of_memory: whether a model that does not fit on the chip runs.

    A file that is damaged, or no ONNX, raises ipu.Error with Status.DATA; so does, at
    the first run, a model with operators that are not supported, whose text names all.
    """
    return OnnxModel(path, target, allow_out_of_memory=allow_out_of_memory)

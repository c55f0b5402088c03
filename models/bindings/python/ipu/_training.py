# SPDX-License-Identifier: Apache-2.0
"""
The training of a model of an ONNX file (OnnxModel.fit). The device computes the loss and
the gradients; a strategy of libhvd (hvd.Strategy) averages them over the ranks and
updates the variables, which device and strategy have in the same memory.
"""
import time

import hvd
import numpy as np

from . import ops
from ._data import labels_of
from .model import LOSSES, start
from .onnx import _Built
from .program import Program

# Names in the graph that no ONNX model should have.
_LABELS, _LOSS, _GRADIENT = "ipu/labels", "ipu/loss", "ipu/gradient/"


class Training:
    """A model with its program, its strategy, and the rows of this rank."""

    def __init__(self, model, x, y, *, loss="softmax_cross_entropy", optimizer="adam",
                 learning_rate=0.001, batch_size=32, epochs=1, shuffle=True, seed=1,
                 trainable=None, freeze=(), verbose=True):
        start()
        if isinstance(loss, str) and loss not in LOSSES:
            raise ValueError(f"there is no loss {loss!r}: one of {', '.join(LOSSES)}, or a "
                             "function of the result and the labels")
        self._loss = (LOSSES[loss] or ops.softmax_cross_entropy) if isinstance(loss, str) \
            else loss
        self._batch, self._epochs, self._verbose = batch_size, epochs, verbose
        self._order = np.random.default_rng(seed) if shuffle else None
        self._rows = {name: np.asarray(rows) for name, rows in (
            x if isinstance(x, dict) else {model.inputs[0].name: x}).items()}
        self._labels = labels_of(y)
        self._check_rows()
        self._program = self._strategy = None
        try:
            self._build(model, optimizer, learning_rate, trainable,
                        [freeze] if isinstance(freeze, str) else list(freeze))
        except BaseException:
            self.close()
            raise

    def _check_rows(self):
        self._count = len(self._labels)
        for name, rows in self._rows.items():
            if rows.ndim < 1 or len(rows) != self._count:
                raise ValueError(f"y has {self._count} rows, input '{name}' has "
                                 f"{len(rows) if rows.ndim else 'none'}")
        if self._batch < 1 or self._batch % hvd.size():
            raise ValueError(f"batch_size {self._batch} cannot be shared out equally over "
                             f"{hvd.size()} ranks: take a multiple")
        if self._batch > self._count:
            raise ValueError(f"batch_size {self._batch} is more than the {self._count} rows "
                             "there are")

    def _build(self, model, optimizer, learning_rate, trainable, frozen):
        share = slice(0, self._batch // hvd.size())
        arrays = model._arrays((), {name: rows[share] for name, rows in self._rows.items()}, {})
        self._built = _Built(model.path, arrays, trainable, frozen)
        if self._built.bound:
            raise ValueError(f"input '{next(iter(self._built.bound))}' decides shapes of the "
                             "model, and cannot be data of a training")
        graph, labels = self._built.graph, self._labels[share]
        result = graph.find(model.outputs[0].name)
        loss = ops.mean(self._loss(result, graph.input(_LABELS, labels.shape, labels.dtype)))
        variables = self._built.model.variables()
        names = [each[0] for each in variables if not each[5]]
        tensors = [graph.find(name) for name in names]
        for tensor in tensors:
            if tensor.dtype != "float32":
                raise TypeError(f"initialiser '{tensor.name}' is {tensor.dtype}: only float32 "
                                "is trained")
        graph._outputs = {_LOSS: loss}
        graph.output(_LOSS, loss)
        for name, gradient in zip(names, graph.gradients(loss, tensors)):
            graph.output(_GRADIENT + name, gradient)
        self._program = Program(graph, model.target, allow_out_of_memory=True)
        # Each rank drops other elements.
        self._built.model.write_variables(self._program._engine,
                                          (2 ** 31 - 1) // hvd.size() * hvd.rank())
        self._strategy = hvd.Strategy(optimizer, learning_rate=learning_rate)
        # Gradients of what is used last are ready first.
        self._weights = {name: self._program.read(name) for name in reversed(names)}
        for name, weights in self._weights.items():
            self._program._engine.place(name, weights)
            self._strategy.add(name, weights)
        # Running statistics of normalisations, which the device assigns: each rank's own.
        self._statistics = {name: (self._program.read(name), self._program.read(name))
                            for name, *_, assigned in variables if assigned}
        for name, (own, mean) in self._statistics.items():
            self._program._engine.place(name, own)
            self._strategy.add_statistic(name, own, mean)
        self._strategy.start()

    def _step(self, rows):
        """Makes a step with these rows, and returns its loss, of this rank."""
        engine, loss = self._program._engine, np.empty((), np.float32)
        inputs = self._built.on_device({
            name: np.ascontiguousarray(self._rows[name][rows]) for name in self._rows})
        inputs[_LABELS] = np.ascontiguousarray(self._labels[rows])
        for name, array in inputs.items():
            engine.connect(name, array, False)
        engine.connect(_LOSS, loss, True)
        for name in self._weights:
            engine.connect(_GRADIENT + name, self._strategy.gradient(name), True)
        try:
            engine.run()
        except BaseException as error:
            self._strategy.abandon(str(error))  # the others wait for the gradients
            raise
        for name in self._weights:
            self._strategy.ready(name)
        self._strategy.step()
        return float(loss)

    def _epoch(self):
        """Returns the mean loss of the steps of all ranks."""
        order = np.arange(self._count) if self._order is None else \
            self._order.permutation(self._count)
        losses = [self._step(order[at + hvd.rank():at + self._batch:hvd.size()])
                  for at in range(0, self._count - self._batch + 1, self._batch)]
        return float(hvd.allreduce(np.array([np.mean(losses)]), name="ipu.loss")[0])

    def run(self):
        """Makes the epochs, and returns their history."""
        history = []
        for epoch in range(1, self._epochs + 1):
            since = time.monotonic()
            record = {"epoch": epoch, "loss": self._epoch(),
                      "seconds": time.monotonic() - since,
                      "step": epoch * (self._count // self._batch)}
            history.append(record)
            if self._verbose and hvd.rank() == 0:
                print("  ".join(f"{key} {value:.4g}" for key, value in record.items()),
                      flush=True)
        return history

    def save(self, path):
        """Writes the model with its variables, and the mean of the ranks' statistics;
        returns when rank 0 has done it."""
        self._strategy.read_statistics()
        for own, mean in self._statistics.values():
            own[...] = mean
        failure = None
        if hvd.rank() == 0:
            try:
                self._built.model.save(self._program._engine, path)
            except RuntimeError as error:
                failure = error
        if hvd.broadcast_object(failure, name="ipu.save"):
            raise failure or hvd.Error(hvd.Status.FILE, "rank 0 cannot save the model")

    def close(self):
        if self._program:
            self._program.close()
        if self._strategy:
            self._strategy.close()
        self._program = self._strategy = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

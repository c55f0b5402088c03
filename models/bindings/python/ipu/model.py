# SPDX-License-Identifier: Apache-2.0
"""
Networks that are trained on arrays, by the estimator of hvd_estimator.h: on one process,
or on all ranks of the launcher, which then get the same arrays and share out the rows.
"""
import os
import weakref

import hvd
import numpy as np

from . import _data, ops
from ._graph import NAMES, NUMPY, Graph, Tensor
from ._library import engine
from .layers import _chosen, input as named_input
from .program import Footprint, Program

_TRAIN, _EVALUATE, _PREDICT = range(3)
#: Named losses: functions of the result and of the labels that give the losses of rows.
LOSSES = {"softmax_cross_entropy": None,
          "mean_squared_error": lambda y, labels: ops.squared_error(y, labels),
          "mean_absolute_error": lambda y, labels: ops.absolute_error(y, labels),
          "huber": lambda y, labels: ops.huber_error(y, labels),
          "sigmoid_cross_entropy": lambda y, labels: ops.sigmoid_cross_entropy(y, labels),
          "categorical_cross_entropy":
              lambda y, labels: ops.categorical_cross_entropy(y, labels)}
METRICS = {"mean": 0, "perplexity": 1, "accuracy": 2, "top_k": 3, "binary_accuracy": 4,
           "precision": 5, "recall": 6, "auc": 7, "auc_pr": 8, "mean_squared_error": 9,
           "mean_absolute_error": 10}
SCHEDULES = {"constant": 0, "step": 1, "cosine": 2, "one_cycle": 3, "exponential": 4,
             "polynomial": 5}
# What the device's own optimisers are called, and their momentum, for footprints.
_ON_DEVICE = {"momentum": ("sgd", 0.9), "nesterov": ("sgd", 0.9)}


def _metric(value):
    """Returns the name, the kind and k of a metric: a name, or a pair as ("top_k", 3)."""
    name, k = value if isinstance(value, tuple) else (value, 0)
    kind = _chosen(METRICS, name, "metric")
    return (f"top_{k or 5}" if name == "top_k" else name), kind, int(k)


def start():
    """Starts libhvd, unless the program has."""
    if not hvd.is_initialized():
        hvd.init()


def _weak(method):
    """Returns a function that calls a method, and does not keep its object: a model that
    is dropped is freed at once, and its devices with it, on all ranks alike."""
    reference = weakref.WeakMethod(method)
    return lambda *arguments: reference()(*arguments)


def _add_inputs(graph, spec, batch):
    """Adds the inputs of a model to a graph, and returns the first."""
    for name, (dtype, shape) in spec.items():
        if name != _data.ROW and not (name == _data.LABELS and graph.mode == _PREDICT):
            graph._named[name] = graph.input(name, (batch, *shape), NAMES[dtype])
    return next(iter(graph._named.values()))


class Model:
    """
    A network that can be trained.

        model = ipu.Model([ipu.layers.Dense(128, "relu"), ipu.layers.Dense(10)])
        model.compile("adam", learning_rate=0.001)
        model.fit(images, labels, epochs=5)
        print(model.evaluate(tests, test_labels)["accuracy"])

    network: a list of layers, and of functions of a tensor; or a function that makes the
        result of the first input. It is called for each program, and builds the same
        each time.
    seed: of the first values, the order of rows and dropout.

    Under a launcher (mpi-launch.sh -np 2) fit, evaluate, predict and close are called by
    all ranks, with the same arrays and the same options. A model belongs to one thread
    at a time.
    """

    def __init__(self, network, *, seed=1):
        if not callable(network):
            network = list(network)
            for each in network:
                if not callable(each):
                    raise TypeError(f"{each!r} is no layer, and no function of a tensor")
        self.network, self.seed = network, seed
        self._estimator, self._result, self._trained = None, None, False
        self._spec, self._epochs = None, 0
        self.compile()

    # ----------------------------------------------------------------- building

    def compile(self, optimizer="adam", *, learning_rate=0.001, loss="softmax_cross_entropy",
                metrics=(), rate_schedule="constant", **options):
        """
        Says how the model is trained. What was trained before is forgotten.

        optimizer: "sgd", "momentum", "nesterov", "adam", "adamw", "lamb", "lion",
            "rmsprop", "adagrad", "adadelta" or "lars".
        loss: "softmax_cross_entropy" (int labels), "mean_squared_error",
            "mean_absolute_error", "huber", "sigmoid_cross_entropy",
            "categorical_cross_entropy"; or a function of the result and the labels,
            tensors, that gives the losses of the rows.
        metrics: names, or pairs as ("top_k", 3): what evaluate() counts beside the loss
            and the accuracy: "perplexity", "binary_accuracy", "precision", "recall",
            "auc", "auc_pr", "mean_squared_error", "mean_absolute_error".
        rate_schedule: "constant", "step", "cosine", "one_cycle", "exponential" or
            "polynomial", with rate_steps, rate_warmup, rate_every, rate_factor and
            rate_final (hvd_schedule.h).
        options: those of hvd_estimator.h by their names: model_dir, weight_decay,
            clip_norm, ema_decay, accumulate, replicas, stages, recompute, log_dir,
            save_checkpoints_steps, loss_scale, skip_nonfinite, threads, elastic, ...
        """
        self._loss = LOSSES[loss] if isinstance(loss, str) and loss in LOSSES else loss
        if isinstance(self._loss, str) or not (self._loss is None or callable(self._loss)):
            raise ValueError(f"there is no loss {loss!r}: one of {', '.join(LOSSES)}, or a "
                             "function of the result and the labels")
        self._metrics = [_metric(value) for value in metrics]
        given = {key: os.fspath(value) if isinstance(value, os.PathLike) else
                 int(value) if isinstance(value, bool) else value
                 for key, value in options.items()}
        self._options = {"seed": self.seed, "optimizer": optimizer,
                         "learning_rate": float(learning_rate),
                         "rate_schedule": _chosen(SCHEDULES, rate_schedule, "schedule"),
                         **given}
        self.close()
        self._trained, self._epochs = False, 0
        return self

    def _apply(self, x):
        """Returns the network's result of its first input."""
        if callable(self.network):
            y = self.network(x)
        else:
            y = x
            for layer in self.network:
                y = layer(y)
        if not isinstance(y, Tensor) or y.graph is not x.graph:
            raise TypeError(f"the network has returned {y!r}, not a tensor of its graph")
        return y

    def _build(self, raw, number, mode):
        """Builds the network for the estimator, and returns the number of the result."""
        graph = Graph(mode=mode, _graph=raw)
        x = Tensor(graph, number)
        rows = x.shape[0]  # asked before another piece of the network begins
        y = self._apply(x)
        each = y.shape[0] // rows if y.shape else 1
        self._result = y._described()[0], ((each,) if each != 1 else ()) + y.shape[1:]
        if mode != _TRAIN:
            # predict() puts the rows of all ranks into their order by it.
            graph.output(_data.ROW_OUTPUT, named_input(x, _data.ROW))
        return y.number

    def _losses(self, raw, number, mode):
        """Builds the losses for the estimator."""
        y = Tensor(Graph(mode=mode, _graph=raw), number)
        return self._losses_of(y, named_input(y, _data.LABELS)).number

    def _losses_of(self, y, labels):
        if self._loss is None:
            return ops.softmax_cross_entropy(y, labels)
        losses = self._loss(y, labels)
        if not isinstance(losses, Tensor):
            raise TypeError(f"the loss function has returned {losses!r}, not a tensor")
        return losses

    def _ready(self, arrays, trains=False):
        """Makes the estimator, if there is none for data like these. One that has not
        been trained gives way to one for a training's batches, and for more data."""
        spec = _data.spec_of(arrays)
        if self._estimator and not self._trained and (
                trains or spec.keys() - self._spec.keys()):
            self.close()
        if not self._estimator:
            start()
            self._estimator = engine.Estimator(
                _weak(self._build), None if self._loss is None else _weak(self._losses),
                self._options)
            self._spec = spec
        self._spec = {**spec, **self._spec}

    # ----------------------------------------------------------------- training

    def _check_batch(self, batch_size, rows):
        """Refuses batches that the rows do not fill, or of which the devices would get
        different numbers of rows."""
        if batch_size > rows:
            raise ValueError(f"batch_size {batch_size} is more than the {rows} rows there are")
        start()
        devices = (hvd.size() - (self._options.get("servers") or 0)) * \
            (self._options.get("replicas") or 1)
        if devices > 0 and batch_size % devices:
            raise ValueError(f"batch_size {batch_size} cannot be shared out equally over "
                             f"{devices} devices: take a multiple")

    def fit(self, x, y, *, batch_size=32, epochs=1, shuffle=True, validation_data=None,
            callback=None, verbose=True):
        """
        Trains the model, and returns the history: a dict of each epoch, with its loss.

        x: an array whose rows are examples; or a dict of several, of which the network
            gets the first, and layers.input() the others. Floats become float32, integers
            int32.
        y: the labels, an array of as many rows.
        batch_size: rows of a step of all ranks together, the same in each call. What is
            left of an epoch that fills no batch is left out. With several devices (ranks
            times replicas) it is a multiple of their number.
        epochs: more epochs than there were. With a model_dir that has a checkpoint, those
            in it count, and the training goes on from there.
        validation_data: (x, y), evaluated after each epoch: "val_loss" and so on.
        callback: a function of the number of the epoch and its dict. If it returns True,
            the training ends; it must do so on all ranks.
        verbose: whether rank 0 prints a line for each epoch.
        """
        arrays = _data.with_labels(x, y)
        self._check_batch(batch_size, len(arrays[0][3]))
        self._ready(arrays, True)
        history, seed = [], self.seed % 2 ** 31 if shuffle else -1
        for _ in range(epochs):
            found = self._estimator.train(arrays, batch_size, seed, self._epochs + 1, 0)
            self._trained, self._epochs = True, self._epochs + 1
            record = {"epoch": self._epochs, "loss": found["loss"],
                      "seconds": found["seconds"], "step": found["global_step"]}
            if validation_data is not None:
                record.update(("val_" + key, value) for key, value in self.evaluate(
                    *validation_data, batch_size=batch_size).items() if key != "rows")
            history.append(record)
            if verbose and hvd.rank() == 0:
                print("  ".join(f"{key} {value:.4g}" if isinstance(value, float) else
                                f"{key} {value}" for key, value in record.items()), flush=True)
            if callback is not None and callback(self._epochs, record) is True:
                break
        return history

    def evaluate(self, x, y, *, batch_size=32):
        """Returns the loss of the rows of all ranks, the accuracy, if the result has
        logits of classes, the metrics of compile(), and the number of rows; a dict."""
        arrays = _data.with_labels(x, y)
        self._ready(arrays)
        found, values = self._estimator.evaluate(
            arrays, batch_size, [(kind, k) for _, kind, k in self._metrics])
        result = {"loss": found["loss"], "rows": found["rows"]}
        if found["accuracy"] == found["accuracy"]:
            result["accuracy"] = found["accuracy"]
        result.update((name, value) for (name, _, _), value in zip(self._metrics, values))
        return result

    def predict(self, x, *, batch_size=32):
        """Returns the network's result for all rows, in their order, on every rank."""
        arrays = _data.arrays(x, None)
        if self._spec is None or (_data.LABELS not in self._spec and not self._trained):
            arrays = self._with_labels(arrays, batch_size)
        self._ready(arrays)
        count = len(arrays[0][3])
        dtype, shape = self._row(arrays, batch_size)
        dtype = NUMPY[dtype]
        size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        rows, numbers = self._estimator.predict(arrays, batch_size, size)
        rows = np.frombuffer(rows, dtype).reshape(-1, *shape)
        numbers = np.frombuffer(numbers, np.int32)
        if hvd.size() > 1:
            rows, numbers = (hvd.allgather(each, name=f"ipu.predict.{i}")[0]
                             for i, each in enumerate((rows, numbers)))
        result = np.empty((count, *shape), dtype)
        result[numbers] = rows
        return result

    def _with_labels(self, arrays, batch_size):
        """Adds labels of zeros, so that the estimator can make the network, loss
        included, before there are any."""
        dtype, shape = self._row(arrays, batch_size)
        count = len(arrays[0][3])
        labels = np.zeros((count, *shape[:-1]), "i") if self._loss is None else \
            np.zeros((count, *shape), NUMPY[dtype])
        return _data.add_labels(arrays, labels)

    def _row(self, arrays, batch_size):
        """Returns the dtype and the shape of a row of the result."""
        if self._result is None:
            graph, x = self._begin(_data.spec_of(arrays), min(batch_size, 2), _PREDICT)
            y = self._apply(x)
            each = y.shape[0] // x.shape[0]
            self._result = y._described()[0], ((each,) if each != 1 else ()) + y.shape[1:]
        return self._result

    def variable(self, name, shape):
        """Returns a variable of this shape, such as "dense/kernel", as it is now."""
        if not self._estimator:
            raise ValueError("the model has no variables before fit or evaluate")
        array = np.empty(shape, np.float32)
        self._estimator.variable(name, array)
        return array

    # ----------------------------------------------------------------- the chip

    def _begin(self, spec, batch, mode):
        """Returns a graph of its own with the model's inputs, and the first of them."""
        graph = Graph(mode=_TRAIN, seed=self.seed)
        if mode != _TRAIN:  # the training is what makes variables
            self._apply(_add_inputs(graph, spec, batch))
            graph._restart(mode)
        return graph, _add_inputs(graph, spec, batch)

    def graph(self, x=None, y=None, *, batch_size=32, training=True):
        """
        Returns the graph of a step of the training on one device, or with training=False
        of a prediction; a Graph for ipu.fits or ipu.Program.

        x, y: examples of the data; by default what the model has seen last.
        """
        spec = self._spec if x is None else _data.spec_of(_data.arrays(x, y))
        if spec is None:
            raise ValueError("the model has seen no data: give examples, x and y")
        graph, x = self._begin(spec, batch_size, _TRAIN if training else _PREDICT)
        result = self._apply(x)
        if not training:
            graph.output("output", result)
            return graph
        if _data.LABELS not in spec:
            raise ValueError("a training needs labels: give examples, x and y")
        loss = ops.mean(self._losses_of(result, graph._named[_data.LABELS]))
        graph.output("loss", loss)
        variables = [Tensor(graph, number)
                     for _, _, number, trained in graph._graph.variables() if trained]
        name = self._options["optimizer"]
        optimizer, momentum = _ON_DEVICE.get(name, (name, 0.0))
        graph.minimize(loss, variables, optimizer, self._options["learning_rate"], momentum)
        return graph

    def footprint(self, x=None, y=None, *, batch_size=32, training=True, target="mk2",
                  ipus=1):
        """Returns what a step takes of a chip, or of several (ipu.fits), a Footprint, which
        is true if it fits. The other arguments are those of graph()."""
        return Footprint(self.graph(x, y, batch_size=batch_size, training=training), target,
                         ipus=ipus)

    def profile(self, directory, x=None, y=None, *, batch_size=32, training=True,
                target="mk2", runs=3):
        """Runs some steps on zeros, and writes their profile (docs/PROFILE.md): the pages
        profile.json and report.html. Returns it as text."""
        graph = self.graph(x, y, batch_size=batch_size, training=training)
        with Program(graph, target, allow_out_of_memory=True) as program:
            zeros = {name: np.zeros(shape, NUMPY[dtype])
                     for name, (dtype, shape) in graph._inputs.items()}
            program.measure()
            for _ in range(runs):
                program.run(zeros)
            return program.profile(directory, "training" if training else "prediction")

    def close(self):
        """Frees the devices and the variables. Closing twice does nothing."""
        if self._estimator:
            self._estimator.close()
        self._estimator, self._spec, self._result = None, None, None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

# SPDX-License-Identifier: Apache-2.0
"""cases.py - writes tests of operators in the form of ONNX's own.

A program that imports it has a FOLDER as its argument. Each of FOLDER/pass is a
model of one or a few nodes, inputs, and what PyTorch or numpy makes of them.
Each of FOLDER/refuse is a model that cannot be built, with a file `words` that
has words of the reason.
"""
import os
import sys

import numpy
import onnx
from onnx import helper, numpy_helper
import torch

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
torch.manual_seed(3)
torch.set_num_threads(1)
random = numpy.random.RandomState(5)


def quarters(*shape):
    return torch.tensor(random.randint(-8, 9, shape) / 4, dtype=torch.float32)


def positive(*shape):
    return torch.tensor(random.randint(1, 17, shape) / 4, dtype=torch.float32)


def write(name, model, inputs, outputs):
    name = name if "/" in name else f"pass/{name}"
    path = f"{folder}/{name}/test_data_set_0"
    os.makedirs(path)
    with open(f"{folder}/{name}/model.onnx", "wb") as file:
        file.write(model)
    for kind, arrays in ("input", inputs), ("output", outputs):
        for i, array in enumerate(arrays):
            with open(f"{path}/{kind}_{i}.pb", "wb") as file:
                file.write(
                    numpy_helper.from_array(array).SerializeToString())


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *x):
        return self.function(*x)


def exported(name, function, *inputs, opset=16):
    """PyTorch exports the function, and computes it."""
    path = f"{folder}/exported"
    torch.onnx.export(Function(function), inputs, path, opset_version=opset)
    with open(path, "rb") as file:
        model = file.read()
    os.unlink(path)
    outputs = function(*inputs)
    if not isinstance(outputs, tuple):
        outputs = outputs,
    write(name, model, [x.numpy() for x in inputs],
          [y.numpy() for y in outputs])


def node(name, op, inputs, outputs, opset=13, constants=(), **attributes):
    """A model of one node, whose inputs are arrays, or None if left out."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    given = [(n, x) for n, x in zip(names, inputs) if x is not None]
    kind = lambda a: helper.np_dtype_to_tensor_dtype(a.dtype) if hasattr(
        helper, "np_dtype_to_tensor_dtype"
    ) else onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[a.dtype]
    value = lambda n, a: helper.make_tensor_value_info(n, kind(a), a.shape)
    graph = helper.make_graph(
        [helper.make_node(op, names, [f"y{i}" for i in range(len(outputs))],
                          **attributes)], name,
        [value(n, x) for n, x in given if n not in constants],
        [value(f"y{i}", y) for i, y in enumerate(outputs)],
        [numpy_helper.from_array(x, n) for n, x in given if n in constants])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)])
    write(name, model.SerializeToString(),
          [x for n, x in given if n not in constants], outputs)


def refused(name, words, op, inputs, opset=13, constants=(), **attributes):
    """A model of one node, and words of the reason why it cannot be built."""
    node(f"refuse/{name}", op, inputs, [numpy.zeros(1, "float32")], opset,
         constants, **attributes)
    with open(f"{folder}/refuse/{name}/words", "w") as file:
        file.write(words)

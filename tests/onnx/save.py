# SPDX-License-Identifier: Apache-2.0
"""save.py make FOLDER, and then save.py check FOLDER.

The first writes two models, each with x.npy and labels.npy: old.onnx of IR
version 3, where every initialiser is an input, too, with an Identity of one; and
outside/model.onnx, whose elements lie in another file, integers too. The second
checks what ipu-run has saved after training: old-trained.onnx and
inside/model.onnx.
"""
import os
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

command, folder = sys.argv[1:]
FLOATS = numpy.arange(12, dtype="float32").reshape(4, 3) / 8
ROWS = numpy.array([2, 0, 1], "int64")


def write(path, nodes, initializers, ir, listed=(), external=False):
    value = helper.make_tensor_value_info
    inputs = [value("x", TensorProto.FLOAT, [2, 4])]
    inputs += [value(n, TensorProto.FLOAT, s) for n, s in listed]
    graph = helper.make_graph(
        nodes, "g", inputs, [value("y", TensorProto.FLOAT, [2, 3])],
        [numpy_helper.from_array(a, n) for n, a in initializers])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=ir)
    onnx.checker.check_model(model)
    onnx.save_model(model, path, save_as_external_data=external,
                    location="elements", size_threshold=0)


def make():
    os.makedirs(f"{folder}/outside")
    os.makedirs(f"{folder}/inside")
    bias = numpy.zeros(3, "float32")
    node = helper.make_node
    write(f"{folder}/old.onnx",
          [node("MatMul", ["x", "w"], ["a"]), node("Add", ["a", "b"], ["c"]),
           node("Identity", ["b"], ["b2"]), node("Tanh", ["c"], ["d"]),
           node("Add", ["d", "b2"], ["y"])],
          [("w", FLOATS), ("b", bias)], 3, [("w", [4, 3]), ("b", [3])])
    write(f"{folder}/outside/model.onnx",
          [node("Gather", ["w", "rows"], ["v"], axis=1),
           node("MatMul", ["x", "v"], ["y"])],
          [("w", FLOATS), ("rows", ROWS)], 7, external=True)
    numpy.save(f"{folder}/x.npy", numpy.ones((2, 4), "float32"))
    numpy.save(f"{folder}/labels.npy", numpy.ones((2, 3), "float32"))


def check():
    old = onnx.load(f"{folder}/old-trained.onnx")
    onnx.checker.check_model(old)
    assert [i.name for i in old.graph.input] == ["x", "w", "b", "b2"]
    tensors = {t.name: numpy_helper.to_array(t) for t in old.graph.initializer}
    assert sorted(tensors) == ["b", "b2", "w"]
    assert all(tensors[n].any() for n in tensors)
    assert (tensors["b"] != tensors["b2"]).all()
    inside = onnx.load(f"{folder}/inside/model.onnx")  # no other file is there
    onnx.checker.check_model(inside)
    tensors = [(t.name, numpy_helper.to_array(t))
               for t in inside.graph.initializer]
    assert sorted(n for n, a in tensors) == ["rows", "w"]
    tensors = dict(tensors)
    assert (tensors["rows"] == ROWS).all()
    assert tensors["w"].shape == (4, 3) and (tensors["w"] != FLOATS).all()


{"make": make, "check": check}[command]()

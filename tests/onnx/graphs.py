# SPDX-License-Identifier: Apache-2.0
"""graphs.py FOLDER - models of several nodes for tests of control flow, written
with cases.py."""
import onnx
from onnx import TensorProto, helper, numpy_helper

from cases import folder, write

TRAINING = "ai.onnx.preview.training"
node = helper.make_node


def kind(array):
    return onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[array.dtype]


def value(name, shape, of=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, of, shape)


def gradient(xs, y, outputs, zs=()):
    return node("Gradient", [*xs, *zs], outputs, domain=TRAINING, xs=list(xs),
                y=y, **({"zs": list(zs)} if zs else {}))


def body(nodes, inputs, outputs, initializers=()):
    """A graph in a node. Inputs and outputs are names."""
    return helper.make_graph(nodes, "body", [value(n, None) for n in inputs],
                             [value(n, None) for n in outputs],
                             [numpy_helper.from_array(array, name)
                              for name, array in initializers])


def constant(name, array):
    return node("Constant", [], [name], value=numpy_helper.from_array(array))


def model(name, nodes, inputs, outputs, constants=(), opset=13):
    """Inputs, outputs and constants: names and arrays."""
    graph = helper.make_graph(
        nodes, "graph", [value(n, a.shape, kind(a)) for n, a in inputs],
        [value(n, a.shape, kind(a)) for n, a in outputs],
        [numpy_helper.from_array(a, n) for n, a in constants])
    made = helper.make_model(graph, opset_imports=[
        helper.make_opsetid("", opset), helper.make_opsetid(TRAINING, 1)])
    write(name, made.SerializeToString(), [a for n, a in inputs],
          [a for n, a in outputs])


def refused(name, words, *rest, **more):
    model(f"refuse/{name}", *rest, **more)
    with open(f"{folder}/refuse/{name}/words", "w") as file:
        file.write(words)

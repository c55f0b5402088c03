# SPDX-License-Identifier: Apache-2.0
"""known.py FOLDER - models whose shapes are computed by operators that are ops
of the device, and models of which several nodes are refused.
"""
import numpy
from onnx import TensorProto

from cases import quarters
from graphs import body, constant, model, node, refused

x = quarters(2, 5, 3).numpy()
wide = numpy.broadcast_to(x[0, 0, 0], (5, 5)).copy()
to_floats = dict(to=TensorProto.FLOAT)
to_wholes = dict(to=TensorProto.INT64)

# ------------------------------------------------------------------- shapes
model("largest_extent", [
    node("Shape", ["x"], ["shape"]),
    node("Cast", ["shape"], ["floats"], **to_floats),
    node("ReduceMax", ["floats"], ["most"], keepdims=1),
    node("Sigmoid", ["most"], ["almost"]),
    node("Round", ["almost"], ["one"]),
    node("Mul", ["most", "one"], ["side"]),
    node("Cast", ["side"], ["whole"], **to_wholes),
    node("Concat", ["whole", "whole"], ["sides"], axis=0),
    node("Expand", ["first", "sides"], ["y"])],
      [("x", x), ("first", x[:1, 0, 0])], [("y", wide)])
model("ends_of_pieces", [
    constant("sizes", numpy.int64([[1, 2, 2], [3, 0, 2]])),
    constant("axis", numpy.int64(1)), constant("two", numpy.int64([-1])),
    node("CumSum", ["sizes", "axis"], ["ends"]),
    node("ReduceMax", ["ends"], ["most"], axes=[0, 1], keepdims=0),
    node("Reshape", ["most", "two"], ["shape"]),
    node("Concat", ["shape", "shape"], ["sides"], axis=0),
    node("Expand", ["first", "sides"], ["y"])],
      [("first", x[:1, 0, 0])], [("y", wide)])

model("two_outputs", [
    constant("sizes", numpy.float32([2, 5, 3])), constant("two", numpy.int64([2])),
    node("TopK", ["sizes", "two"], ["largest", "places"]),
    node("Cast", ["largest"], ["shape"], **to_wholes),
    node("Expand", ["first", "shape"], ["y"]),
    constant("rest", numpy.int64([15])),
    node("Concat", ["places", "rest"], ["other"], axis=0),
    node("Reshape", ["x", "other"], ["z"])],
      [("x", x), ("first", x[:1, 0, 0])],
      [("y", wide[:, :3].copy()), ("z", x.reshape(1, 2, 15))])

# ----------------------------------------------------------------- refusals
boxes = [("boxes", numpy.zeros((1, 4, 4), "float32")),
         ("scores", numpy.zeros((1, 1, 4), "float32"))]
branch = body([node("Add", ["places", "places"], ["t"]),
               node("NonMaxSuppression", ["boxes", "scores"], ["kept"])], [],
              ["kept"])
refused("dependents", "node 'kept' (NonMaxSuppression): the shape of its",
        [node("Unique", ["x"], ["places"]),
         node("ReduceSum", ["x"], ["sum"], keepdims=0),
         node("Cast", ["sum"], ["c"], to=TensorProto.BOOL),
         node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)],
        [("x", x)] + boxes, [("y", numpy.zeros((1, 3), "int64"))])
model("many/many", [node("Unique", ["x"], [f"y{i}"], name=f"number_{i}")
                    for i in range(100)], [("x", x)], [("y0", x)])

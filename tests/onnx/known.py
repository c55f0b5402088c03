# SPDX-License-Identifier: Apache-2.0
"""known.py FOLDER - models of which several nodes are refused.
"""
import numpy
from onnx import TensorProto

from cases import quarters
from graphs import body, model, node, refused

x = quarters(2, 5, 3).numpy()
wide = numpy.broadcast_to(x[0, 0, 0], (5, 5)).copy()
to_floats = dict(to=TensorProto.FLOAT)
to_wholes = dict(to=TensorProto.INT64)

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

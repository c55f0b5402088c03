# SPDX-License-Identifier: Apache-2.0
"""control.py FOLDER - writes tests of If with cases.py."""
import numpy
from onnx import helper, numpy_helper
import torch

from cases import exported, quarters
from graphs import body, model, node, refused


def branch(nodes, outputs, initializers=()):
    return body(nodes, [], outputs, initializers)


def choose(condition, then, other, outputs):
    return helper.make_node("If", [condition], outputs, then_branch=then,
                            else_branch=other)


x, w = quarters(3, 4).numpy(), quarters(4).numpy()
yes, no = numpy.array(True), numpy.array([False])

# Both branches use an input that nothing else uses, a value that is made before
# and an initialiser of their own.
for name, condition in ("yes", yes), ("no", no):
    def both(i):
        return branch([node("Mul", ["made", f"own{i}"], [f"p{i}"]),
                       node("Sub" if i else "Add", [f"p{i}", "w"], [f"q{i}"])],
                      [f"q{i}", f"p{i}"], [(f"own{i}", w + i)])
    made = numpy.maximum(x, 0)
    i = int(not condition)
    p = made * (w + i)
    q = p - w if i else p + w
    nodes = [node("Relu", ["x"], ["made"]),
             choose("c", both(0), both(1), ["y", "z"])]
    model(f"data_{name}", nodes, [("c", condition), ("x", x), ("w", w)],
          [("y", q), ("z", p)])
    model(f"known_{name}", nodes, [("x", x), ("w", w)], [("y", q), ("z", p)],
          constants=[("c", condition)])

# What is known before it runs may differ in shape, and is still known after it.
shapes = [branch([node("Constant", [], [f"s{i}"], value=numpy_helper.from_array(
    numpy.array(s, "int64")))], [f"s{i}"]) for i, s in enumerate(([2, 6], [12]))]
model("known_shape", [choose("c", *shapes, ["s"]),
                      node("Reshape", ["x", "s"], ["y"])],
      [("x", x)], [("y", x.reshape(12))], constants=[("c", no)])

# Only the branch that is chosen runs: the index of the other is out of range.
for name, index in ("other", 9), ("one", 2):
    i = numpy.array([index], "int32")
    model(f"only_{name}", [
        node("Less", ["i", "three"], ["c"]), node("Squeeze", ["c"], ["small"]),
        choose("small", branch([node("Gather", ["x", "i"], ["t"])], ["t"]),
               branch([node("Slice", ["x", "zero", "one"], ["e"])], ["e"]),
               ["y"])],
        [("x", x), ("i", i)], [("y", x[2:] if index == 2 else x[:1])],
        constants=[("three", numpy.array([3], "int32")),
                   ("zero", numpy.array([0])), ("one", numpy.array([1]))])


def nested(depth):
    """Ifs in branches of Ifs, of which the innermost takes an input."""
    graph = branch([node("Neg", ["x"], ["t0"])], ["t0"])
    for i in range(1, depth):
        other = branch([node("Abs", ["x"], [f"e{i}"])], [f"e{i}"])
        graph = branch([choose("c", graph, other, [f"t{i}"])], [f"t{i}"])
    other = branch([node("Abs", ["x"], ["e"])], ["e"])
    return [choose("c", graph, other, ["y"])]


model("nested", nested(16), [("c", yes), ("x", x)], [("y", -x)])
refused("deep", "graphs are nested more than 16 deep", nested(17),
        [("c", yes), ("x", x)], [("y", -x)])


# ------------------------------------------------------------------- PyTorch
@torch.jit.script
def halve(x):
    if bool(x.sum() > 0):
        y = x / 2
    else:
        y = x * 3 - 1
    return y


for sign in 1, -1:
    exported(f"script_{sign}", halve, sign * (quarters(3, 4).abs() + 1))

# ------------------------------------------------------------------ refusals
plain = branch([node("Neg", ["x"], ["t"])], ["t"])
other = branch([node("Abs", ["x"], ["e"])], ["e"])
rest = [("c", yes), ("x", x)], [("y", -x)]
refused("name", "'x' is the name of two values",
        [choose("c", branch([node("Neg", ["c"], ["x"])], ["x"]), other,
                ["y"])], *rest)
refused("twice", "'t' is the name of two values",
        [choose("c", branch([node("Neg", ["x"], ["t"]),
                             node("Abs", ["x"], ["t"])], ["t"]), other,
                ["y"])], *rest)
refused("outputs", "then_branch has 2 outputs instead of 1",
        [choose("c", branch([node("Neg", ["x"], ["t"])], ["t", "x"]), other,
                ["y"])], *rest)
refused("nothing", "nothing in else_branch makes its output 'none'",
        [choose("c", plain, branch([], ["none"]), ["y"])], *rest)
refused("missing", "else_branch is missing",
        [node("If", ["c"], ["y"], then_branch=plain)], *rest)
refused("later", "nothing before it makes its input 'late'",
        [choose("c", branch([node("Neg", ["late"], ["t"])], ["t"]), other,
                ["y"]), node("Abs", ["x"], ["late"])], *rest)
refused("shapes", "output 0 of different types or shapes",
        [choose("c", plain, branch([node("Transpose", ["x"], ["e"])], ["e"]),
                ["y"])], *rest)
refused("inside", "(SequenceConstruct): it takes or makes sequences",
        [choose("c", branch([node("SequenceConstruct", ["x"], ["t"])], ["t"]),
                other, ["y"])], *rest)
refused("condition", "its condition is not one bool",
        [choose("x", plain, other, ["y"])], *rest)

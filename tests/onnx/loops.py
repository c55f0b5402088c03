# SPDX-License-Identifier: Apache-2.0
"""loops.py FOLDER - writes tests of Loop and Scan with cases.py."""
import numpy
from onnx import helper
import torch

from cases import exported, quarters
from graphs import body, constant, model, node, refused

yes, no = numpy.array(True), numpy.array(False)
x, w = quarters(3, 4).numpy(), quarters(4).numpy()


def whole(number):
    return numpy.array(number, "int64")


def loop(inputs, outputs, graph):
    return node("Loop", inputs, outputs, body=graph)


def scan(inputs, outputs, graph, taken=1, **more):
    return node("Scan", inputs, outputs, body=graph, num_scan_inputs=taken,
                **more)


# ---------------------------------------------------------------------- Loop
# y = y / 2 + w (a value around the loop), and the rows are y - x and i y.
halving = body([node("Identity", ["go"], ["again"]),
                node("Mul", ["b", "half"], ["h"]), node("Add", ["h", "w"], ["z"]),
                node("Sub", ["z", "x"], ["r"]),
                node("Cast", ["i"], ["j"], to=1), node("Mul", ["j", "z"], ["s"])],
               ["i", "go", "b"], ["again", "z", "r", "s"],
               [("half", numpy.array(0.5, "float32"))])


def halve(trips):
    y, rows, others = x, [], []
    for i in range(trips):
        y = y / 2 + w
        rows.append(y - x)
        others.append(i * y)
    return [("out", y), ("rows", numpy.array(rows, "float32").reshape(
        (trips, 3, 4))), ("others", numpy.array(others, "float32").reshape(
            (trips, 3, 4)))]


names = ["out", "rows", "others"]
for trips in 0, 1, 2, 7, 100000:
    if trips < 10:
        model(f"trips_{trips}", [loop(["m", "", "x"], names, halving)],
              [("x", x), ("w", w)], halve(trips), constants=[("m", whole(trips))])
    else:
        model(f"trips_{trips}", [loop(["m", "", "x"], names[:1], halving)],
              [("x", x), ("w", w)], [("out", (2 * w + 0 * x))],
              constants=[("m", whole(trips))])
model("offered", [loop(["m", "c", "x"], names, halving)],
      [("m", whole(3)), ("c", yes), ("x", x), ("w", w)], halve(3))
model("never", [loop(["m", "c", "x"], names, halving)],
      [("m", whole(3)), ("c", no), ("x", x), ("w", w)], halve(0))
model("less_than_0", [loop(["m", "", "x"], names, halving)],
      [("x", x), ("w", w)], halve(0), constants=[("m", whole(-5))])
# Nothing but a row: a loop without carried values.
model("rows_alone",
      [loop(["m", ""], ["rows"],
            body([constant("t", yes), node("Cast", ["i"], ["j"], to=1),
                  node("Mul", ["j", "x"], ["r"])], ["i", "c"], ["t", "r"]))],
      [("x", x)], [("rows", numpy.array([x * i for i in range(4)]))],
      constants=[("m", whole(4))])
# Carried values change places, one stays, and integers are carried.
model("swap",
      [loop(["m", "", "x", "w", "k", "x"], ["a", "b", "d", "e"],
            body([constant("t", yes), node("Add", ["n", "i"], ["n1"])],
                 ["i", "c", "p", "q", "n", "s"], ["t", "p", "p", "n1", "s"]))],
      [("x", x), ("w", x + 1), ("k", whole([1, 2]))],
      [("a", x), ("b", x), ("d", whole([16, 17])), ("e", x)],
      constants=[("m", whole(6))])
# A condition that data decides: y doubles until a sum is 100 or more.
until = body([node("Add", ["b", "b"], ["z"]),
              node("ReduceSum", ["z"], ["sum"], keepdims=0),
              node("Less", ["sum", "hundred"], ["again"]),
              node("Add", ["k", "one"], ["k1"])],
             ["i", "go", "b", "k"], ["again", "z", "k1"],
             [("hundred", numpy.array(100, "float32")), ("one", whole(1))])
for name, limits, trips in ("", "", 0), ("_most", "m", 3), ("_long", "m", 99):
    y, n = numpy.abs(x) + 1, 0
    while n != trips or not trips:
        y, n = y + y, n + 1
        if y.sum() >= 100:
            break
    constants = [("zero", whole(0))] + ([("m", whole(trips))] if trips else [])
    model(f"until{name}", [loop([limits, "c", "x", "zero"], ["y", "n"], until)],
          [("c", yes), ("x", numpy.abs(x) + 1)], [("y", y), ("n", whole(n))],
          constants=constants)
# The first condition, and the number of iterations, are data.
first = [node("ReduceSum", ["x"], ["all"], keepdims=0),
         node("Greater", ["all", "zero"], ["c"])]
for name, sign in ("begins", 1), ("begins_not", -1):
    given = sign * (numpy.abs(x) + 1)
    out = given / 2 + w if sign > 0 else given
    graph = body([node("Sub", ["i", "i"], ["n"]),
                  node("Cast", ["n"], ["again"], to=9),
                  node("Mul", ["y", "half"], ["h"]),
                  node("Add", ["h", "w"], ["z"])], ["i", "d", "y"],
                 ["again", "z"], [("half", numpy.array(0.5, "float32"))])
    model(name, first + [loop(["", "c", "x"], ["out"], graph)],
          [("x", given), ("w", w)], [("out", out)],
          constants=[("zero", numpy.array(0, "float32"))])
for number in 0, 1, 5:
    given = numpy.full((2,), number, "float32")
    model(f"number_{number}",
          [node("ReduceMax", ["n"], ["n1"], keepdims=0),
           node("Cast", ["n1"], ["m"], to=7),
           loop(["m", "", "x"], ["out"],
                body([constant("t", yes), node("Add", ["y", "w"], ["z"])],
                     ["i", "c", "y"], ["t", "z"]))],
          [("n", given), ("x", x), ("w", w)], [("out", x + number * w)])
# Unrolled: the number of the iteration is a shape; a value grows; what is
# carried is known, and so is what the loop makes.
grow = body([constant("t", yes), node("Concat", ["b", "x"], ["z"], axis=0)],
            ["i", "go", "b"], ["t", "z"])
model("grows", [loop(["m", "", "x"], ["y"], grow)], [("x", x)],
      [("y", numpy.tile(x, (4, 1)))], constants=[("m", whole(3))])
slices = body([constant("t", yes), node("Add", ["i", "one"], ["end"]),
               node("Unsqueeze", ["i", "zero"], ["from"]),
               node("Unsqueeze", ["end", "zero"], ["to"]),
               node("Slice", ["x", "from", "to", "zero"], ["r"]),
               node("Add", ["b", "r"], ["z"])], ["i", "go", "b"],
              ["t", "z", "r"], [("one", whole(1)), ("zero", whole([0]))])
model("slices", [loop(["m", "", "w"], ["y", "rows"], slices)],
      [("x", x), ("w", w.reshape(1, 4))],
      [("y", x.sum(0, keepdims=True) + w), ("rows", x.reshape(3, 1, 4))],
      constants=[("m", whole(3))])
counted = body([node("Add", ["k", "two"], ["k1"]),
                node("Less", ["k1", "ten"], ["again"])], ["i", "go", "k"],
               ["again", "k1", "k1"], [("two", whole(2)), ("ten", whole(9))])
model("known", [loop(["", "", "start"], ["n", "rows"], counted),
                node("Unsqueeze", ["n", "zero"], ["s"]),
                node("Concat", ["s", "minus"], ["shape"], axis=0),
                node("Reshape", ["x", "shape"], ["y"])],
      [("x", numpy.arange(18, dtype="float32"))],
      [("y", numpy.arange(18, dtype="float32").reshape(9, 2)),
       ("rows", whole([3, 5, 7, 9]))],
      constants=[("start", whole(1)), ("zero", whole([0])),
                 ("minus", whole([-1]))])
# The condition is known while the graph is built, and what is made is data.
summed = body([node("Add", ["k", "two"], ["k1"]),
               node("Less", ["k1", "ten"], ["again"]),
               node("Add", ["b", "x"], ["z"])], ["i", "go", "k", "b"],
              ["again", "k1", "z", "z"],
              [("two", whole(2)), ("ten", whole(9))])
model("counted", [loop(["", "", "start", "x"], ["n", "y", "rows"], summed)],
      [("x", x)],
      [("n", whole(9)), ("y", 5 * x),
       ("rows", numpy.array([i * x for i in (2, 3, 4, 5)]))],
      constants=[("start", whole(1))])
# Loops in loops, of which the inner one uses what is carried by the outer.
inner = loop(["k", "", "b"], ["q"],
             body([constant("u", yes), node("Add", ["p", "a"], ["p1"]),
                   node("Mul", ["p1", "half"], ["p2"])], ["j", "d", "p"],
                  ["u", "p2"]))
outer = body([constant("t", yes), node("Add", ["a", "w"], ["b"]), inner],
             ["i", "c", "a"], ["t", "q", "b"])
a, rows = x, []
for i in range(4):
    rows.append(a + w)
    q = a + w
    for j in range(3):
        q = (q + a) / 2
    a = q
model("nested", [loop(["m", "", "x"], ["y", "rows"], outer)],
      [("x", x), ("w", w)], [("y", a), ("rows", numpy.array(rows))],
      constants=[("m", whole(4)), ("k", whole(3)),
                 ("half", numpy.array(0.5, "float32"))])

# ---------------------------------------------------------------------- Scan
running = body([node("Add", ["b", "r"], ["b1"]),
                node("Mul", ["b1", "w"], ["r1"])], ["b", "r"], ["b1", "r1"])
sums = numpy.cumsum(x, 0)
back = numpy.cumsum(x[::-1], 0)
start = numpy.zeros(4, "float32")
for name, data, rows, more in (
        ("", x, sums * w, {}),
        ("_back", x, back * w, {"scan_input_directions": [1]}),
        ("_out_back", x, (sums * w)[::-1], {"scan_output_directions": [1]}),
        ("_axis", x.T.copy(), sums * w, {"scan_input_axes": [1]}),
        ("_negative", x.T.copy(), sums * w, {"scan_input_axes": [-1]}),
        ("_out_axis", x, (sums * w).T, {"scan_output_axes": [1]}),
        ("_one", x[:1], x[:1] * w, {})):
    nodes = [scan(["s", "x"], ["z", "y"], running, **more)]
    total = data.sum(1 if "scan_input_axes" in more else 0)
    outputs = [("z", total), ("y", rows)]
    model(f"scan{name}", nodes, [("s", start), ("x", data), ("w", w)], outputs)
    model(f"scan_known{name}", nodes, [("w", w)], outputs,
          constants=[("s", start), ("x", data)])
# Two inputs in different orders, a carried value of another shape, and no rows.
pair = body([node("Mul", ["p", "q"], ["pq"]),
             node("ReduceSum", ["pq"], ["sum"], keepdims=0),
             node("Add", ["b", "sum"], ["b1"])], ["b", "p", "q"], ["b1"])
model("scan_pair", [scan(["s", "x", "v"], ["z"], pair, 2,
                         scan_input_directions=[0, 1])],
      [("s", numpy.array(1, "float32")), ("x", x), ("v", x + 1)],
      [("z", numpy.array(1 + (x * (x + 1)[::-1]).sum(), "float32"))])
# Version 8 has a batch.
batch = quarters(2, 5, 4).numpy()
begin = quarters(2, 4).numpy()
wanted = begin[:, None] + numpy.cumsum(batch, 1)
model("scan_batch", [node("Scan", ["", "s", "x"], ["z", "y"], body=running,
                          num_scan_inputs=1)],
      [("s", begin), ("x", batch), ("w", w)],
      [("z", wanted[:, -1]), ("y", wanted * w)], opset=8)
model("scan_batch_back", [node("Scan", ["", "s", "x"], ["z", "y"], body=running,
                               num_scan_inputs=1, directions=[1])],
      [("s", begin), ("x", batch), ("w", w)],
      [("z", wanted[:, -1]),
       ("y", (begin[:, None] + numpy.cumsum(batch[:, ::-1], 1)) * w)], opset=8)


# ------------------------------------------------------------------- PyTorch
@torch.jit.script
def for_loop(x, n: int):
    y = x
    for i in range(n):
        y = y * 0.5 + i
    return y


@torch.jit.script
def while_loop(x):
    y = x
    while bool(y.sum() < 50):
        y = y * 2
    return y


@torch.jit.script
def rows_loop(x):
    y = torch.zeros(4)
    for i in range(x.size(0)):
        y = torch.tanh(y + x[i])
    return y


exported("script_for", lambda x: for_loop(x, 5), quarters(3, 4))
exported("script_while", while_loop, quarters(3, 4).abs() + 1)
exported("script_rows", rows_loop, quarters(3, 4))

# ------------------------------------------------------------------ refusals
rest = [("x", x), ("w", w)], halve(3)
refused("missing", "its body is missing", [node("Loop", ["", "", "x"], ["out"])],
        *rest)
refused("inputs", "its body has 3 inputs and 4 outputs instead of 4",
        [loop(["", "", "x", "x"], names, halving)], *rest)
refused("for_ever", "it never ends",
        [loop(["", "", "x"], names[:1], halving)], *rest)
refused("rows_of_data", "so does the shape of its scan outputs",
        first + [loop(["", "c", "x"], names, halving)], *rest,
        constants=[("zero", numpy.array(0, "float32"))])
refused("large", "(Slice): its starts, 'from', must be known",
        [loop(["m", "", "w"], ["y", "rows"], slices)],
        [("x", x), ("w", w.reshape(1, 4))], [("y", w), ("rows", w)],
        constants=[("m", whole(10 ** 6))])
refused("grows_by_data", "a carried value changes its shape",
        first + [loop(["", "c", "x"], ["y"], grow)], [("x", x)], [("y", x)],
        constants=[("zero", numpy.array(0, "float32"))])
refused("condition", "the condition that its body makes is not one bool",
        [loop(["", "", "x"], ["y"], body([node("Neg", ["b"], ["z"])],
                                         ["i", "go", "b"], ["z", "z"]))], *rest)
refused("inside", "(SequenceConstruct): it takes or makes sequences",
        [loop(["m", "", "x"], ["y"],
              body([constant("t", yes),
                    node("SequenceConstruct", ["b"], ["z"])],
                   ["i", "go", "b"], ["t", "z"]))], *rest,
        constants=[("m", whole(3))])
refused("name", "'x' is the name of two values",
        [loop(["m", "", "x"], ["y"],
              body([constant("t", yes), node("Neg", ["x"], ["z"])],
                   ["i", "c", "x"], ["t", "z"]))], *rest,
        constants=[("m", whole(3))])
refused("taken", "num_scan_inputs is not 1 to 2",
        [scan(["s", "x"], ["z", "y"], running, 3)],
        [("s", start), ("x", x), ("w", w)], [("z", w), ("y", x)])
refused("slices", "different numbers of slices",
        [scan(["s", "x", "v"], ["z"], pair, 2)],
        [("s", start), ("x", x), ("v", x[:2])], [("z", w)])

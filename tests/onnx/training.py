# SPDX-License-Identifier: Apache-2.0
"""training.py FOLDER - writes tests of Gradient and of the optimisers of
ai.onnx.preview.training with cases.py."""
import numpy
import torch
import torch.nn.functional as F

from cases import quarters
from graphs import TRAINING, body, constant, gradient, model, node, refused

yes = numpy.array(True)


def whole(number):
    return numpy.array(number, "int64")


def slopes(function, *inputs):
    """The function's result, and the derivatives of its sum."""
    inputs = [x.clone().requires_grad_() for x in inputs]
    y = function(*inputs)
    return (y.detach().numpy(),
            *(d.numpy() for d in torch.autograd.grad(y.sum(), inputs)))


def checked(name, nodes, function, names, *inputs, held=(), constants=()):
    """Derivatives of y with respect to all of names; held are initialisers."""
    y, *derivatives = slopes(function, *inputs)
    arrays = list(zip(names, (x.numpy() for x in inputs)))
    model(name, nodes + [gradient(names, "y", [f"d{n}" for n in names])],
          [(n, a) for n, a in arrays if n not in held],
          [("y", y)] + [(f"d{n}", d) for n, d in zip(names, derivatives)],
          constants=[(n, a) for n, a in arrays if n in held] + list(constants))


# ------------------------------------------------------------------ Gradient
# Images keep the channels last between these nodes; weights are put into
# another order.
images, kernel, bias = quarters(2, 3, 6, 5), quarters(4, 3, 3, 3), quarters(4)
matrix = quarters(4, 5)
net = [node("Conv", ["x", "k", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 1]),
       node("Sigmoid", ["c"], ["s"]),
       node("GlobalAveragePool", ["s"], ["p"]), node("Flatten", ["p"], ["f"]),
       node("MatMul", ["f", "w"], ["m"]), node("Tanh", ["m"], ["y"])]


def network(x, k, b, w):
    c = torch.sigmoid(F.conv2d(x, k, b, stride=(2, 1), padding=1))
    return torch.tanh(c.mean((2, 3)) @ w)


names, given = ["x", "k", "b", "w"], (images, kernel, bias, matrix)
checked("network", net, network, names, *given)
checked("held", net, network, names, *given, held=["k", "b", "w"])
# With respect to a value between nodes, with its channels last, and of others.
y, dc = slopes(lambda c: torch.tanh(torch.sigmoid(c).mean((2, 3)) @ matrix),
               F.conv2d(images, kernel, bias, stride=(2, 1), padding=1))
model("between", net + [gradient(["c"], "y", ["dc"], ["w"])],
      [(n, a.numpy()) for n, a in zip(names, given)], [("y", y), ("dc", dc)])
# Derivatives of derivatives.
x = quarters(3, 4)
v = x.clone().requires_grad_()
first, = torch.autograd.grad((v * v * v).sum(), v, create_graph=True)
second, = torch.autograd.grad((first * first).sum(), v)
model("twice", [node("Mul", ["x", "x"], ["xx"]), node("Mul", ["xx", "x"], ["y"]),
                gradient(["x"], "y", ["g"]), node("Mul", ["g", "g"], ["h"]),
                gradient(["x"], "h", ["dx"])],
      [("x", x.numpy())], [("g", first.detach().numpy()),
                           ("dx", second.numpy())])

# Loops: what is carried, what is used from around them, and rows.
w = quarters(4)
loop = body([constant("t", yes), node("Mul", ["b", "w"], ["h"]),
             node("Add", ["h", "x"], ["s"]), node("Tanh", ["s"], ["z"]),
             node("Mul", ["z", "x"], ["r"])], ["i", "go", "b"], ["t", "z", "r"])


def repeated(x, w):
    b, rows = x, []
    for i in range(4):
        b = torch.tanh(b * w + x)
        rows.append(b * x)
    return b + torch.stack(rows).sum(0)


times = [("m", whole(4)), ("zero", whole([0]))]
joined = [node("ReduceSum", ["rows", "zero"], ["all"], keepdims=0),
          node("Add", ["out", "all"], ["y"])]
checked("loop", [node("Loop", ["m", "", "x"], ["out", "rows"], body=loop)] +
        joined, repeated, ["x", "w"], x, w, constants=times)
scan = body([node("Mul", ["b", "w"], ["h"]), node("Add", ["h", "q"], ["s"]),
             node("Tanh", ["s"], ["z"]), node("Mul", ["z", "z"], ["r"])],
            ["b", "q"], ["z", "r"])


def scanned(x, w, b):
    rows = []
    for q in x.flip(0):
        b = torch.tanh(b * w + q)
        rows.append(b * b)
    return b + torch.stack(rows).sum(0)


checked("scan", [node("Scan", ["b0", "x"], ["out", "rows"], body=scan,
                      num_scan_inputs=1, scan_input_directions=[1],
                      scan_output_directions=[1])] + joined,
        scanned, ["x", "w", "b0"], quarters(5, 4), w, quarters(4),
        constants=times[1:])
# A branch that the data chooses.
none = [("none", numpy.array(0, "float32"))]
for sign in 1, -1:
    then = body([node("Mul", ["x", "w"], ["p"])], [], ["p"])
    other = body([node("Mul", ["x", "x"], ["q"])], [], ["q"])
    checked(f"if_{sign}", [
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("Greater", ["sum", "none"], ["c"]),
        node("If", ["c"], ["y"], then_branch=then, else_branch=other)],
        (lambda x, w: x * w) if sign > 0 else (lambda x, w: x * x + 0 * w),
        ["x", "w"], sign * (x.abs() + 1), w, constants=none)

rest = [("x", x.numpy()), ("w", w.numpy())], [("y", x.numpy())]
product = [node("Mul", ["x", "w"], ["y"])]
refused("elsewhere", "derivatives at other values are not supported",
        product + [node("Gradient", ["w"], ["d"], domain=TRAINING, xs=["x"],
                        y="y")], *rest)
refused("nothing", "nothing before it makes its y",
        [gradient(["x"], "y", ["d"])] + product, *rest)
refused("constant", "'k' is a constant",
        [constant("k", w.numpy()), node("Mul", ["x", "k"], ["y"]),
         gradient(["k"], "y", ["d"])], *rest)
refused("domain", "there is no such operator",
        [node("Gradient", ["x"], ["y"], xs=["x"], y="x")], *rest)


# ---------------------------------------------------------------- optimisers
def optimized(name, op, update, states, rate, step, known=False, **attributes):
    """update takes rate, step, x, gradient, states; returns x and states."""
    shapes = (2, 3), (4,)
    inputs = [("R", numpy.array(rate, "float32")), ("T", whole(step))]
    groups = ["X", "G", *"VH"[:states]]
    arrays = {f"{g}{i}": numpy.abs(quarters(*shape).numpy()) + 0.5
              if g in "VH" else quarters(*shape).numpy()
              for g in groups for i, shape in enumerate(shapes)}
    inputs += [(n, arrays[n]) for n in arrays]
    results = [update(rate, step, *(arrays[f"{g}{i}"] for g in groups))
               for i in range(2)]
    kept = ["X", *"VH"[:states]]
    outputs = [(f"{k}{i}_new", results[i][j].astype("float32"))
               for j, k in enumerate(kept) for i in range(2)]
    model(name, [node(op, [n for n, a in inputs], [n for n, a in outputs],
                      domain=TRAINING, **attributes)],
          [(n, a) for n, a in inputs if not known or n not in "RT"], outputs,
          constants=[(n, a) for n, a in inputs if known and n in "RT"])


def momentum(nesterov):
    def update(r, t, x, g, v):
        g = 0.25 * x + g
        v = 0.75 * v + (0.5 if t > 0 else 1) * g
        return x - r * (g + 0.75 * v if nesterov else v), v
    return update


def adagrad(r, t, x, g, h):
    g = 0.125 * x + g
    h = h + g * g
    return x - r / (1 + t * 0.5) * g / (numpy.sqrt(h) + 0.25), h


def adam(r, t, x, g, v, h):
    g = 0.125 * x + g
    v, h = 0.75 * v + 0.25 * g, 0.5 * h + 0.5 * g * g
    if t > 0:
        r = r * numpy.sqrt(1 - 0.5 ** t) / (1 - 0.75 ** t)
    return (1 - 0.25) * (x - r * v / (numpy.sqrt(h) + 0.125)), v, h


for step in 0, 1, 7:
    for mode in "standard", "nesterov":
        optimized(f"{mode}_{step}", "Momentum", momentum(mode == "nesterov"), 1,
                  0.5, step, step == 1, mode=mode, alpha=0.75, beta=0.5,
                  norm_coefficient=0.25)
    optimized(f"adagrad_{step}", "Adagrad", adagrad, 1, 0.5, step, step == 1,
              decay_factor=0.5, epsilon=0.25, norm_coefficient=0.125)
    optimized(f"adam_{step}", "Adam", adam, 2, 0.5, step, step == 1, alpha=0.75,
              beta=0.5, epsilon=0.125, norm_coefficient=0.125,
              norm_coefficient_post=0.25)
one = numpy.ones(3, "float32")
given = [("R", numpy.array(1, "float32")), ("T", whole(1)), ("X", one),
         ("G", one), ("V", one), ("H", one[:2])]
refused("uneven", "it has 6 inputs", [
    node("Momentum", ["R", "T", "X", "G", "V", "V"], ["Y"], domain=TRAINING,
         mode="standard", alpha=1.0, beta=1.0, norm_coefficient=0.0)], given,
    [("Y", one)])
refused("shape", "its input 4 has another shape", [
    node("Momentum", ["R", "T", "X", "G", "H"], ["Y"], domain=TRAINING,
         mode="standard", alpha=1.0, beta=1.0, norm_coefficient=0.0)], given,
    [("Y", one)])
refused("mode", "there is no such mode", [
    node("Momentum", ["R", "T", "X", "G", "V"], ["Y"], domain=TRAINING,
         mode="other", alpha=1.0, beta=1.0, norm_coefficient=0.0)], given,
    [("Y", one)])

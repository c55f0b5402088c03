# SPDX-License-Identifier: Apache-2.0
"""recurrent.py FOLDER - writes tests of LSTM, GRU and RNN with cases.py.

PyTorch exports its layers; what they do not have, numpy computes, a row and a
step at a time.
"""
import numpy
import torch

from cases import exported, node, random, refused


def layer(kind, name, both=False, first=False, layers=1, **more):
    """A layer of PyTorch, whose initial state is given, or is 0."""
    torch.manual_seed(11)
    net = getattr(torch.nn, kind)(3, 4, layers, bidirectional=both,
                                  batch_first=first, **more).eval()
    state = torch.randn(layers * (1 + both), 2, 4)
    x = torch.randn(*((2, 6) if first else (6, 2)), 3)
    for p in net.parameters():
        p.requires_grad_(False)

    def run(x, *state):
        given = state if kind == "LSTM" else state[0] if state else None
        y, last = net(x, given) if state else net(x)
        return (y, *last) if kind == "LSTM" else (y, last)

    state = (state, -state) if kind == "LSTM" else (state, )
    exported(name, run, x, *(() if first else state), opset=14)


for kind in "LSTM", "GRU", "RNN":
    for layers in 1, 2:
        for both in False, True:
            for first in False, True:
                layer(kind, f"{kind}_{layers}_{both:d}_{first:d}", both,
                      first, layers)
layer("RNN", "RNN_relu", nonlinearity="relu")
layer("LSTM", "LSTM_without_bias", bias=False)


class LanguageModel(torch.nn.Module):
    """Scores of the next of 50 words, by an embedding and two LSTMs."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(50, 12)
        self.lstm = torch.nn.LSTM(12, 16, 2)
        self.scores = torch.nn.Linear(16, 50)

    def forward(self, words, h, c):
        y, (h, c) = self.lstm(self.words(words), (h, c))
        return self.scores(y), h, c


torch.manual_seed(5)
model = LanguageModel().eval().requires_grad_(False)
exported("language_model", model, torch.randint(0, 50, (20, 3)),
         torch.randn(2, 3, 16), torch.randn(2, 3, 16), opset=13)


# ------------------------------------------------------- what numpy computes
ACTIVATIONS = {
    "Affine": lambda x, a, b: a * x + b,
    "Elu": lambda x, a, b: numpy.where(x > 0, x, a * numpy.expm1(x)),
    "HardSigmoid": lambda x, a, b: numpy.clip(a * x + b, 0, 1),
    "LeakyRelu": lambda x, a, b: numpy.where(x > 0, x, a * x),
    "Relu": lambda x, a, b: numpy.maximum(x, 0),
    "ScaledTanh": lambda x, a, b: a * numpy.tanh(b * x),
    "Sigmoid": lambda x, a, b: 1 / (1 + numpy.exp(-x)),
    "Softplus": lambda x, a, b: numpy.log1p(numpy.exp(x)),
    "Softsign": lambda x, a, b: x / (1 + abs(x)),
    "Tanh": lambda x, a, b: numpy.tanh(x),
    "ThresholdedRelu": lambda x, a, b: numpy.where(x > a, x, 0),
}


def advance(op, gates, xw, h, c, r, rb, p, linear, coupled):
    """The next h and c of one row. gates: functions."""
    n = len(h)
    part = lambda v, i: v[i * n:(i + 1) * n]
    if op == "RNN":
        return gates[0](xw + r @ h + rb), c
    if op == "GRU":
        z, reset = (gates[0](part(xw + r @ h + rb, i)) for i in (0, 1))
        inner = (reset * part(r @ h + rb, 2) if linear else
                 part(r, 2) @ (reset * h) + part(rb, 2))
        return z * h + (1 - z) * gates[1](part(xw, 2) + inner), c
    v = xw + r @ h + rb
    i = gates[0](part(v, 0) + part(p, 0) * c)
    f = 1 - i if coupled else gates[0](part(v, 2) + part(p, 2) * c)
    c = f * c + i * gates[1](part(v, 3))
    return gates[0](part(v, 1) + part(p, 1) * c) * gates[2](c), c


def check(name, op, direction="forward", layout=0, lengths=None, names=None,
          alpha=(), beta=(), clip=None, peepholes=False, linear=0, coupled=0,
          state=True, time=5, batch=3, inside=2, n=4, only=None,
          known=False):
    usual = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"),
             "RNN": ("Tanh", )}[op]
    both = 1 + (direction == "bidirectional")
    ways = {"forward": [1], "reverse": [-1], "bidirectional": [1, -1]}
    width = n * {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    draw = lambda *shape: random.uniform(-1, 1, shape).astype("float32")
    x, w, r = draw(time, batch, inside), draw(both, width, inside), draw(
        both, width, n)
    b, p = draw(both, 2 * width), draw(both, 3 * n) * peepholes
    h0, c0 = draw(both, batch, n) * state, draw(both, batch, n) * state
    y = numpy.zeros((time, both, batch, n), "float32")
    h1, c1 = h0.astype("float64"), c0.astype("float64")
    for d, way in enumerate(ways[direction]):
        each = (names or usual * both)[d * len(usual):(d + 1) * len(usual)]
        gates = [
            lambda v, f=ACTIVATIONS[a], i=i: f(
                v if clip is None else numpy.clip(v, -clip, clip),
                *[(s[i] if i < len(s) else o)
                  for s, o in ((alpha, 1), (beta, 1))])
            for i, a in enumerate(each)]
        for row in range(batch):
            steps = range(time if lengths is None else lengths[row])
            for t in steps[::way]:
                h1[d, row], c1[d, row] = advance(
                    op, gates, w[d] @ x[t, row] + b[d, :width], h1[d, row],
                    c1[d, row], r[d], b[d, width:], p[d], linear, coupled)
                y[t, d, row] = h1[d, row]
    turn = lambda a: a.swapaxes(0, 1) if layout else a
    inputs = [turn(x), w, r, b,
              None if lengths is None else numpy.array(lengths, "int32"),
              turn(h0) if state else None]
    outputs = [y.transpose(2, 0, 1, 3) if layout else y,
               turn(h1.astype("float32"))]
    more = {"layout": layout} if layout else {}
    if op == "LSTM":
        inputs += [turn(c0) if state else None, p if peepholes else None]
        outputs += [turn(c1.astype("float32"))]
        more.update({"input_forget": 1} if coupled else {})
    if linear:
        more["linear_before_reset"] = 1
    for key, value in (("activations", names), ("activation_alpha", alpha),
                       ("activation_beta", beta), ("clip", clip)):
        if value:
            more[key] = value
    while inputs[-1] is None:
        inputs.pop()
    node(name, op, inputs, outputs, opset=14, hidden_size=n,
         constants=["x1", "x2", "x3", "x4"] if known else (),
         direction=direction, **more)


for op in "LSTM", "GRU", "RNN":
    for direction in "forward", "reverse", "bidirectional":
        for layout in 0, 1:
            check(f"{op}_{direction}_{layout}", op, direction, layout,
                  lengths=[2, 5, 0] if layout else [5, 1, 3], known=layout)
    check(f"{op}_clip", op, clip=0.25, state=False)
check("LSTM_peepholes", "LSTM", "bidirectional", peepholes=True)
check("LSTM_coupled", "LSTM", "reverse", coupled=1, peepholes=True)
check("GRU_linear", "GRU", "bidirectional", linear=1)
check("RNN_full_lengths", "RNN", "reverse", lengths=[5, 5, 5], known=True)
check("RNN_one_step", "RNN", time=1, batch=1)
check("LSTM_activations", "LSTM", names=["HardSigmoid", "ScaledTanh", "Affine"],
      alpha=[0.3, 0.8, 0.7], beta=[0.4, 1.2, -0.1])
check("LSTM_two_directions", "LSTM", "bidirectional",
      names=["Sigmoid", "Softsign", "Relu", "Sigmoid", "Softplus", "Tanh"])
for name, alpha in (("Elu", 0.5), ("LeakyRelu", 0.3), ("ThresholdedRelu", 0.2)):
    check(f"RNN_{name}", "RNN", names=[name], alpha=[alpha])

# ------------------------------------------------------------------ refusals
x, w, r = (numpy.zeros(shape, "float32")
           for shape in ((5, 3, 2), (1, 4, 2), (1, 4, 4)))
refused("activation", "there is no activation 'Gelu'", "RNN", [x, w, r],
        activations=["Gelu"])
refused("activations", "it has 2 activations instead of 1", "RNN", [x, w, r],
        activations=["Tanh", "Tanh"])
refused("direction", "it has no such direction", "RNN", [x, w, r],
        direction="sideways")
refused("clip", "clip is negative", "RNN", [x, w, r], clip=-1.0)
refused("hidden_size", "hidden_size is not that of R", "RNN", [x, w, r],
        hidden_size=5)
refused("rank", "X and R should have 3 dimensions", "RNN", [x[0], w, r])
refused("gates", "input 1 (W) does not fit the others", "GRU", [x, w, r])
refused("directions", "input 1 (W) does not fit the others", "RNN", [x, w, r],
        direction="bidirectional")
refused("state", "others: it should be [1,3,4]", "RNN",
        [x, w, r, None, None, numpy.zeros((3, 1, 4), "float32")])
refused("type", "input 2 (R) has another type than X", "RNN",
        [x, w, r.astype("float16")])
refused("steps", "an extent is 0", "RNN", [x[:0], w, r])
refused("length", "sequence_lens has 6, and X has 5 steps", "RNN",
        [x, w, r, None, numpy.array([5, 6, 0], "int32")], constants=["x4"])
refused("layout", "attribute 'linear_before_reset' is not supported", "RNN",
        [x, w, r], linear_before_reset=1)

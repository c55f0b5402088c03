# SPDX-License-Identifier: Apache-2.0
"""Networks that people export to ONNX: those of torchvision, and language
models of PyTorch's own modules, at full size or small.

build(name, small) returns a network in eval mode with random weights, and a
function that draws its inputs for a batch. Statistics of normalisations are
those of random images, so that outputs have a usual size. for_training makes
its normalisations and its export those of a training step, without dropout.
"""
import copy
import math

import torch
import torch.nn.functional as F
import torchvision
from torch import nn

SEED = 7


class Attention(nn.Module):
    """Several heads; queries, keys and values from one matrix or from three."""

    def __init__(self, width, heads, causal=0):
        super().__init__()
        self.heads, self.causal = heads, causal
        if causal:
            self.all = nn.Linear(width, 3 * width)
            self.register_buffer("seen", torch.tril(torch.ones(
                causal, causal, dtype=torch.bool)))
        else:
            self.query, self.key, self.value = (
                nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x, mask=None):
        parts = (self.all(x).split(x.shape[2], dim=2) if self.causal else
                 (self.query(x), self.key(x), self.value(x)))
        q, k, v = (self.split(part) for part in parts)
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
        if self.causal:
            seen = self.seen[:x.shape[1], :x.shape[1]]
            scores = torch.where(seen, scores, torch.tensor(-1e4))
        else:
            scores = scores + mask
        y = scores.softmax(3) @ v
        return self.out(y.transpose(1, 2).reshape(x.shape))


class Gelu(nn.Module):
    """GPT-2's, of a power and tanh."""

    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(
            math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))))


def perceptron(width, activation):
    return nn.Sequential(nn.Linear(width, 4 * width), activation,
                         nn.Linear(4 * width, width))


class EncoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm1, self.norm2 = (nn.LayerNorm(width, 1e-12)
                                  for _ in range(2))
        self.perceptron = perceptron(width, nn.GELU())

    def forward(self, x, mask):
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.perceptron(x))


class Bert(nn.Module):
    """BERT's encoder with its pooling; outputs states and the pooled one."""

    def __init__(self, words, width, heads, layers, length=512):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(length, width)
        self.types = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, 1e-12)
        self.layers = nn.ModuleList(
            [EncoderLayer(width, heads) for _ in range(layers)])
        self.pool = nn.Linear(width, width)

    def forward(self, ids, mask):
        mask = (1 - mask[:, None, None, :].float()) * -10000.0
        places = torch.arange(ids.shape[1])[None]
        x = self.norm(self.words(ids) + self.places(places) +
                      self.types(torch.zeros_like(ids)))
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pool(x[:, 0]))


class DecoderLayer(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(width) for _ in range(2))
        self.attention = Attention(width, heads, causal=length)
        self.perceptron = perceptron(width, Gelu())

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.perceptron(self.norm2(x))


class Gpt2(nn.Module):
    """GPT-2's decoder; its output matrix is that of the words."""

    def __init__(self, words, width, heads, layers, length):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(length, width)
        nn.init.normal_(self.words.weight, std=0.02)
        self.layers = nn.Sequential(
            *[DecoderLayer(width, heads, length) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        places = torch.arange(ids.shape[1])[None]
        x = self.layers(self.words(ids) + self.places(places))
        return self.norm(x) @ self.words.weight.t()


class LanguageModel(nn.Module):
    """Two layers of LSTM."""

    def __init__(self, words, width):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, 2, batch_first=True)
        self.out = nn.Linear(width, words)

    def forward(self, ids):
        return self.out(self.lstm(self.words(ids))[0])


def tokens(words, length, mask=False):
    def draw(batch):
        ids = torch.randint(words, (batch, length))
        if not mask:
            return (ids,)
        lengths = torch.randint(length // 2, length + 1, (batch, 1))
        return ids, (torch.arange(length)[None] < lengths).long()
    return draw


def images(side):
    return lambda batch: (torch.randn(batch, 3, side, side),)


# name: (how it is made, inputs), at full size and small.
TEXT = {
    "bert": (
        lambda: (Bert(30522, 768, 12, 12), tokens(30522, 128, mask=True)),
        lambda: (Bert(1000, 64, 4, 3), tokens(1000, 24, mask=True))),
    "gpt2": (
        lambda: (Gpt2(50257, 768, 12, 12, 1024), tokens(50257, 128)),
        lambda: (Gpt2(1000, 64, 4, 3, 64), tokens(1000, 24))),
    "lstm": (
        lambda: (LanguageModel(10000, 256), tokens(10000, 64)),
        lambda: (LanguageModel(1000, 48), tokens(1000, 20))),
}
IMAGES = ("resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_small",
          "efficientnet_b0", "vgg11", "densenet121", "squeezenet1_1",
          "vit_b_16")


def shrink_vgg(model):
    """Images of 64 x 64 leave 2 x 2 pixels, which cannot be exported as the
    averages of 7 x 7 that follow; so these stay 2 x 2."""
    model.avgpool = nn.Identity()
    widths = (512 * 2 * 2, 256, 256, 1000)
    layers = [m for m in model.classifier if isinstance(m, nn.Linear)]
    for layer, ins, outs in zip(layers, widths, widths[1:]):
        layer.__init__(ins, outs)


def build(name, small=False):
    torch.manual_seed(SEED)
    if name in TEXT:
        model, draw = TEXT[name][small]()
        return model.eval(), draw
    side = 64 if small else 224
    more = {"image_size": side} if name.startswith("vit") else {}
    model = getattr(torchvision.models, name)(**more)
    if small and name == "vgg11":
        shrink_vgg(model)
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None  # the mean of what it sees
    with torch.no_grad():
        if name.startswith("vit"):  # else its outputs are zeros
            nn.init.normal_(model.heads.head.weight, std=0.02)
        if norms:
            model(torch.randn(8, 3, 64, 64))
    return model.eval(), images(side)


def for_training(model):
    """Statistics of normalisations are those of the batch, and the running
    ones move by a tenth; nothing is dropped, as draws would differ."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 0.1
        if isinstance(module, (nn.Dropout, torchvision.ops.StochasticDepth)):
            module.p = 0.0
    return model.train()


def first(outputs):
    return outputs if isinstance(outputs, torch.Tensor) else outputs[0]


def draw_labels(model, inputs):
    """A class for each row of logits of the first output."""
    with torch.no_grad():
        shape = first(model(*inputs)).shape
    return torch.randint(shape[-1], shape[:-1])


def loss_of(model, inputs, labels):
    y = first(model(*inputs))
    return F.cross_entropy(y.reshape(-1, y.shape[-1]), labels.reshape(-1))


def export(model, inputs, path, opset=13):
    """Writes the network with an open batch; inputs are called x0, x1. One in
    training keeps its normalisations and its parameters."""
    names = [f"x{i}" for i in range(len(inputs))]
    with torch.no_grad():
        outputs = copy.deepcopy(model)(*inputs)
    count = 1 if isinstance(outputs, torch.Tensor) else len(outputs)
    outs = [f"y{i}" for i in range(count)]
    mode = torch.onnx.TrainingMode
    torch.onnx.export(
        model, inputs, path, opset_version=opset, input_names=names,
        output_names=outs, do_constant_folding=not model.training,
        training=mode.TRAINING if model.training else mode.EVAL,
        dynamic_axes={n: {0: "batch"} for n in names + outs})

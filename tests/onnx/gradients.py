# SPDX-License-Identifier: Apache-2.0
"""gradients.py export NETWORK SIZE FOLDER [OPSET], then gradients.py check FOLDER.

The first exports a network of bench/pytorch/networks.py in training, small or
full, to model.onnx, with inputs x0.npy and so on and labels.npy, and writes to
wanted.npz what PyTorch's gradients are, and the statistics that its
normalisations keep. The second compares trained.onnx with them, which ipu-run
has saved after one step of SGD, and what it printed of it, steps: with the rate
RATE, so large that the weights themselves do not round the gradients away.

Networks with batch normalisations, and VGG-11, get activations without kinks.
Rounding moves some activations across a kink, and normalisations pass the
difference on: with those that the networks have, PyTorch's own gradients in
float32 and float64 differ by up to 7 % (ResNet-18).
"""
import os
import sys

import numpy
import onnx
from onnx import numpy_helper
import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../../bench/pytorch"))
import networks  # noqa: E402

RATE = 1024.0
TOLERANCE = 1e-3


def smooth():
    """Replaces the activations of torchvision's networks that have kinks."""
    F.relu = F.hardswish = F.hardtanh = (
        lambda x, *options, **more: x * torch.sigmoid(x))
    F.hardsigmoid = lambda x, inplace=False: torch.sigmoid(x)


def export(name, size, folder, opset="13"):
    torch.set_num_threads(1)
    model, draw = networks.build(name, size == "small")
    networks.for_training(model)
    normalised = any(isinstance(m, torch.nn.BatchNorm2d)
                     for m in model.modules())
    if normalised or name == "vgg11":
        smooth()
    inputs = draw(4)
    networks.export(model, draw(2), f"{folder}/model.onnx", int(opset))
    state = {n: t.clone() for n, t in model.state_dict().items()}
    labels = networks.draw_labels(model, inputs)
    model.load_state_dict(state)  # drawing labels moved the statistics
    loss = networks.loss_of(model, inputs, labels)
    loss.backward()
    for i, x in enumerate(inputs):
        numpy.save(f"{folder}/x{i}.npy", x.numpy())
    numpy.save(f"{folder}/labels.npy", labels.numpy())
    wanted = {f"gradient:{n}": p.grad.numpy()
              for n, p in model.named_parameters() if p.grad is not None}
    wanted.update({f"value:{n}": b.numpy() for n, b in model.named_buffers()
                   if "running" in n})
    numpy.savez(f"{folder}/wanted.npz", loss=loss.item(), **wanted)


def compare(what, got, wanted, least):
    """Differences are measured by the tensor's largest element, or by least if
    that is more: sums whose true value is 0 are noise."""
    error = abs(got - wanted).max() / max(abs(wanted).max(), least)
    print(f"{what:60} {abs(wanted).max():10.3g} {error:10.2g}")
    return error


def check(folder):
    tensors = [{t.name: numpy_helper.to_array(t)
                for t in onnx.load(f"{folder}/{n}.onnx").graph.initializer}
               for n in ("model", "trained")]
    before, after = tensors
    wanted = numpy.load(f"{folder}/wanted.npz")
    loss = float(open(f"{folder}/steps").read().split()[3])
    assert abs(loss - wanted["loss"]) <= 1e-4 * wanted["loss"], loss
    gradients = [k for k in wanted.files if k.startswith("gradient:")]
    least = 1e-3 * max(abs(wanted[k]).max() for k in gradients)
    worst = 0
    for key in wanted.files:
        name = key.partition(":")[2]
        if key.startswith("value:"):
            worst = max(worst, compare(key, after[name], wanted[key], 1e-3))
        elif key.startswith("gradient:"):
            got = (before[name].astype("float64") - after[name]) / RATE
            worst = max(worst, compare(key, got, wanted[key], least))
    print(len(gradients), "gradients; the largest difference is", worst)
    assert len(gradients) > 10 and worst <= TOLERANCE


{"export": export, "check": check}[sys.argv[1]](*sys.argv[2:])

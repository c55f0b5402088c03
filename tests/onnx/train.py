# SPDX-License-Identifier: Apache-2.0
"""train.py export FOLDER, and then train.py check FOLDER.

The first exports a small network to model.onnx, with x.npy and labels.npy, and
trains it: losses.txt has the loss of each step, and weights.npz what the weights
became. The second compares trained.onnx, which ipu-run has saved, with them.
"""
import sys

import numpy
import onnx
from onnx import numpy_helper
import torch
import torch.nn.functional as F

command, folder = sys.argv[1:]


def export():
    torch.manual_seed(11)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(2, 4, 3, stride=2, padding=1), torch.nn.ReLU(),
        torch.nn.Conv2d(4, 6, 3, groups=2), torch.nn.Tanh(),
        torch.nn.AvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(6, 8),
        torch.nn.LayerNorm(8), torch.nn.Linear(8, 3))
    x, labels = torch.randn(5, 2, 8, 8), torch.tensor([0, 2, 1, 1, 0])
    torch.onnx.export(
        model, x, f"{folder}/model.onnx", opset_version=13, input_names=["x"],
        output_names=["y"], training=torch.onnx.TrainingMode.TRAINING,
        do_constant_folding=False)
    numpy.save(f"{folder}/x.npy", x.numpy())
    numpy.save(f"{folder}/labels.npy", labels.numpy())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.125, momentum=0.5)
    with open(f"{folder}/losses.txt", "w") as file:
        for step in range(8):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), labels)
            loss.backward()
            optimizer.step()
            print(loss.item(), file=file)
    numpy.savez(f"{folder}/weights.npz", **{
        name: p.detach().numpy() for name, p in model.named_parameters()})


def check():
    model = onnx.load(f"{folder}/trained.onnx")
    onnx.checker.check_model(model, full_check=True)
    first = onnx.load(f"{folder}/model.onnx")
    assert model.graph.node == first.graph.node
    weights = numpy.load(f"{folder}/weights.npz")
    saved = {t.name: numpy_helper.to_array(t)
             for t in model.graph.initializer}
    before = {t.name: numpy_helper.to_array(t)
              for t in first.graph.initializer}
    assert set(weights.files) <= set(saved) == set(before)
    for name in weights.files:
        difference = abs(saved[name] - weights[name]).max()
        print(name, "moved", abs(saved[name] - before[name]).max(),
              "difference", difference)
        assert difference <= 1e-4 and (saved[name] != before[name]).any()


{"export": export, "check": check}[command]()

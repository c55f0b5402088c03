# SPDX-License-Identifier: Apache-2.0
"""export.py NETWORK FOLDER - exports a network of torchvision to FOLDER.

Writes model.onnx, with an open batch, and x.npy and y.npy, an input and what
PyTorch makes of it. Weights are random; statistics of normalisations are those
of random images, so that outputs have a usual size.
"""
import sys

import numpy
import torch
import torchvision

name, folder = sys.argv[1:]
torch.manual_seed(7)
torch.set_num_threads(1)
model = getattr(torchvision.models, name)()
for module in model.modules():
    if isinstance(module, torch.nn.BatchNorm2d):
        module.momentum = None  # the mean of what it sees
with torch.no_grad():
    model(torch.randn(8, 3, 64, 64))
    model.eval()
    x = torch.randn(3, 3, 64, 64)
    y = model(x)
torch.onnx.export(
    model, x, f"{folder}/model.onnx", opset_version=13, input_names=["x"],
    output_names=["y"], dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})
numpy.save(f"{folder}/x.npy", x.numpy())
numpy.save(f"{folder}/y.npy", y.numpy())

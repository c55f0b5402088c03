# SPDX-License-Identifier: Apache-2.0
"""export.py NETWORK SIZE FOLDER [OPSET] - exports a network to FOLDER.

NETWORK is one of bench/pytorch/networks.py; SIZE is small or full. Writes
model.onnx, with an open batch, and x0.npy and y0.npy and so on, inputs and what
PyTorch makes of them: of three samples of a small network, and one of a full
one.
"""
import os
import sys

import numpy
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../../bench/pytorch"))
import networks  # noqa: E402

name, size, folder = sys.argv[1:4]
torch.set_num_threads(1)
model, draw = networks.build(name, size == "small")
inputs = draw(3 if size == "small" else 1)
with torch.no_grad():
    outputs = model(*inputs)
networks.export(model, draw(2), f"{folder}/model.onnx",
                int(sys.argv[4]) if len(sys.argv) > 4 else 13)
if isinstance(outputs, torch.Tensor):
    outputs = (outputs,)
for i, x in enumerate(inputs):
    numpy.save(f"{folder}/x{i}.npy", x.numpy())
for i, y in enumerate(outputs):
    numpy.save(f"{folder}/y{i}.npy", y.numpy())

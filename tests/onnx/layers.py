#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports two linear layers of 64 features, with an open batch.

usage: layers.py FILE
"""
import sys

import torch

torch.manual_seed(1)
layers = torch.nn.Sequential(
    torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64)
)
torch.onnx.export(
    layers,
    torch.zeros(4, 64),
    sys.argv[1],
    input_names=["x"],
    dynamic_axes={"x": {0: "n"}},
)

# SPDX-License-Identifier: Apache-2.0
"""
ipu: a software model of Graphcore's IPU, from Python: graphs, networks with layers that
are trained on one process or several, and models of ONNX files; and what they take of a
chip. See docs/PYTHON-IPU.md.
"""
from . import layers, ops
from ._errors import Error, Status
from ._graph import DTYPES, Graph, Tensor
from ._library import engine as _engine
from .model import Model
from .onnx import OnnxModel, Value, load_onnx
from .program import Footprint, Program, fits

set_threads = _engine.set_threads

__all__ = ["DTYPES", "Error", "Footprint", "Graph", "Model", "OnnxModel", "Program", "Status",
           "Tensor", "Value", "fits", "layers", "load_onnx", "ops", "set_threads"]

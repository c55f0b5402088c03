# SPDX-License-Identifier: Apache-2.0
"""
Starting, who is who, and process sets, for programs that say "import
horovod.tensorflow as hvd" and do no more. There are no operations on tensors of
TensorFlow.
"""
from hvd.torch._basics import *  # noqa: F401,F403

from . import mpi_ops  # noqa: F401


def __getattr__(name):
    raise AttributeError(f"horovod.tensorflow has no '{name}' here: libhvd has no operations "
                         "for TensorFlow, only for numpy (hvd) and PyTorch (horovod.torch)")

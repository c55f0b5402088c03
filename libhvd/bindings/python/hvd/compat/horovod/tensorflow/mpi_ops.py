# SPDX-License-Identifier: Apache-2.0
"""horovod.tensorflow.mpi_ops, without operations on tensors."""
from horovod.common.basics import _basics  # noqa: F401
from hvd.torch._basics import *  # noqa: F401,F403

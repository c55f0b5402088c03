# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.mpi_ops: see hvd.torch.mpi_ops."""
from horovod.common.basics import _basics  # noqa: F401
from hvd.torch._basics import *  # noqa: F401,F403
from hvd.torch.mpi_ops import *  # noqa: F401,F403

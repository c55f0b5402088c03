# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.mpi_ops: see hvd.torch.mpi_ops."""
from hvd.torch.mpi_ops import *  # noqa: F401,F403

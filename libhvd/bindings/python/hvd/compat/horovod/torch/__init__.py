# SPDX-License-Identifier: Apache-2.0
"""horovod.torch: see hvd.torch."""
from hvd.torch import *  # noqa: F401,F403

from . import compression, elastic, functions, mpi_ops, optimizer, sync_batch_norm  # noqa: F401

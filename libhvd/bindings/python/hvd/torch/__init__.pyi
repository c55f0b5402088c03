# SPDX-License-Identifier: Apache-2.0
"""Types of hvd.torch; the stubs of its modules have those of the functions."""
from . import (
    compression as compression,
    ddp as ddp,
    distributed as distributed,
    elastic as elastic,
    exceptions as exceptions,
    functions as functions,
    mpi_ops as mpi_ops,
    optimizer as optimizer,
    sync_batch_norm as sync_batch_norm,
)
from ._basics import *
from .compression import Compression as Compression
from .ddp import ddp_hook as ddp_hook
from .functions import (
    allgather_object as allgather_object,
    broadcast_object as broadcast_object,
    broadcast_optimizer_state as broadcast_optimizer_state,
    broadcast_parameters as broadcast_parameters,
)
from .mpi_ops import *
from .optimizer import DistributedOptimizer as DistributedOptimizer
from .sync_batch_norm import SyncBatchNorm as SyncBatchNorm

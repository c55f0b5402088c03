# SPDX-License-Identifier: Apache-2.0
"""
hvd for PyTorch, with Horovod's names: collectives on tensors where they lie, an
optimizer that reduces gradients while backward computes, and what all ranks get from
one at the start.

    import hvd.torch as hvd
    hvd.init()
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
"""
import torch.distributed as _distributed

from . import elastic  # noqa: F401
from ._basics import *  # noqa: F401,F403
from .compression import Compression  # noqa: F401
from .ddp import ddp_hook  # noqa: F401
from .functions import (allgather_object, broadcast_object,  # noqa: F401
                        broadcast_optimizer_state, broadcast_parameters)
from .mpi_ops import *  # noqa: F401,F403
from .optimizer import DistributedOptimizer  # noqa: F401
from .sync_batch_norm import SyncBatchNorm  # noqa: F401

if _distributed.is_available():
    from . import distributed  # noqa: F401

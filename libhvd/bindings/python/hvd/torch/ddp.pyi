# SPDX-License-Identifier: Apache-2.0
"""Types of the hook for DistributedDataParallel."""
import torch
from torch._C._distributed_c10d import GradBucket

from .compression import Compressor

def ddp_hook(state: type[Compressor] | None,
             bucket: GradBucket) -> torch.futures.Future[torch.Tensor]: ...

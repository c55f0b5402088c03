# SPDX-License-Identifier: Apache-2.0
"""Types of the backend for torch.distributed. PyTorch makes its groups, and has the types
of their collectives."""
from datetime import timedelta
from typing import Any

from torch._C._distributed_c10d import ProcessGroup

import hvd

class ProcessGroupHvd(ProcessGroup):
    def __init__(self, rank: int, size: int, process_set: hvd.ProcessSet, pairs: Any,
                 timeout: timedelta) -> None: ...
    def getBackendName(self) -> str: ...

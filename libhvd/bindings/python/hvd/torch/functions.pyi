# SPDX-License-Identifier: Apache-2.0
"""Types of what all ranks get from one of them at the start."""
from typing import Any, TypeVar

import torch

from ._basics import ProcessSet

_T = TypeVar("_T")

def broadcast_parameters(
    params: dict[str, Any] | list[torch.Tensor] | list[tuple[str, torch.Tensor]],
    root_rank: int) -> None: ...
def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int,
                              model: torch.nn.Module | None = None) -> None: ...
def broadcast_object(obj: _T, root_rank: int = 0, name: str | None = None,
                     process_set: ProcessSet = ...) -> _T: ...
def allgather_object(obj: _T, name: str | None = None,
                     process_set: ProcessSet = ...) -> list[_T]: ...

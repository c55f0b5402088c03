# SPDX-License-Identifier: Apache-2.0
"""Types of the optimizer that reduces gradients."""
from collections.abc import Iterable
from typing import Any

import torch

from ._basics import ProcessSet
from .compression import Compressor

# The result is of a subclass of the optimizer's class, made when the program runs, which
# also has synchronize, skip_synchronize and set_backward_passes_per_step.
def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, torch.nn.Parameter]] | None = None,
    compression: type[Compressor] = ..., backward_passes_per_step: int = 1, op: int = ...,
    gradient_predivide_factor: float = 1.0, num_groups: int = 0,
    groups: int | list[list[torch.nn.Parameter]] | None = None,
    sparse_as_dense: bool = False, process_set: ProcessSet = ...) -> Any: ...

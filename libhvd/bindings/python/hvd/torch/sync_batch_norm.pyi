# SPDX-License-Identifier: Apache-2.0
"""Types of batch normalisation over the batches of all ranks."""
import torch
from torch.nn.modules.batchnorm import _BatchNorm

class SyncBatchNorm(_BatchNorm):
    def forward(self, input: torch.Tensor) -> torch.Tensor: ...
    @classmethod
    def convert_sync_batchnorm(cls, module: torch.nn.Module) -> torch.nn.Module: ...

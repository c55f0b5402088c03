# SPDX-License-Identifier: Apache-2.0
"""Types of how tensors are made smaller before they travel."""
from typing import Any

import torch

class Compressor:
    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]: ...
    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor: ...

class NoneCompressor(Compressor):
    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]: ...
    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor: ...

class _Cast(Compressor):
    dtype: torch.dtype | None

class FP16Compressor(_Cast):
    dtype: torch.dtype

class BF16Compressor(_Cast):
    dtype: torch.dtype

class Compression:
    none: type[Compressor]
    fp16: type[Compressor]
    bf16: type[Compressor]

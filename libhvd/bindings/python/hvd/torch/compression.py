# SPDX-License-Identifier: Apache-2.0
"""How tensors are made smaller before they travel."""
import torch


class Compressor:
    """What a compression of a program's own overrides."""

    @staticmethod
    def compress(tensor):
        """Returns the tensor that travels, and what decompress needs."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor, ctx):
        """Returns the tensor that it stands for."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Leaves tensors as they are."""

    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        return tensor


class _Cast(Compressor):
    """Sends floating tensors in a smaller type."""
    dtype = None

    @classmethod
    def compress(cls, tensor):
        if tensor.dtype.is_floating_point:
            return tensor.to(cls.dtype), tensor.dtype
        return tensor, None

    @classmethod
    def decompress(cls, tensor, ctx):
        return tensor if ctx is None else tensor.to(ctx)


class FP16Compressor(_Cast):
    """Sends float16."""
    dtype = torch.float16


class BF16Compressor(_Cast):
    """Sends bfloat16, which Horovod has not."""
    dtype = torch.bfloat16


class Compression:
    """The compressions that there are."""
    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor

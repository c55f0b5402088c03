# SPDX-License-Identifier: Apache-2.0
"""For programs that use torch.nn.parallel.DistributedDataParallel."""
from . import _memory
from ._later import future_of
from .compression import Compression
from .mpi_ops import allreduce_async_, synchronize


def ddp_hook(state, bucket):
    """
    Averages a bucket of gradients over all ranks, in place, while backward computes:

        model = DistributedDataParallel(model)
        model.register_comm_hook(None, hvd.ddp_hook)

    state: None, or how gradients travel, such as hvd.Compression.fp16. The process group
    of the model, of any backend, must be of the same ranks as this library's world.
    """
    _memory.keep()
    compression = Compression.none if state is None else state
    buffer = bucket.buffer()
    small, context = compression.compress(buffer)
    handle = allreduce_async_(small, name=f"ddp.bucket.{bucket.index()}")

    def finish():
        synchronize(handle)
        return compression.decompress(small, context)
    return future_of(finish)

# SPDX-License-Identifier: Apache-2.0
"""
A training in PyTorch whose ranks may be lost and may come, with the names of
horovod.torch.elastic:

    @hvd.elastic.run
    def train(state):
        while state.epoch < 10:
            ...
            state.epoch += 1
            state.commit()

    train(hvd.elastic.TorchState(model, optimizer, epoch=0))

When a rank is lost, the others make a new world, in the same processes, go back to their
last commits, take the state of rank 0, and call train again.
"""
from ._loop import ObjectState, State, run, run_fn  # noqa: F401
from .sampler import ElasticSampler
from .state import TorchState

__all__ = ["ElasticSampler", "TorchState", "run"]

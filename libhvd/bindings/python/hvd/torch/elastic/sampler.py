# SPDX-License-Identifier: Apache-2.0
"""Shares of a data set, when the ranks among which it is divided change."""
import random

import torch

from .._basics import rank, size


class ElasticSampler(torch.utils.data.Sampler):
    """
    Divides the indices of a data set among the ranks. Those that record_batch has counted
    in this epoch are left out when the rest is divided again, among the ranks that there
    are then: after a loss, when somebody has joined, and by load_state_dict. It belongs
    into the TorchState.

    shuffle: mixes the indices, on all ranks alike, by seed and by the epoch.
    """

    def __init__(self, dataset, shuffle=True, seed=0):
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = self.processed_num = 0
        self.reset()

    def set_epoch(self, epoch):
        """Begins an epoch, with all indices; to be called when one has ended."""
        self.epoch, self.processed_num = epoch, 0
        self.reset()

    def record_batch(self, batch_idx, batch_size):
        """Counts a batch of so many as done, on every rank. batch_idx has no meaning."""
        self.processed_num += batch_size * self.num_replicas

    def state_dict(self):
        """Returns what load_state_dict takes."""
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict):
        """Goes on where another sampler of this data set was."""
        self.epoch, self.processed_num = state_dict["epoch"], state_dict["processed_num"]
        self.reset()

    def reset(self):
        """Divides what is left among the ranks that there are now."""
        self.num_replicas, self.rank = size(), rank()
        indices = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(indices)
        self.remaining_indices = indices[self.processed_num:]
        self.num_samples = -(-len(self.remaining_indices) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self):
        padding = self.total_size - len(self.remaining_indices)
        # Fewer indices than ranks are repeated as often as it takes.
        again = self.remaining_indices * (-(-padding // max(1, len(self.remaining_indices))))
        self.indices = (self.remaining_indices + again[:padding])[self.rank::self.num_replicas]
        return iter(self.indices)

    def __len__(self):
        return self.num_samples

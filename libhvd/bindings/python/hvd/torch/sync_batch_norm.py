# SPDX-License-Identifier: Apache-2.0
"""
Batch normalisation over the batches of all ranks.

Each rank gathers, in one row for each rank, how many values a channel has, their mean
and the sum of their squared distances from it. From these rows all ranks compute the
mean and the variance of the joined batch, in float64 and in one order, so that they get
the same bits: differences of large sums, which cancel, do not occur. The backward pass
sums two numbers for each channel over the ranks. PyTorch's own layer has no kernels for
tensors in this machine's memory, so this one is composed of ordinary operations.
"""
import torch
from torch.nn.modules.batchnorm import _BatchNorm

from . import mpi_ops as ops
from ._basics import size


def _shaped(values, tensor):
    """Returns values, one for each channel, so that they multiply a tensor."""
    return values.reshape(1, -1, *[1] * (tensor.dim() - 2))


def _reduced_dims(tensor):
    return [i for i in range(tensor.dim()) if i != 1]


def _statistics(tensor):
    """Returns the values of a channel in the joined batch, their mean and their variance,
    in float64."""
    channels = tensor.shape[1]
    count = tensor.numel() // channels if channels else 0
    row = torch.zeros(2 * channels + 1, dtype=torch.float64)
    if count:
        wide = tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()
        variance, mean = torch.var_mean(wide, _reduced_dims(tensor), unbiased=False)
        row = torch.cat([row.new_tensor([count]), mean.double(), variance.double() * count])
    rows = ops.synchronize(ops.allgather_async(row.unsqueeze(0)))
    counts, means, squares = rows[:, :1], rows[:, 1:channels + 1], rows[:, channels + 1:]
    total = counts.sum()
    mean = (counts * means).sum(0) / total
    squares = squares.sum(0) + (counts * (means - mean) ** 2).sum(0)
    return int(total), mean, squares / total


class _Normalised(torch.autograd.Function):
    """The joined batch depends on every value of every rank; so do the gradients."""

    @staticmethod
    def forward(ctx, tensor, weight, bias, mean, variance, total, eps):
        kind = torch.float64 if tensor.dtype == torch.float64 else torch.float32
        inverse = (variance + eps).rsqrt()
        scale = inverse if weight is None else inverse * weight
        shift = -mean * scale if bias is None else bias - mean * scale
        ctx.save_for_backward(tensor, mean.to(kind), inverse.to(kind), scale.to(kind))
        ctx.total, ctx.affine = total, weight is not None
        return torch.addcmul(_shaped(shift.to(kind), tensor), tensor.to(kind),
                             _shaped(scale.to(kind), tensor)).to(tensor.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        tensor, mean, inverse, scale = ctx.saved_tensors
        gradient, dims = gradient.to(mean.dtype), _reduced_dims(tensor)
        normal = (tensor - _shaped(mean, tensor)) * _shaped(inverse, tensor)
        sums = torch.stack([gradient.sum(dims), (gradient * normal).sum(dims)])
        own = None
        if ctx.needs_input_grad[0]:
            means = ops.synchronize(ops.allreduce_async(sums, op=ops.Sum)) / ctx.total
            own = gradient - _shaped(means[0], tensor) - normal * _shaped(means[1], tensor)
            own = (own * _shaped(scale, tensor)).to(tensor.dtype)
        of_bias, of_weight = sums if ctx.affine else (None, None)
        return own, of_weight, of_bias, None, None, None, None


class SyncBatchNorm(_BatchNorm):
    """
    Does in training what torch.nn.BatchNorm1d, 2d or 3d would do to the batches of all
    ranks, joined; they may be of different lengths. Running statistics are those of the
    joined batch. In evaluation it does what these do, and ranks need not agree.

    All ranks must call it equally often. The gradients of weight and bias are those of
    this rank's values; DistributedOptimizer averages them, as it does others.
    """

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.shape[1] != self.num_features:
            raise ValueError(f"expected {self.num_features} channels, as SyncBatchNorm was "
                             f"made for, but the input has {input.shape[1]}: its shape is "
                             f"{tuple(input.shape)}")

    def forward(self, input):
        self._check_input_dim(input)
        kept = self.track_running_stats and self.running_mean is not None
        if not self.training and kept or size() == 1:
            return self._alone(input, kept)
        total, mean, variance = _statistics(input.detach())
        if total < 2:
            raise ValueError("expected more than 1 value per channel over all ranks when "
                             f"training, got {total}")
        if self.training and kept:
            self._keep(total, mean, variance)
        return _Normalised.apply(input, self.weight, self.bias, mean, variance, total,
                                 self.eps)

    def _alone(self, input, kept):
        if self.training and kept:
            self.num_batches_tracked += 1
        return torch.nn.functional.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not kept, self._momentum() if self.training and kept else 0.0,
            self.eps)

    def _momentum(self):
        """Returns the weight of the newest batch: None means that all weigh the same."""
        return 1.0 / float(self.num_batches_tracked) if self.momentum is None \
            else self.momentum

    @torch.no_grad()
    def _keep(self, total, mean, variance):
        self.num_batches_tracked += 1
        weight = self._momentum()
        for kept, new in ((self.running_mean, mean),
                          (self.running_var, variance * (total / (total - 1)))):
            kept.mul_(1 - weight).add_(new.to(kept.dtype), alpha=weight)

    @classmethod
    def convert_sync_batchnorm(cls, module):
        """Returns a module in whose place of each torch.nn.BatchNorm1d, 2d and 3d there
        is a SyncBatchNorm with the same parameters and statistics."""
        if isinstance(module, _BatchNorm) and not isinstance(module, cls):
            found = cls(module.num_features, module.eps, module.momentum, module.affine,
                        module.track_running_stats)
            found.weight, found.bias = module.weight, module.bias
            found.running_mean, found.running_var = module.running_mean, module.running_var
            found.num_batches_tracked = module.num_batches_tracked
            return found.train(module.training)
        for name, child in module.named_children():
            setattr(module, name, cls.convert_sync_batchnorm(child))
        return module

# SPDX-License-Identifier: Apache-2.0
"""
The collectives as functions that can be differentiated. Their backward passes are
collectives without names, so all ranks must run them in one order.
"""
import torch

from . import mpi_ops as ops


def _size(process_set):
    return len(ops._counts(process_set)[0])


def _rank(process_set):
    return process_set.rank()


class Allreduce(torch.autograd.Function):
    """The gradient of a reduction is reduced in the same way."""

    @staticmethod
    def forward(ctx, tensor, name, *options):
        ctx.options = options
        return ops.synchronize(ops.allreduce_async(tensor, None, name, *options))

    @staticmethod
    def backward(ctx, gradient):
        op, prescale, postscale, process_set = ctx.options
        reduced = ops.allreduce(gradient.contiguous(), op=op, prescale_factor=prescale,
                                postscale_factor=postscale, process_set=process_set)
        return reduced, None, None, None, None, None


class GroupedAllreduce(torch.autograd.Function):
    """The same for several tensors."""

    @staticmethod
    def forward(ctx, name, op, prescale, postscale, process_set, *tensors):
        ctx.options = op, prescale, postscale, process_set
        return tuple(ops.synchronize(ops.grouped_allreduce_async(
            tensors, None, name, *ctx.options)))

    @staticmethod
    def backward(ctx, *gradients):
        op, prescale, postscale, process_set = ctx.options
        return (None,) * 5 + tuple(ops.grouped_allreduce(
            [gradient.contiguous() for gradient in gradients], op=op,
            prescale_factor=prescale, postscale_factor=postscale, process_set=process_set))


def _own_rows(gradient, rows, process_set):
    """Returns the mean over the ranks of the rows that this rank gave to an allgather."""
    reduced = ops.allreduce(gradient.contiguous(), op=ops.Average, process_set=process_set)
    counts = ops.allgather(torch.IntTensor([rows]), process_set=process_set).tolist()
    return reduced.narrow(0, sum(counts[:_rank(process_set)]), rows)


class Allgather(torch.autograd.Function):
    """The gradient of the rows of a rank is the mean of those of all."""

    @staticmethod
    def forward(ctx, tensor, name, process_set):
        ctx.rows, ctx.process_set = tensor.shape[0] if tensor.dim() else 0, process_set
        return ops.synchronize(ops.allgather_async(tensor, name, process_set))

    @staticmethod
    def backward(ctx, gradient):
        return _own_rows(gradient, ctx.rows, ctx.process_set), None, None


class GroupedAllgather(torch.autograd.Function):
    """The same for several tensors."""

    @staticmethod
    def forward(ctx, name, process_set, *tensors):
        ctx.rows, ctx.process_set = [tensor.shape[0] for tensor in tensors], process_set
        return tuple(ops.synchronize(ops.grouped_allgather_async(tensors, name, process_set)))

    @staticmethod
    def backward(ctx, *gradients):
        return None, None, *[_own_rows(gradient, rows, ctx.process_set)
                             for gradient, rows in zip(gradients, ctx.rows)]


class Broadcast(torch.autograd.Function):
    """Only the root's tensor has a gradient."""

    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.root_rank, ctx.process_set = root_rank, process_set
        return ops.synchronize(ops.broadcast_async(tensor, root_rank, name, process_set))

    @staticmethod
    def backward(ctx, gradient):
        from ._basics import rank
        reduced = ops.allreduce(gradient.contiguous(), op=ops.Average,
                                process_set=ctx.process_set)
        return reduced if rank() == ctx.root_rank else reduced * 0, None, None, None


class Alltoall(torch.autograd.Function):
    """The gradient goes back to where the rows came from."""

    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        rows, counts = ops.synchronize(ops.alltoall_async(tensor, splits, name, process_set))
        ctx.process_set, ctx.shape = process_set, tensor.shape
        ctx.mark_non_differentiable(counts)
        ctx.counts = counts
        return rows, counts

    @staticmethod
    def backward(ctx, gradient, _):
        back, _ = ops.alltoall(gradient.contiguous(), splits=ctx.counts,
                               process_set=ctx.process_set)
        if back.shape != ctx.shape:  # rows that stayed have none
            whole = back.new_zeros(ctx.shape)
            whole[:back.shape[0]] = back
            back = whole
        return back, None, None, None


def _share_back(gradient, options):
    op, process_set, prescale, postscale = options
    if op == ops.Sum:
        gradient = gradient * _size(process_set)
    if prescale != 1.0:
        gradient = gradient * prescale
    if postscale != 1.0:
        gradient = gradient * postscale
    return gradient.contiguous()


class Reducescatter(torch.autograd.Function):
    """The gradients of all shares are gathered."""

    @staticmethod
    def forward(ctx, tensor, name, *options):
        ctx.options = options
        return ops.synchronize(ops.reducescatter_async(tensor, name, *options))

    @staticmethod
    def backward(ctx, gradient):
        return ops.allgather(_share_back(gradient, ctx.options),
                             process_set=ctx.options[1]), None, None, None, None, None


class GroupedReducescatter(torch.autograd.Function):
    """The same for several tensors."""

    @staticmethod
    def forward(ctx, name, op, process_set, prescale, postscale, *tensors):
        ctx.options = op, process_set, prescale, postscale
        return tuple(ops.synchronize(ops.grouped_reducescatter_async(
            tensors, name, *ctx.options)))

    @staticmethod
    def backward(ctx, *gradients):
        return (None,) * 5 + tuple(ops.grouped_allgather(
            [_share_back(gradient, ctx.options) for gradient in gradients],
            process_set=ctx.options[1]))

# SPDX-License-Identifier: Apache-2.0
"""
The collectives on tensors. Names that end in _async begin a request and return the
number of its handle, for synchronize and poll; those that end in _ write the result
into the tensor that they are given. Those that do neither can be differentiated.
"""
import warnings

import numpy as np
import torch

import hvd
from hvd._engine import engine

from . import _autograd
from ._basics import global_process_set
from ._requests import (begin, begin_group, poll, request, run, synchronize, tensor_of,
                        view_of)
from .compression import Compression
from .exceptions import translated

Average, Sum, Adasum, Min, Max, Product = range(6)


def handle_average_backwards_compatibility(op, average):
    """Returns the operation that op, or the older argument average, asks for."""
    if op is not None:
        if average is not None:
            raise ValueError("The op parameter supersedes average. Please provide only one of "
                             "them.")
        return op
    if average is None:
        return Average
    warnings.warn("Parameter `average` has been replaced with `op`", DeprecationWarning,
                  stacklevel=3)
    return Average if average else Sum


# ------------------------------------------------------------------ reductions

def _reduction(tensor, output, name, op, prescale, postscale, process_set):
    view = view_of(tensor)
    fields = request("allreduce", view, view if output is tensor else view_of(output), name,
                     op, 0, prescale, postscale, process_set)
    return fields, lambda _: output


def allreduce_async(tensor, average=None, name=None, op=None, prescale_factor=1.0,
                    postscale_factor=1.0, process_set=global_process_set):
    """Begins an allreduce into a new tensor."""
    op = handle_average_backwards_compatibility(op, average)
    return begin(*_reduction(tensor, torch.empty_like(tensor), name, op, prescale_factor,
                             postscale_factor, process_set))


def allreduce_async_(tensor, average=None, name=None, op=None, prescale_factor=1.0,
                     postscale_factor=1.0, process_set=global_process_set):
    """Begins an allreduce in place."""
    op = handle_average_backwards_compatibility(op, average)
    return begin(*_reduction(tensor, tensor, name, op, prescale_factor, postscale_factor,
                             process_set))


def allreduce_(tensor, average=None, name=None, op=None, prescale_factor=1.0,
               postscale_factor=1.0, process_set=global_process_set):
    """Combines the tensors of all ranks in place, and returns the tensor."""
    op = handle_average_backwards_compatibility(op, average)
    return run(*_reduction(tensor, tensor, name, op, prescale_factor, postscale_factor,
                           process_set))


def allreduce(tensor, average=None, name=None, compression=Compression.none, op=None,
              prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set):
    """
    Combines the tensors of all ranks, element by element, and returns the result.

    op: Average (the default), Sum, Min, Max, Product or Adasum.
    compression: how the data travels, of the class Compression.
    prescale_factor, postscale_factor: what inputs and the result are multiplied by.
    process_set: the ranks that take part.
    """
    op = handle_average_backwards_compatibility(op, average)
    small, context = compression.compress(tensor)
    reduced = _autograd.Allreduce.apply(small, name, op, prescale_factor, postscale_factor,
                                        process_set)
    return compression.decompress(reduced, context)


def grouped_allreduce_async(tensors, average=None, name=None, op=None, prescale_factor=1.0,
                            postscale_factor=1.0, process_set=global_process_set):
    """Begins an allreduce of several tensors, all or nothing, into new ones."""
    op = handle_average_backwards_compatibility(op, average)
    return begin_group("allreduce", name, [
        _reduction(tensor, torch.empty_like(tensor), None, op, prescale_factor,
                   postscale_factor, process_set) for tensor in tensors])


def grouped_allreduce_async_(tensors, average=None, name=None, op=None, prescale_factor=1.0,
                             postscale_factor=1.0, process_set=global_process_set):
    """Begins an allreduce of several tensors, all or nothing, in place."""
    op = handle_average_backwards_compatibility(op, average)
    return begin_group("allreduce", name, [
        _reduction(tensor, tensor, None, op, prescale_factor, postscale_factor, process_set)
        for tensor in tensors])


def grouped_allreduce_(tensors, average=None, name=None, op=None, prescale_factor=1.0,
                       postscale_factor=1.0, process_set=global_process_set):
    """Does what allreduce_ does to several tensors, all or nothing."""
    return synchronize(grouped_allreduce_async_(tensors, average, name, op, prescale_factor,
                                                postscale_factor, process_set))


def grouped_allreduce(tensors, average=None, name=None, compression=Compression.none, op=None,
                      prescale_factor=1.0, postscale_factor=1.0,
                      process_set=global_process_set):
    """Does what allreduce does to several tensors, all or nothing, and returns a list."""
    op = handle_average_backwards_compatibility(op, average)
    small, contexts = zip(*map(compression.compress, tensors))
    reduced = _autograd.GroupedAllreduce.apply(name, op, prescale_factor, postscale_factor,
                                               process_set, *small)
    return [compression.decompress(*each) for each in zip(reduced, contexts)]


def sparse_allreduce_async(tensor, name, op, process_set=global_process_set):
    """Begins an allreduce of a sparse tensor, and returns a function that waits for it
    and returns the sum, uncoalesced."""
    indices = allgather_async(tensor._indices().t().contiguous(), f"{name}.indices",
                              process_set)
    values = allgather_async(tensor._values(), f"{name}.values", process_set)

    def result():
        rows, content = synchronize(indices), synchronize(values)
        if op == Average:
            content = content / hvd.ProcessSet._with_id(int(process_set.__index__())).size()
        if rows.dim() == 0 or rows.numel() == 0:
            return torch.sparse_coo_tensor(rows.new_zeros((tensor.sparse_dim(), 0)), content,
                                           tensor.size(), dtype=tensor.dtype)
        return torch.sparse_coo_tensor(rows.t(), content, tensor.size())

    return result


# ---------------------------------------------------------------------- gathers

def _counts(process_set):
    """Returns an array for the rows of each rank, and a View of it."""
    with translated():
        members = hvd.ProcessSet._with_id(process_set.__index__()).size()
    counts = np.zeros(members, np.int64)
    return counts, engine.view(counts, True)


def _gathering(tensor, name, process_set):
    return request("allgather", view_of(tensor), None, name, process_set=process_set), tensor_of


def allgather_async(tensor, name=None, process_set=global_process_set):
    """Begins an allgather."""
    return begin(*_gathering(tensor, name, process_set))


def grouped_allgather_async(tensors, name=None, process_set=global_process_set):
    """Begins an allgather of several tensors, all or nothing."""
    return begin_group("allgather", name,
                       [_gathering(tensor, None, process_set) for tensor in tensors])


def allgather(tensor, name=None, process_set=global_process_set):
    """Returns the rows of all ranks, in their order. Ranks may have different numbers."""
    return _autograd.Allgather.apply(tensor, name, process_set)


def grouped_allgather(tensors, name=None, process_set=global_process_set):
    """Does what allgather does to several tensors, all or nothing, and returns a list."""
    return list(_autograd.GroupedAllgather.apply(name, process_set, *tensors))


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set):
    """Begins a broadcast in place."""
    return begin(request("broadcast", None, view_of(tensor), name, root=root_rank,
                         process_set=process_set), lambda _: tensor)


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set):
    """Begins a broadcast into a new tensor."""
    return broadcast_async_(tensor.detach().clone(), root_rank, name, process_set)


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    """Gives all ranks the tensor of a rank, which is one of the world; in place."""
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


def broadcast(tensor, root_rank, name=None, process_set=global_process_set):
    """Returns the tensor of a rank, which is one of the world, on all ranks."""
    return _autograd.Broadcast.apply(tensor, root_rank, name, process_set)


def _split_rows(splits, process_set):
    """Returns a View of the numbers of rows for each rank, or None."""
    if splits is None:
        return None
    if isinstance(splits, torch.Tensor):
        if splits.dtype != torch.int32:
            raise ValueError(f"alltoall expects splits as int32, not {splits.dtype}")
        splits = splits.tolist()
    rows = np.array(splits, np.int64).reshape(-1)
    if len(rows) == 0:
        return None
    if len(rows) != len(_counts(process_set)[0]):
        raise ValueError(f"{len(rows)} splits for {len(_counts(process_set)[0])} ranks")
    return engine.view(rows, False)


def alltoall_async(tensor, splits=None, name=None, process_set=global_process_set):
    """Begins an alltoall, whose result is always a pair."""
    counts, numbers = _counts(process_set)
    fields = request("alltoall", view_of(tensor), None, name, process_set=process_set,
                     splits=_split_rows(splits, process_set), counts=numbers)
    return begin(fields, lambda view: (tensor_of(view),
                                       torch.from_numpy(counts.astype(np.int32))))


def alltoall(tensor, splits=None, name=None, process_set=global_process_set):
    """Sends some rows to each rank: splits, or equally many. Returns the rows that came;
    with splits, also how many came from each rank."""
    rows, counts = _autograd.Alltoall.apply(tensor, splits, name, process_set)
    return rows if splits is None else (rows, counts)


def _scattering(tensor, name, op, process_set, prescale, postscale):
    return request("reducescatter", view_of(tensor), None, name, op, 0, prescale, postscale,
                   process_set), tensor_of


def reducescatter_async(tensor, name=None, op=Average, process_set=global_process_set,
                        prescale_factor=1.0, postscale_factor=1.0):
    """Begins a reducescatter."""
    return begin(*_scattering(tensor, name, op, process_set, prescale_factor,
                              postscale_factor))


def grouped_reducescatter_async(tensors, name=None, op=Average, process_set=global_process_set,
                                prescale_factor=1.0, postscale_factor=1.0):
    """Begins a reducescatter of several tensors, all or nothing."""
    return begin_group("reducescatter", name, [
        _scattering(tensor, None, op, process_set, prescale_factor, postscale_factor)
        for tensor in tensors])


def reducescatter(tensor, name=None, compression=Compression.none, op=Average,
                  process_set=global_process_set, prescale_factor=1.0, postscale_factor=1.0):
    """Does what allreduce does, and returns this rank's share of the rows."""
    small, context = compression.compress(tensor)
    share = _autograd.Reducescatter.apply(small, name, op, process_set, prescale_factor,
                                          postscale_factor)
    return compression.decompress(share, context)


def grouped_reducescatter(tensors, name=None, compression=Compression.none, op=Average,
                          process_set=global_process_set, prescale_factor=1.0,
                          postscale_factor=1.0):
    """Does what reducescatter does to several tensors, and returns a list."""
    small, contexts = zip(*map(compression.compress, tensors))
    shares = _autograd.GroupedReducescatter.apply(name, op, process_set, prescale_factor,
                                                  postscale_factor, *small)
    return [compression.decompress(*each) for each in zip(shares, contexts)]


def join(device=-1):
    """Says that this rank has no more data. Returns the rank that joined last. device
    has no meaning here."""
    with translated():
        return hvd.join()


def barrier(process_set=global_process_set):
    """Returns when every rank of the set has called it."""
    with translated():
        hvd.barrier(process_set)


__all__ = [name for name in dir() if not name.startswith("_") and name not in (
    "np", "torch", "hvd", "engine", "warnings", "begin", "begin_group", "request", "run",
    "tensor_of", "view_of", "translated", "Compression", "global_process_set")]

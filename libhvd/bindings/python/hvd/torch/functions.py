# SPDX-License-Identifier: Apache-2.0
"""What all ranks get from one of them at the start: parameters, the state of an
optimizer, objects."""
import torch

import hvd

from ._basics import global_process_set, rank
from .exceptions import translated
from .mpi_ops import broadcast_async_, synchronize


def broadcast_parameters(params, root_rank):
    """
    Gives all ranks the parameters of one, in place.

    params: model.state_dict(), or a list of tensors or of pairs of a name and a tensor.
    """
    if isinstance(params, dict):
        pairs = sorted(params.items())
    elif isinstance(params, list):
        pairs = [each if isinstance(each, tuple) else (str(i), each)
                 for i, each in enumerate(params)]
    else:
        raise ValueError(f"invalid params of type {type(params)}: a dict or a list")
    handles = [broadcast_async_(tensor.data, root_rank, name)
               for name, tensor in pairs if isinstance(tensor, torch.Tensor)]
    for handle in handles:
        synchronize(handle)


class _Place:
    """Stands for a tensor in a description of a state."""

    def __init__(self, number, tensor):
        self.number, self.shape, self.dtype = number, tuple(tensor.shape), tensor.dtype


def _map(value, change):
    """Returns a copy of nested containers in which change has been applied to the leaves."""
    if isinstance(value, dict):
        return {key: _map(each, change) for key, each in value.items()}
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_map(each, change) for each in value)
    return change(value)


def _make_gradients(optimizer):
    """Gives an optimizer without a state zeros as gradients, which Horovod leaves, and
    on which programs count."""
    if optimizer.state_dict()["state"]:
        return
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.requires_grad and parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)


def broadcast_optimizer_state(optimizer, root_rank, model=None):
    """
    Gives all ranks the options and the state of one rank's optimizer. A rank that has
    none yet, or another, gets it. model has no meaning here.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("cannot broadcast torch.optim.LBFGS state")
    _make_gradients(optimizer)
    tensors, is_root = [], rank() == root_rank

    def describe(value):
        if not isinstance(value, torch.Tensor):
            return value
        tensors.append(value)
        return _Place(len(tensors) - 1, value)

    def place(value):
        if not isinstance(value, _Place):
            return value
        tensors.append(torch.empty(value.shape, dtype=value.dtype))
        return tensors[-1]

    state = _map(optimizer.state_dict(), describe) if is_root else None
    state = broadcast_object(state, root_rank, "optimizer.state")
    if not is_root:
        tensors.clear()
        state = _map(state, place)
    handles = [broadcast_async_(tensor.data if tensor.is_contiguous()
                                else tensor.data.contiguous(), root_rank, f"state.{i}")
               for i, tensor in enumerate(tensors)]
    for handle in handles:
        synchronize(handle)
    if not is_root:
        optimizer.load_state_dict(state)


def broadcast_object(obj, root_rank=0, name=None, process_set=global_process_set):
    """Returns the object of a rank, which pickle must accept, on all ranks."""
    with translated():
        return hvd.broadcast_object(obj, root_rank, name and f"object.{name}", process_set)


def allgather_object(obj, name=None, process_set=global_process_set):
    """Returns a list of the objects of all ranks, which pickle must accept."""
    with translated():
        return hvd.allgather_object(obj, name and f"object.{name}",
                                    process_set.__index__())

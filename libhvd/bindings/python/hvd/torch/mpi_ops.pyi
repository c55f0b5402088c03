# SPDX-License-Identifier: Apache-2.0
"""Types of the collectives on tensors. A handle is a number."""
from collections.abc import Callable, Sequence
from typing import Any, overload

from torch import Tensor

from ._basics import ProcessSet
from .compression import Compressor

Average: int
Sum: int
Adasum: int
Min: int
Max: int
Product: int

def handle_average_backwards_compatibility(op: int | None, average: bool | None) -> int: ...

def allreduce_async(
    tensor: Tensor, average: bool | None = None, name: str | None = None,
    op: int | None = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = ...) -> int: ...
def allreduce_async_(
    tensor: Tensor, average: bool | None = None, name: str | None = None,
    op: int | None = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = ...) -> int: ...
def allreduce_(
    tensor: Tensor, average: bool | None = None, name: str | None = None,
    op: int | None = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = ...) -> Tensor: ...
def allreduce(
    tensor: Tensor, average: bool | None = None, name: str | None = None,
    compression: type[Compressor] = ..., op: int | None = None, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, process_set: ProcessSet = ...) -> Tensor: ...
def grouped_allreduce_async(
    tensors: Sequence[Tensor], average: bool | None = None, name: str | None = None,
    op: int | None = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = ...) -> int: ...
def grouped_allreduce_async_(
    tensors: Sequence[Tensor], average: bool | None = None, name: str | None = None,
    op: int | None = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = ...) -> int: ...
def grouped_allreduce_(
    tensors: Sequence[Tensor], average: bool | None = None, name: str | None = None,
    op: int | None = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = ...) -> list[Tensor]: ...
def grouped_allreduce(
    tensors: Sequence[Tensor], average: bool | None = None, name: str | None = None,
    compression: type[Compressor] = ..., op: int | None = None, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, process_set: ProcessSet = ...) -> list[Tensor]: ...
def sparse_allreduce_async(
    tensor: Tensor, name: str, op: int,
    process_set: ProcessSet = ...) -> Callable[[], Tensor]: ...

def allgather_async(
    tensor: Tensor, name: str | None = None, process_set: ProcessSet = ...) -> int: ...
def allgather(
    tensor: Tensor, name: str | None = None, process_set: ProcessSet = ...) -> Tensor: ...
def grouped_allgather_async(
    tensors: Sequence[Tensor], name: str | None = None,
    process_set: ProcessSet = ...) -> int: ...
def grouped_allgather(
    tensors: Sequence[Tensor], name: str | None = None,
    process_set: ProcessSet = ...) -> list[Tensor]: ...

def broadcast_async_(
    tensor: Tensor, root_rank: int, name: str | None = None,
    process_set: ProcessSet = ...) -> int: ...
def broadcast_async(
    tensor: Tensor, root_rank: int, name: str | None = None,
    process_set: ProcessSet = ...) -> int: ...
def broadcast_(
    tensor: Tensor, root_rank: int, name: str | None = None,
    process_set: ProcessSet = ...) -> Tensor: ...
def broadcast(
    tensor: Tensor, root_rank: int, name: str | None = None,
    process_set: ProcessSet = ...) -> Tensor: ...

def alltoall_async(
    tensor: Tensor, splits: Tensor | Sequence[int] | None = None, name: str | None = None,
    process_set: ProcessSet = ...) -> int: ...
@overload
def alltoall(
    tensor: Tensor, splits: None = None, name: str | None = None,
    process_set: ProcessSet = ...) -> Tensor: ...
@overload
def alltoall(
    tensor: Tensor, splits: Tensor | Sequence[int], name: str | None = None,
    process_set: ProcessSet = ...) -> tuple[Tensor, Tensor]: ...

def reducescatter_async(
    tensor: Tensor, name: str | None = None, op: int = ..., process_set: ProcessSet = ...,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0) -> int: ...
def grouped_reducescatter_async(
    tensors: Sequence[Tensor], name: str | None = None, op: int = ...,
    process_set: ProcessSet = ..., prescale_factor: float = 1.0,
    postscale_factor: float = 1.0) -> int: ...
def reducescatter(
    tensor: Tensor, name: str | None = None, compression: type[Compressor] = ...,
    op: int = ..., process_set: ProcessSet = ..., prescale_factor: float = 1.0,
    postscale_factor: float = 1.0) -> Tensor: ...
def grouped_reducescatter(
    tensors: Sequence[Tensor], name: str | None = None, compression: type[Compressor] = ...,
    op: int = ..., process_set: ProcessSet = ..., prescale_factor: float = 1.0,
    postscale_factor: float = 1.0) -> list[Tensor]: ...

def join(device: int = -1) -> int: ...
def barrier(process_set: ProcessSet = ...) -> None: ...
def poll(handle: int) -> bool: ...
# A tensor, a list of them, or what alltoall returns; None of a handle that is unknown.
def synchronize(handle: int) -> Any: ...

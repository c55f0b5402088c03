# SPDX-License-Identifier: Apache-2.0
"""
Requests on tensors where they lie. A handle is a number, as in Horovod: it stands for
a request, or several, until synchronize.
"""
import itertools

import numpy as np
import torch

from hvd._constants import KINDS
from hvd._engine import engine
from hvd._errors import Error
from hvd import _requests
from hvd._requests import Group, Handle

from .exceptions import translate

DTYPES = {torch.uint8: 0, torch.int8: 1, torch.int16: 3, torch.int32: 4, torch.int64: 5,
           torch.float16: 6, torch.float32: 7, torch.float64: 8, torch.bool: 9,
           torch.bfloat16: 10}
_BFLOAT16 = DTYPES[torch.bfloat16]
# These are multiplied in float32.
_SINGLE = {DTYPES[torch.float16], DTYPES[torch.float32], _BFLOAT16}

_pending, _numbers = {}, itertools.count(1)


def view_of(tensor):
    """Returns a View of the memory of a tensor."""
    dtype = DTYPES.get(tensor.dtype)
    if dtype is not None and tensor.is_cpu and tensor.is_contiguous():
        return engine.View(tensor.data_ptr(), dtype, tensor.shape, tensor)
    if tensor.device.type != "cpu":
        raise ValueError(f"the tensor is on {tensor.device}, not in this machine's memory")
    if not tensor.is_contiguous():
        raise ValueError("Tensor is required to be contiguous.")
    raise ValueError(f"Tensor type {tensor.type()} is not supported.")


def tensor_of(view):
    """Returns the tensor of a View of the library's memory."""
    array = np.asarray(view)
    if view.dtype == _BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _factor(view, factor):
    """Returns a factor as Horovod rounds it: to the type in which it multiplies."""
    if factor == 1.0:  # as nearly always; the rest takes as long as a small allreduce
        return 1.0
    return float(np.float32(factor)) if view and view.dtype in _SINGLE else float(factor)


def request(kind, input=None, output=None, name=None, op=0, root=0, prescale=1.0,
            postscale=1.0, process_set=0, splits=None, counts=None, capacity=0):
    """Returns the fields of a request. Names of different kinds are different."""
    return (KINDS[kind], op, root, input, output, f"{kind}.{name}" if name else None,
            _factor(input, prescale), _factor(input, postscale), process_set, 0, 0, 0,
            capacity, splits, counts)


def begin(fields, build):
    """Submits a request; build makes the result of the View of an output that the
    library has made, or of None. Returns the number of its handle."""
    number = next(_numbers)
    try:
        _pending[number] = Handle(fields, build)._submitted(engine.submit(*fields))
    except Error as error:
        raise translate(error) from None
    return number


def run(fields, build):
    """Submits a request, waits for it, and returns its result: in less time than begin
    and synchronize take."""
    try:
        return _requests.run(fields, build)
    except Error as error:
        raise translate(error) from None


def begin_group(kind, name, members):
    """Submits pairs of fields and build as a group."""
    number = next(_numbers)
    try:
        handles = engine.submit_group(f"{kind}.{name}" if name else None,
                                      [fields for fields, _ in members])
    except Error as error:
        raise translate(error) from None
    _pending[number] = Group([Handle(*member)._submitted(handle)
                              for member, handle in zip(members, handles)])
    return number


def poll(handle):
    """Returns whether the request of a handle is done, so that synchronize will not
    wait."""
    try:
        return handle not in _pending or _pending[handle].poll()
    except Error as error:
        raise translate(error) from None


def wait_until(handle, deadline):
    """Waits until the request of a handle is done, or until time.monotonic() is the
    deadline. Returns whether synchronize will not wait."""
    try:
        return handle not in _pending or _pending[handle].wait_until(deadline)
    except Error as error:
        raise translate(error) from None


def forget():
    """Lets go of all handles: those of a world that is no more."""
    _pending.clear()


def synchronize(handle):
    """Waits until the request of a handle is done, and returns its result. A handle that
    is unknown, or has been waited for, gives None."""
    pending = _pending.get(handle)
    if pending is None:
        return None
    try:
        result = pending.wait()
    except Error as error:
        del _pending[handle]
        raise translate(error) from None
    del _pending[handle]
    return result

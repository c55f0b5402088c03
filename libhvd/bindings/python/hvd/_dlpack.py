# SPDX-License-Identifier: Apache-2.0
"""
Reads the capsules of __dlpack__, by which tensors of other libraries show where
their memory is. numpy's from_dlpack would do, but it refuses bfloat16, and makes
arrays that cannot be written to.
"""
import ctypes as C

from ._constants import DTYPES
from ._engine import engine

_CPU, _BFLOAT = 1, 4
# By code and bits: 0 signed, 1 unsigned, 2 floating, 4 bfloat, 6 bool.
_DTYPES = {(0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64",
           (1, 8): "uint8", (1, 16): "uint16", (2, 16): "float16", (2, 32): "float32",
           (2, 64): "float64", (_BFLOAT, 16): "bfloat16", (6, 8): "bool"}


class _Tensor(C.Structure):  # DLTensor
    _fields_ = [("data", C.c_void_p), ("device_type", C.c_int32), ("device_id", C.c_int32),
                ("ndim", C.c_int32), ("code", C.c_uint8), ("bits", C.c_uint8),
                ("lanes", C.c_uint16), ("shape", C.POINTER(C.c_int64)),
                ("strides", C.POINTER(C.c_int64)), ("byte_offset", C.c_uint64)]


_get_pointer = C.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = C.c_void_p, [C.py_object, C.c_char_p]


def _is_contiguous(tensor):
    expected = 1
    if not tensor.strides:
        return True
    for i in reversed(range(tensor.ndim)):
        if tensor.shape[i] != 1 and tensor.strides[i] != expected:
            return any(tensor.shape[k] == 0 for k in range(tensor.ndim))
        expected *= tensor.shape[i]
    return True


def view_of(obj, what):
    """Returns a View of the memory of an object that has __dlpack__. The capsule is
    not taken over: it keeps the memory as long as the view lives."""
    capsule = obj.__dlpack__()
    tensor = _Tensor.from_address(_get_pointer(capsule, b"dltensor"))
    if tensor.device_type != _CPU:
        raise ValueError(f"{what} is in the memory of another device (DLPack's type "
                         f"{tensor.device_type}), not in this machine's")
    name = _DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if name is None:
        raise TypeError(f"hvd knows no dtype of {tensor.bits} bits of DLPack's code "
                        f"{tensor.code}: one of {', '.join(DTYPES)}")
    if not _is_contiguous(tensor):
        raise ValueError(f"{what} must be C-contiguous: its contiguous() is")
    return engine.View((tensor.data or 0) + tensor.byte_offset, DTYPES[name],
                       tensor.shape[:tensor.ndim], capsule)

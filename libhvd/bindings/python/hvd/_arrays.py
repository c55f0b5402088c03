# SPDX-License-Identifier: Apache-2.0
"""
Which memory an argument is: numpy arrays, whatever exports a buffer, whatever has
__dlpack__; and arrays of the library's own memory.
"""
import numpy as np

from . import _dlpack
from ._constants import DTYPES
from ._engine import engine

NAMES = {number: name for name, number in DTYPES.items()}
# The numpy dtype of each dtype; the bits of bfloat16 are uint16.
NUMPY = {number: np.dtype("uint16" if name == "bfloat16" else name)
         for number, name in NAMES.items()}
_BFLOAT16, _UINT16 = DTYPES["bfloat16"], DTYPES["uint16"]


def _checked(array, what):
    if not array.flags.c_contiguous:
        raise ValueError(f"{what} must be C-contiguous: np.ascontiguousarray makes it so")
    if not array.dtype.isnative:
        raise TypeError(f"{what} is {array.dtype.str}, of the other byte order: "
                        "array.astype(array.dtype.newbyteorder('=')) turns it")
    return array


def dtype_name(dtype):
    """Returns the name of a dtype that is given as one, or as numpy's."""
    return dtype if isinstance(dtype, str) else np.dtype(dtype).name


def _dtype_of(own, dtype):
    name = own if dtype is None else dtype_name(dtype)
    if name not in DTYPES:
        raise TypeError(f"hvd knows no dtype {name}: one of {', '.join(DTYPES)}")
    if name != own and (name, own) != ("bfloat16", "uint16"):
        raise TypeError(f"dtype is {name}, the array's {own}: array.astype converts"
                        + (", or pass the bits as uint16" if name == "bfloat16" else ""))
    return DTYPES[name]


def as_array(obj, what, written=False):
    """Returns the numpy array of an object that has no __dlpack__, or is one."""
    if not isinstance(obj, np.ndarray):
        try:
            obj = np.asarray(memoryview(obj))
        except TypeError:
            if written:
                raise TypeError(f"{what} is {type(obj).__name__}, not an array to write to") \
                    from None
            obj = np.asarray(obj)
    if written and not obj.flags.writeable:
        raise ValueError(f"{what} is written to, and this array is read-only")
    return _checked(obj, what)


def _describe(obj, what, dtype, written):
    """Returns a View of what is no plain buffer, or says why there is none."""
    if not isinstance(obj, np.ndarray) and hasattr(obj, "__dlpack__"):
        view = _dlpack.view_of(obj, what)
        _dtype_of(NAMES[view.dtype], dtype)
        return view
    array = as_array(obj, what, written)
    number = _dtype_of(array.dtype.name, dtype)
    return engine.View(array.ctypes.data, number, array.shape, array)


def source(obj, what="the input", dtype=None):
    """Returns a View of memory that the library reads."""
    view = engine.view(obj, False) if dtype is None else None
    return _describe(obj, what, dtype, False) if view is None else view


def target(obj, what="out", dtype=None):
    """Returns a View of memory that the library writes to."""
    view = engine.view(obj, True) if dtype is None else None
    return _describe(obj, what, dtype, True) if view is None else view


def same_dtype(one, other):
    """Whether two views have the same elements. The bits of bfloat16 may be uint16."""
    return one.dtype == other.dtype or {one.dtype, other.dtype} == {_BFLOAT16, _UINT16}


def says(view):
    """Returns dtype and shape as messages show them."""
    return f"{NAMES[view.dtype]}{list(view.shape)}"


def places(array, out, dtype):
    """Returns Views of an input and of a result that is as large, and the array of the
    result: out, or a new array."""
    if out is array and dtype is None:
        view = engine.view(array, True)
        if view is not None:
            return view, view, array
    view = source(array, "the input", dtype)
    if out is None:
        out = np.empty(view.shape, NUMPY[view.dtype])
        return view, engine.view(out, True), out
    found = target(out, "out", dtype)
    if found.shape != view.shape or not same_dtype(found, view):
        raise ValueError(f"out is {says(found)}, the input {says(view)}")
    return view, found, out


def array_of(view):
    """Returns the array of a View that the library has made."""
    return np.asarray(view)


def empty(shape, dtype="float32"):
    """
    Returns a new array in memory that collectives work on fastest: that of
    hvd_malloc, which all ranks of a host share. Its elements are not defined.

    shape: a number, or a tuple of them.
    dtype: a numpy dtype or its name; "bfloat16" gives an array of uint16.
    """
    shape = (shape,) if hasattr(shape, "__index__") else tuple(shape)
    name = dtype_name(dtype)
    if name not in DTYPES:
        raise TypeError(f"hvd knows no dtype {name}: one of {', '.join(DTYPES)}")
    return array_of(engine.allocate(DTYPES[name], shape))


def zeros(shape, dtype="float32"):
    """Does the same as empty, and makes the elements zero."""
    return empty(shape, dtype)  # hvd_malloc gives zeroed memory

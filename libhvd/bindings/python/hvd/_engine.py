# SPDX-License-Identifier: Apache-2.0
"""
Chooses what submits requests and waits for them: the module hvd._hvd, which is
written in C, or, where it could not be built, ctypes. HVD_PYTHON=ctypes or
HVD_PYTHON=extension insists on one of them.
"""
import atexit
import ctypes
import os

from ._errors import Error
from ._library import lib

_wanted = os.environ.get("HVD_PYTHON", "")
if _wanted not in ("", "ctypes", "extension"):
    raise ImportError(f"HVD_PYTHON is '{_wanted}', not 'ctypes' or 'extension'")
if _wanted == "ctypes":
    from . import _ctypes_engine as engine
else:
    try:
        from . import _hvd as engine
    except ImportError:
        if _wanted:
            raise
        from . import _ctypes_engine as engine

# The library uses the arrays of requests under way, even if the program has
# dropped the handle or a signal has ended the wait, and until the process is gone
# if it exits before. The interpreter, which frees everything first, must not free
# these arrays.
under_way, abandoned = set(), []
for _kept in under_way, abandoned:
    atexit.register(ctypes.pythonapi.Py_IncRef, ctypes.py_object(_kept))

# What requests used that failed by the loss of a rank, until there is a new world.
lost = []

engine.bind(lib._handle, Error, abandoned)

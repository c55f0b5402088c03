# SPDX-License-Identifier: Apache-2.0
"""Compression by functions of the program."""
import ctypes as C

import numpy as np

from ._errors import text
from ._library import ADD, ENCODE, MAX, Compressor, check, lib

_registered = []


def register_compressor(name, max_bytes, encode, add, state_bytes=None):
    """
    max_bytes(count) and state_bytes(count) give bytes; encode(state, values,
    code) fills the uint8 array code and returns how many bytes; add(code, sum)
    adds to the float32 array sum. state is a uint8 array. An exception is a
    failure of the request.
    """
    def guard(function):
        def call(*arguments):
            try:
                return function(*arguments)
            except Exception:  # the library's thread cannot raise into the caller's
                return -2
        return call

    def view(address, count, dtype):
        if count == 0:
            return np.empty(0, dtype)
        buffer = (C.c_char * (count * np.dtype(dtype).itemsize)).from_address(
            C.cast(address, C.c_void_p).value)
        return np.frombuffer(buffer, dtype)

    kept = state_bytes or (lambda count: 0)
    c = Compressor(
        C.sizeof(Compressor), 0, text(name, "the name"), None,
        MAX(guard(lambda _, count: int(max_bytes(count)))),
        MAX(guard(lambda _, count: int(kept(count)))),
        ENCODE(guard(lambda _, state, values, count, code: int(encode(
            view(state, int(kept(count)), np.uint8), view(values, count, np.float32),
            view(code, int(max_bytes(count)), np.uint8))))),
        ADD(guard(lambda _, code, bytes_, total, count: int(add(
            view(code, bytes_, np.uint8), view(total, count, np.float32)) or 0))))
    number = check(lib.hvd_register_compressor(C.byref(c)))
    _registered.append(c)  # its functions must outlive every request
    return number

# SPDX-License-Identifier: Apache-2.0
"""Errors, and what checks arguments."""
import operator
import os

from ._constants import Status


class Error(RuntimeError):
    """
    A call of the library failed. The text names the ranks and the tensor, says
    what differed, and what to do; status is a member of Status.
    """

    def __init__(self, status, text):
        super().__init__(text)
        self.status = Status(status) if status in Status._value2member_map_ else status

    def __reduce__(self):
        return type(self), (int(self.status), str(self))


def integer(value, what, bits=32):
    """Returns a whole number. ctypes takes the lowest bits of whatever it is given."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is {value!r}, not an integer") from None
    if not -1 << bits - 1 <= number < 1 << bits - 1:
        raise ValueError(f"{what} {number} has more than {bits} bits")
    return number


def real(value, what):
    """Returns a float."""
    if hasattr(value, "__float__") or hasattr(value, "__index__"):
        return float(value)
    raise TypeError(f"{what} is {value!r}, not a number")


def code(value, table, what):
    """Returns the number of a constant that is given by its name or as a number."""
    if isinstance(value, str):
        if value not in table:
            raise ValueError(f"there is no {what} '{value}': one of {', '.join(table)}")
        return table[value]
    return integer(value, what)


def text(value, what):
    """Returns the bytes of a text; refuses a NUL, which ends C strings."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{what} is {value!r}, not a string")
    data = value.encode() if isinstance(value, str) else os.fsencode(value)
    if b"\0" in data:
        raise ValueError(f"{what} {value!r} holds a NUL")
    return data

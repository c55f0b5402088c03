# SPDX-License-Identifier: Apache-2.0
"""Failures of the device."""
import enum


class Status(enum.IntEnum):
    """Why a call has failed; the numbers are those of ipu_types.h."""
    ARGUMENT = -1   #: an argument is out of its range
    SHAPE = -2      #: shapes or dtypes do not fit the op
    NAME = -3       #: a name is unknown, or taken
    STATE = -4      #: the object is not ready
    MEMORY = -5     #: memory of the host ran out
    CALLBACK = -6   #: a host call returned a failure
    DATA = -7       #: a value is out of range; a file holds something else
    FULL = -8       #: the program does not fit into the memory of a tile
    END = -9        #: the data has ended


class Error(RuntimeError):
    """
    A call of the device has failed. The text names the op, the tensors and their
    shapes, or the file, and says what to do; status is a member of Status.
    """

    def __init__(self, status, text):
        super().__init__(text)
        self.status = Status(status) if status in Status._value2member_map_ else status

    def __reduce__(self):
        return type(self), (int(self.status), str(self))

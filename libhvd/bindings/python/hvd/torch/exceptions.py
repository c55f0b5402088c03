# SPDX-License-Identifier: Apache-2.0
"""Horovod's exceptions, and how the library's errors become them."""
import contextlib

from hvd import Error, Status

_OF_ARGUMENTS = {Status.ARGUMENT, Status.DUPLICATE, Status.PROCESS_SET}


class HorovodInternalError(RuntimeError):
    """A collective failed: the ranks gave different things, or one of them is lost."""


class HostsUpdatedInterrupt(RuntimeError):
    """A commit has let in processes that waited to join: hvd.elastic.run gives them the
    state, and goes on from there. skip_sync: the ranks have the same state anyway."""

    def __init__(self, skip_sync=False):
        super().__init__("processes have joined")
        self.skip_sync = skip_sync


def translate(error):
    """Returns what Horovod raises instead of a hvd.Error."""
    kind = ValueError if error.status in _OF_ARGUMENTS else HorovodInternalError
    found = kind(str(error))
    found.status = error.status
    return found


@contextlib.contextmanager
def translated():
    """Has errors of the library raised as Horovod's."""
    try:
        yield
    except Error as error:
        raise translate(error) from None

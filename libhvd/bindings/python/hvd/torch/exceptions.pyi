# SPDX-License-Identifier: Apache-2.0
"""Types of Horovod's exceptions."""
from contextlib import AbstractContextManager

from hvd import Error, Status

class HorovodInternalError(RuntimeError):
    status: Status | int

class HostsUpdatedInterrupt(RuntimeError):
    skip_sync: bool
    def __init__(self, skip_sync: bool = False) -> None: ...

def translate(error: Error) -> ValueError | HorovodInternalError: ...
def translated() -> AbstractContextManager[None]: ...

# SPDX-License-Identifier: Apache-2.0
"""The exceptions that Horovod's programs catch."""
from hvd.torch.exceptions import HorovodInternalError  # noqa: F401


class HorovodVersionMismatchError(ImportError):
    """Never raised: there is one version."""


class HostsUpdatedInterrupt(RuntimeError):
    """Never raised: a job of this library grows in hvd_commit."""

    def __init__(self, skip_sync=False):
        super().__init__()
        self.skip_sync = skip_sync

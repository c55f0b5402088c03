# SPDX-License-Identifier: Apache-2.0
"""The exceptions that Horovod's programs catch."""
from hvd.torch.exceptions import HorovodInternalError, HostsUpdatedInterrupt  # noqa: F401


class HorovodVersionMismatchError(ImportError):
    """Never raised: there is one version."""

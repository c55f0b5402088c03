# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.compression: see hvd.torch.compression."""
from hvd.torch.compression import *  # noqa: F401,F403

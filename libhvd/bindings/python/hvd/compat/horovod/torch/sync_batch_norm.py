# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.sync_batch_norm: see hvd.torch.sync_batch_norm."""
from hvd.torch.sync_batch_norm import *  # noqa: F401,F403

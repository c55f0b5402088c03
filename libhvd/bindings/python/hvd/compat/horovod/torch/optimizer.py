# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.optimizer: see hvd.torch.optimizer."""
from hvd.torch.optimizer import *  # noqa: F401,F403

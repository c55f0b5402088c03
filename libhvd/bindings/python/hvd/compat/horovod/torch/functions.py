# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.functions: see hvd.torch.functions."""
from hvd.torch.functions import *  # noqa: F401,F403

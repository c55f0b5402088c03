# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.elastic.state: see hvd.torch.elastic.state."""
from hvd.torch.elastic.state import *  # noqa: F401,F403

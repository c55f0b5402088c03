# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.elastic.sampler: see hvd.torch.elastic.sampler."""
from hvd.torch.elastic.sampler import *  # noqa: F401,F403

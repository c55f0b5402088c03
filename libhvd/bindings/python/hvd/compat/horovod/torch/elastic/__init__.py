# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.elastic: see hvd.torch.elastic."""
from hvd.torch.elastic import *  # noqa: F401,F403

from . import sampler, state  # noqa: F401

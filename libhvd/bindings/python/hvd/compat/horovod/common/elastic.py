# SPDX-License-Identifier: Apache-2.0
"""horovod.common.elastic: see hvd.torch.elastic."""
from hvd.torch.elastic import ObjectState, State, run_fn  # noqa: F401

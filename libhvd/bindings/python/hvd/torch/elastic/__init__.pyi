# SPDX-License-Identifier: Apache-2.0
"""Types of a training whose ranks may be lost and may come."""
from ._loop import (
    ObjectState as ObjectState,
    State as State,
    run as run,
    run_fn as run_fn,
)
from .sampler import ElasticSampler as ElasticSampler
from .state import TorchState as TorchState

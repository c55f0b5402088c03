# SPDX-License-Identifier: Apache-2.0
"""horovod.common.process_sets: see hvd.torch."""
from hvd.torch import (ProcessSet, add_process_set, global_process_set,  # noqa: F401
                       remove_process_set)

# SPDX-License-Identifier: Apache-2.0
"""Leaves with requests under way, as a program does that fails."""
import sys

import numpy as np

sys.path.insert(0, sys.argv[1])
import hvd

hvd.init()
for i in range(20):
    hvd.allreduce_async(np.ones(1 << 19), name=f"x{i}")
sys.exit(3)

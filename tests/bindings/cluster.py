# SPDX-License-Identifier: Apache-2.0
"""Starts as a task of a cluster that the program gives, without MPI."""
import os
import sys

sys.path.insert(0, sys.argv[1])
import hvd
import numpy as np

cluster = hvd.Cluster()
del os.environ["TF_CONFIG"]  # the library must be told by the argument
for mistake, error in ({"cluster": cluster, "comm": [0]}, ValueError), ({"cluster": "{}"}, TypeError):
    try:
        hvd.init(**mistake)
    except error:
        continue
    sys.exit(f"{mistake} raises no {error.__name__}")
hvd.init([[1]], cluster=cluster)
assert (hvd.rank(), hvd.size()) == (cluster.rank(), 2)
total = hvd.allreduce(np.array([hvd.rank() + 1.0]), op="sum")
assert total[0] == 3, total
if hvd.rank() == 1:
    assert hvd.allreduce(np.array([5.0]), process_set=1)[0] == 5
hvd.shutdown()
print("every task", flush=True)

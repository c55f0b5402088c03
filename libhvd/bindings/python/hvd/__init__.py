# SPDX-License-Identifier: Apache-2.0
"""
hvd for Python: collective operations on numpy arrays, and on whatever exports a
buffer or has __dlpack__.

    import hvd, numpy as np
    hvd.init()
    mean = hvd.allreduce(np.arange(4.0), name="x")
    total = hvd.allreduce(np.arange(4.0), op=hvd.Sum)
    hvd.shutdown()

Arrays must be C-contiguous and of this machine's byte order; results are new numpy
arrays unless out= is given. bfloat16 has no numpy type: pass uint16 arrays and
dtype="bfloat16". Reductions average unless op= says otherwise. An argument that
cannot be meant raises TypeError or ValueError; every other failure raises Error,
whose text names the ranks and the tensor, and whose status is a member of Status.

An asynchronous call returns a Handle; wait() gives the result. Its arrays are kept
alive until then, whether the Handle is or not. A call that waits for a request lets
other threads run, and calls the handlers of signals meanwhile.

hvd.torch is for PyTorch.
"""
from ._arrays import empty, zeros
from ._clusters import Cluster
from ._collectives import (
    allgather, allgather_async, allreduce, allreduce_async, alltoall, alltoall_async, barrier,
    barrier_async, broadcast, broadcast_async, gather, gather_async, grouped_allgather,
    grouped_allgather_async, grouped_allreduce, grouped_allreduce_async, grouped_reducescatter,
    grouped_reducescatter_async, join, join_async, reduce, reduce_async, reducescatter,
    reducescatter_async, sparse_allreduce, sparse_allreduce_async)
from ._compressors import register_compressor
from ._constants import (AVERAGE_CONTRIBUTORS, COMPRESSIONS, OPS, OPTIMIZERS, Adasum, Average,
                         Max, Min, Op, Product, Status, Sum)
from ._elastic import (commit, commit_start, commit_wait, dismiss_spares, elastic_run, exclude,
                       grow, off_straggler, on_straggler, recover, restore, state_register,
                       state_sync, state_unregister)
from ._errors import Error
from ._objects import allgather_object, broadcast_object
from ._process_sets import ProcessSet, global_process_set, process_sets
from ._requests import Group, Handle
from ._strategies import Strategy
from ._world import (check, completion_fd, cross_rank, cross_size, init,
                     is_initialized, local_rank, local_size, metrics_text, rank, shutdown, size,
                     start_timeline, stop_timeline, version)

__version__ = version()
__all__ = [name for name in dir() if not name.startswith("_")]

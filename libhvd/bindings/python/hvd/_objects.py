# SPDX-License-Identifier: Apache-2.0
"""Objects that pickle accepts. As with pickle itself, the ranks must be trusted."""
import pickle

import numpy as np

from ._collectives import allgather, broadcast
from ._process_sets import ProcessSet
from ._world import rank


def _pickled(obj):
    """Returns the bytes of an object, and why there are none."""
    try:
        return np.frombuffer(pickle.dumps(obj), np.uint8), None
    except Exception as error:  # whatever the object's own methods raise
        return np.empty(0, np.uint8), error


def _unpickled(data, who):
    if data.size == 0:
        raise ValueError(f"rank {who} has an object that pickle does not take")
    return pickle.loads(data.tobytes())


def broadcast_object(obj=None, root=0, name=None, process_set=0):
    """
    Returns the object of rank root, which pickle must accept; those of other ranks are
    ignored.

    root: a rank of the world, also on a process set. name, process_set: as for
    allreduce.
    """
    data, error = _pickled(obj) if rank() == root else (np.empty(0, np.uint8), None)
    bytes_ = np.array([data.size], np.int64)
    broadcast(bytes_, root, name=name and name + "/bytes", process_set=process_set)
    if error:
        raise error
    if rank() != root:
        data = np.empty(bytes_[0], np.uint8)
    elif bytes_[0]:
        data = data.copy()  # which may be written to
    if bytes_[0]:
        broadcast(data, root, name=name, process_set=process_set)
    return obj if rank() == root else _unpickled(data, root)


def allgather_object(obj, name=None, process_set=0):
    """Returns a list of the objects of all ranks, which pickle must accept. name,
    process_set: as for allreduce."""
    data, error = _pickled(obj)
    rows, counts = allgather(data, name=name, process_set=process_set)
    if error:
        raise error
    members = process_set.ranks() if isinstance(process_set, ProcessSet) else range(len(counts))
    parts = np.split(rows, np.cumsum(counts)[:-1])
    return [_unpickled(part, who) for part, who in zip(parts, members)]

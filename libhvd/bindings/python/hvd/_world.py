# SPDX-License-Identifier: Apache-2.0
"""Starting, stopping, and who is who."""
import ctypes as C
import os

from ._clusters import Cluster
from ._engine import lost
from ._errors import integer, text
from ._library import Options, check as _must, integers, lib, written
from ._process_sets import ProcessSet, process_sets as _all_process_sets

# The ranks of MPI's world that this world was made of, in its order: what init was
# told, or None if that was nothing. False: it is not known, after a recovery.
_ranks = None


def forget_ranks():
    """Is called when another world has taken the place of the one that init made. Nothing
    of that one is under way any more."""
    global _ranks
    _ranks = False
    lost.clear()


def _ranks_of(comm):
    """Returns the ranks of MPI's world that comm= means."""
    if not hasattr(comm, "py2f"):
        return sorted(integer(rank, "a rank") for rank in comm)
    from mpi4py import MPI
    group, everyone = comm.Get_group(), MPI.COMM_WORLD.Get_group()
    try:
        return list(MPI.Group.Translate_ranks(group, list(range(group.Get_size())), everyone))
    finally:
        group.Free()
        everyone.Free()


def _launched():
    """Returns how many processes the launcher has started, as far as it says."""
    return int(os.environ.get("OMPI_COMM_WORLD_SIZE") or size())


def _check_same(comm, process_sets, cluster):
    """Refuses what differs from the world that there is."""
    if comm is not None:
        ranks = _ranks_of(comm)
        ours = list(range(_launched())) if _ranks is None else _ranks
        if ranks != ours:
            raise ValueError(
                f"hvd is initialized already, {'on others' if ours is False else f'on {ours}'}: "
                f"init(comm={ranks}) needs shutdown() before")
    elif cluster is not None and (cluster.rank(), cluster.size()) != (rank(), size()):
        raise ValueError(
            f"hvd is initialized already, as rank {rank()} of {size()}: this cluster's rank "
            f"{cluster.rank()} of {cluster.size()} needs shutdown() before")
    known = [each.ranks() for each in _all_process_sets()]
    for ranks in process_sets:
        if ranks not in known:
            raise ValueError(f"hvd is initialized already, without the process set {ranks}: "
                             "make it a hvd.ProcessSet")


def _start(process_sets, comm, cluster):
    global _ranks
    if cluster is not None:
        _must(lib.hvd_init_cluster(cluster._cluster))
    elif comm is not None:
        if hasattr(comm, "py2f"):
            _must(lib.hvd_init_fint(comm.py2f()))
        else:
            ranks = list(comm)
            _must(lib.hvd_init_ranks(integers(ranks, "a rank"), len(ranks)))
    else:
        options = Options(C.sizeof(Options), len(process_sets),
                          integers(map(len, process_sets), "a size"),
                          integers([r for ranks in process_sets for r in ranks], "a rank"))
        _must(lib.hvd_init_with(C.byref(options)))
        process_sets = ()
    _ranks = None if comm is None else _ranks_of(comm)
    for ranks in process_sets:
        ProcessSet(ranks)


def init(process_sets=(), comm=None, cluster=None):
    """
    Starts the library; all processes of the launcher do. When it is started already,
    this does nothing, or raises ValueError if it is asked for something else.

    process_sets: lists of ranks, for which there are process sets from the beginning,
        in this order; process_sets() returns them.
    comm: the ranks that are the world, as mpirun counts them, or a communicator of
        mpi4py; by default all.
    cluster: a Cluster that says which task this process is; its tasks are the world,
        without MPI, and comm must be None.
    """
    if cluster is not None and comm is not None:
        raise ValueError("the world is given by a cluster or by comm, not by both")
    if cluster is not None and not isinstance(cluster, Cluster):
        raise TypeError(f"cluster is {type(cluster).__name__}, not a Cluster")
    process_sets = [sorted(integer(r, "a rank") for r in ranks) for ranks in process_sets]
    if comm is not None and not hasattr(comm, "py2f"):
        comm = [integer(r, "a rank") for r in comm]
    if is_initialized():
        _check_same(comm, process_sets, cluster)
    else:
        _start(process_sets, comm, cluster)


def shutdown():
    """Stops the library, and returns when every rank has called it."""
    _must(lib.hvd_shutdown())
    lost.clear()


def is_initialized():
    """Returns whether init has been called, and shutdown has not."""
    return bool(lib.hvd_is_initialized())


def check():
    """Raises the error with which every request fails from now on, if the world
    has ended: for programs that do something else for long."""
    _must(lib.hvd_check())


def rank():
    """Returns the number of this process, from 0."""
    return _must(lib.hvd_rank())


def size():
    """Returns the number of processes."""
    return _must(lib.hvd_size())


def local_rank():
    """Returns the number of this process among those of its host."""
    return _must(lib.hvd_local_rank())


def local_size():
    """Returns the number of processes on this host."""
    return _must(lib.hvd_local_size())


def cross_rank():
    """Returns the number of this host among those that have this local rank."""
    return _must(lib.hvd_cross_rank())


def cross_size():
    """Returns the number of hosts that have this local rank."""
    return _must(lib.hvd_cross_size())


def completion_fd():
    """Returns a descriptor for event loops, readable when requests have completed."""
    return _must(lib.hvd_completion_fd())


def version():
    """Returns the version of the library, such as "0.1.0"."""
    return lib.hvd_version().decode()


def start_timeline(path):
    """Writes what every rank does to a file of rank 0, until stop_timeline. Collective."""
    _must(lib.hvd_start_timeline(text(path, "the path")))


def stop_timeline():
    """Stops the timeline, if there is one. Not collective."""
    _must(lib.hvd_stop_timeline())


def metrics_text():
    """Returns the text of hvd_metrics_text, for Prometheus."""
    return written(lib.hvd_metrics_text, spare=4096)

# SPDX-License-Identifier: Apache-2.0
"""Starting, who is who, and process sets, as Horovod has them."""
import atexit
import numbers
import os

import hvd

from .exceptions import HorovodInternalError, translated


class ProcessSet:
    """
    Some of the ranks: a list of them, or a communicator of mpi4py, whose ranks are found
    by init(). It takes part in operations once it is registered: by
    init(process_sets=[...]), or by add_process_set. Until then process_set_id is None.
    """

    def __init__(self, ranks_or_comm):
        self.process_set_id = self.ranks = self.mpi_comm = None
        if hasattr(ranks_or_comm, "py2f"):
            self.mpi_comm = ranks_or_comm
            return
        ranks = list(ranks_or_comm)
        if not all(isinstance(rank, numbers.Integral) for rank in ranks):
            raise ValueError(f"ranks of a process set must be integers, not {ranks}")
        self.ranks = sorted(int(rank) for rank in ranks)

    def __index__(self):
        if self.process_set_id is None:
            raise ValueError(f"the process set {self.ranks} is not registered: "
                             "add_process_set does that")
        return self.process_set_id

    def _registered(self):
        return hvd.ProcessSet._with_id(self.process_set_id)

    def size(self):
        """Returns the number of ranks; None if the set is not registered."""
        return None if self.process_set_id is None else len(self._registered().ranks())

    def rank(self):
        """Returns this rank's number in the set; None if it is not registered."""
        if self.process_set_id is None:
            return None
        with translated():
            return self._registered().rank()

    def included(self):
        """Returns whether this rank is a member; None if the set is not registered."""
        return None if self.process_set_id is None else self._registered().included()

    def __repr__(self):
        return (f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks}, "
                f"mpi_comm={self.mpi_comm})")


global_process_set = ProcessSet([])
global_process_set.process_set_id = 0


def _registered(wanted, ranks_of_comm):
    """Registers the sets that any rank wants in one place of its list, and returns the
    ids of all sets by their ranks. The sets of a split communicator differ on the ranks,
    and each gets its id; the others must be the same."""
    own = [ranks_of_comm(each.mpi_comm) if each.ranks is None else each.ranks
           for each in wanted]
    known = {tuple(each.ranks()): each.id for each in hvd.process_sets()}
    lists = hvd.allgather_object([(ranks, each.ranks is None)
                                  for ranks, each in zip(own, wanted)])
    if len({len(each) for each in lists}) > 1 or any(
            len({(tuple(ranks), comm) if not comm else None for ranks, comm in place}) > 1
            for place in zip(*lists)):
        raise ValueError("the ranks give different process sets to init: "
                         f"{[[ranks for ranks, _ in each] for each in lists]}")
    for place in zip(*lists):
        for ranks, _ in place:
            if tuple(ranks) not in known:
                known[tuple(ranks)] = hvd.ProcessSet(ranks).id
    for each, ranks in zip(wanted, own):
        each.ranks, each.process_set_id = ranks, known[tuple(ranks)]


def _duplicate(sets):
    """Returns a set whose id one before it has, or that of all ranks; None if all differ.
    It is no longer registered then."""
    seen, found = {0}, None
    for each in sets:
        if each.process_set_id in seen:
            found, each.process_set_id = each, None
        seen.add(each.process_set_id)
    return found


def init(comm=None, process_sets=None, cluster=None):
    """
    Starts the library. comm: ranks, or a communicator of mpi4py. cluster: a hvd.Cluster,
    which needs no launcher. process_sets: a list of
    ProcessSets, which are then registered; "dynamic" has no effect, for sets may be added
    at any time. A set that is given twice, or that has all ranks, is a ValueError; the
    library has been started then, and init may be called with another list.
    """
    sets = [] if process_sets is None or isinstance(process_sets, str) else list(process_sets)
    with translated():
        hvd.init(comm=comm, cluster=cluster)
        global_process_set.ranks = list(range(hvd.size()))
        global_process_set.mpi_comm = comm if hasattr(comm, "py2f") else None
        if sets:
            _registered(sets, lambda each: _ranks_of(each, comm))
    twice = _duplicate(sets)
    if twice is not None:
        raise ValueError(f"the process set {twice.ranks} is given twice to init, or consists "
                         "of all ranks")


def _ranks_of(comm, world):
    """Returns the ranks of a communicator of mpi4py, as this world counts them."""
    from mpi4py import MPI
    if world is not None and not hasattr(world, "py2f"):
        raise NotImplementedError("process sets of communicators need init(comm=) to be a "
                                  "communicator, or to be left out")
    group, everyone = comm.Get_group(), (world or MPI.COMM_WORLD).Get_group()
    try:
        return sorted(MPI.Group.Translate_ranks(group, list(range(group.Get_size())), everyone))
    finally:
        group.Free()
        everyone.Free()


def shutdown():
    """Stops the library, if it has been started."""
    if hvd.is_initialized():
        hvd.shutdown()


def add_process_set(process_set):
    """Registers a ProcessSet, or a new one of a list of ranks, and returns it. All ranks
    do so, members or not."""
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    with translated():
        process_set.process_set_id = hvd.ProcessSet(process_set.ranks).id
    return process_set


def remove_process_set(process_set):
    """Removes a set, and returns whether it was there. That of all ranks stays."""
    if not process_set.process_set_id:
        return False
    with translated():
        process_set._registered().remove()
    process_set.process_set_id = None
    return True


def _number(function):
    def number():
        if not hvd.is_initialized():
            raise ValueError("Horovod has not been initialized; use hvd.init().")
        return function()
    number.__doc__, number.__name__ = function.__doc__, function.__name__
    return number


rank, size = _number(hvd.rank), _number(hvd.size)
local_rank, local_size = _number(hvd.local_rank), _number(hvd.local_size)
cross_rank, cross_size = _number(hvd.cross_rank), _number(hvd.cross_size)
is_initialized = hvd.is_initialized


def may_be_several():
    """Returns whether there are several ranks, or may be, in a job that can grow."""
    return size() > 1 or any(os.environ.get(name, "0") != "0"
                             for name in ("HVD_ELASTIC", "HOROVOD_ELASTIC"))


def is_homogeneous():
    """Returns whether all hosts have equally many ranks."""
    counts = hvd.allgather([local_size()])[0]
    return bool((counts == counts[0]).all())


def _always(value, name):
    def answer(verbose=False):
        return value
    answer.__name__ = name
    answer.__doc__ = f"Returns {value}."
    return answer


mpi_threads_supported, mpi_enabled, mpi_built = (
    _always(True, name) for name in ("mpi_threads_supported", "mpi_enabled", "mpi_built"))
gloo_enabled, gloo_built, ddl_built, ccl_built, cuda_built, rocm_built = (
    _always(False, name) for name in ("gloo_enabled", "gloo_built", "ddl_built", "ccl_built",
                                      "cuda_built", "rocm_built"))
nccl_built = _always(0, "nccl_built")


def start_timeline(file_path, mark_cycles=False):
    """Writes a timeline to a file until stop_timeline. Whether batches are marked is said
    by HVD_TIMELINE_MARK_CYCLES, when the library starts; mark_cycles has no meaning."""
    if not hvd.is_initialized():
        raise ValueError("Horovod has not been initialized; use hvd.init().")
    hvd.start_timeline(file_path)


def stop_timeline():
    """Stops the timeline."""
    if not hvd.is_initialized():
        raise ValueError("Horovod has not been initialized; use hvd.init().")
    hvd.stop_timeline()


atexit.register(shutdown)
__all__ = ["HorovodInternalError", "ProcessSet", "add_process_set", "ccl_built", "cross_rank",
           "cross_size", "cuda_built", "ddl_built", "global_process_set", "gloo_built",
           "gloo_enabled", "init", "is_homogeneous", "is_initialized", "local_rank",
           "local_size", "mpi_built", "mpi_enabled", "mpi_threads_supported", "nccl_built",
           "rank", "remove_process_set", "rocm_built", "shutdown", "size", "start_timeline",
           "stop_timeline"]

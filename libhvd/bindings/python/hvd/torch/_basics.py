# SPDX-License-Identifier: Apache-2.0
"""Starting, who is who, and process sets, as Horovod has them."""
import atexit
import os

import hvd

from .exceptions import HorovodInternalError, translated


class ProcessSet:
    """
    Some of the ranks. It takes part in operations once it is registered: by
    init(process_sets=[...]), or by add_process_set. Until then process_set_id is None.
    """

    def __init__(self, ranks):
        self.process_set_id = None
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
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


global_process_set = ProcessSet([])
global_process_set.process_set_id = 0


def init(comm=None, process_sets=None):
    """
    Starts the library. comm: ranks, or a communicator of mpi4py. process_sets: a list of
    ProcessSets, which are then registered; "dynamic" has no effect, for sets may be added
    at any time.
    """
    sets = [] if process_sets is None or isinstance(process_sets, str) else list(process_sets)
    lists = [each.ranks for each in sets]
    for each in sets:
        if lists.count(each.ranks) > 1:
            raise ValueError(f"{each} is given twice")
    with translated():
        hvd.init(process_sets=lists, comm=comm)
    known = {tuple(each.ranks()): each.id for each in hvd.process_sets()}
    for each in sets:
        each.process_set_id = known[tuple(each.ranks)]
    global_process_set.ranks = list(range(hvd.size()))


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
    """Writes a timeline to a file until stop_timeline. There are no cycles to mark."""
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

# SPDX-License-Identifier: Apache-2.0
"""Process sets: some of the ranks, on which requests may take place."""
import ctypes as C

from ._library import check, integers, lib

lib.hvd_process_set_ids.argtypes = [C.c_void_p, C.c_int32]


class ProcessSet:
    """
    Some of the ranks. Pass it as process_set= to the operations in which only they
    take part. Making one is collective: all ranks of the world do so, members or not.
    Sets that are there from the start are given to init, and found by process_sets().
    """

    def __init__(self, ranks):
        ranks = list(ranks)
        self.id = check(lib.hvd_add_process_set(integers(ranks, "a rank"), len(ranks)))

    @classmethod
    def _with_id(cls, number):
        found = cls.__new__(cls)
        found.id = number
        return found

    def __index__(self):
        return self.id

    def __eq__(self, other):
        return isinstance(other, ProcessSet) and self.id == other.id

    def __hash__(self):
        return hash(self.id)

    def __repr__(self):
        return f"hvd.ProcessSet with the id {self.id}"

    def rank(self):
        """Returns this rank's number in the set; an Error if it is no member."""
        return check(lib.hvd_process_set_rank(self.id))

    def size(self):
        """Returns the number of ranks; an Error if this rank is no member."""
        return check(lib.hvd_process_set_size(self.id))

    def included(self):
        """Returns whether this rank is a member."""
        return bool(check(lib.hvd_process_set_included(self.id)))

    def ranks(self):
        """Returns the ranks of the set, as the world counts them, ascending."""
        n = check(lib.hvd_process_set_ranks(self.id, None, 0))
        ranks = (C.c_int32 * n)()
        check(lib.hvd_process_set_ranks(self.id, ranks, n))
        return list(ranks)

    def remove(self):
        """Removes the set. Collective, as making it is."""
        check(lib.hvd_remove_process_set(self.id))


#: All ranks.
global_process_set = ProcessSet._with_id(0)


def process_sets():
    """Returns all process sets, in the order of their ids: the first is that of all
    ranks, then come those that init was given, and those made later."""
    ids = (C.c_int32 * check(lib.hvd_process_set_ids(None, 0)))()
    return [ProcessSet._with_id(number)
            for number in ids[:check(lib.hvd_process_set_ids(ids, len(ids)))]]

# SPDX-License-Identifier: Apache-2.0
"""The state of a training whose ranks may be lost (hvd_elastic.h)."""
import numpy as np

from . import _world
from ._constants import Status
from ._errors import Error, integer
from ._library import STRAGGLER, check, lib

# What another rank's end looks like: it has died, or exited (hvd_elastic_run).
OF_LOSSES = {Status.LOST, Status.STALLED, Status.SHUTDOWN}

_pieces = {}
_listeners = {}


def state_register(name, array, per_rank=False):
    """Adds a numpy array to the state of the training (hvd_elastic.h). It is kept,
    and written in place by restore() and state_sync()."""
    if not isinstance(array, np.ndarray) or not array.flags.c_contiguous \
            or not array.flags.writeable:
        raise TypeError(f"piece '{name}' of the state must be a contiguous numpy array "
                        "that can be written")
    check(lib.hvd_state_register(str(name).encode(), array.ctypes.data, array.nbytes,
                                 1 if per_rank else 0))
    _pieces[str(name)] = array


def state_unregister(name):
    """Takes an array out of the state."""
    check(lib.hvd_state_unregister(str(name).encode()))
    _pieces.pop(str(name), None)


def state_sync(root=0):
    """Gives all ranks the state of one. Collective."""
    check(lib.hvd_state_sync(integer(root, "root")))


def commit():
    """Commits the state. Collective. Returns 1 if processes have been let in."""
    grown = check(lib.hvd_commit())
    if grown:
        _world.forget_ranks()
    return grown


def commit_start():
    """Begins a commit; no piece may change until commit_wait() has returned."""
    check(lib.hvd_commit_start())


def commit_wait():
    """Waits until the commit that was begun is complete."""
    check(lib.hvd_commit_wait())


def restore():
    """Goes back to the newest commit. Collective. Returns whether there is one."""
    return check(lib.hvd_restore()) > 0


def recover():
    """Goes on without the ranks that are lost; restore() follows. Collective."""
    check(lib.hvd_recover(None, 0))
    _world.forget_ranks()


def grow():
    """Lets in the processes that wait to join (hvd_grow), between two steps. Collective.
    Returns whether the world is a new one; programs that commit() need not call it."""
    grown = check(lib.hvd_grow(None, 0)) > 0
    if grown:
        _world.forget_ranks()
    return grown


def exclude(rank):
    """Asks for a rank to be left out of the next world (hvd_exclude)."""
    check(lib.hvd_exclude(integer(rank, "rank")))


def dismiss_spares():
    """Has spares wait for the end of the job (hvd_dismiss_spares)."""
    check(lib.hvd_dismiss_spares())


def on_straggler(function):
    """Has function(rank, seconds, busy, median) called, in commits, about ranks that
    keep the others waiting. What it raises is printed, and goes no further."""
    if function in _listeners:
        raise ValueError("this function was given to on_straggler before")
    if not callable(function):
        raise TypeError("on_straggler takes a function")

    def call(_, straggler):
        s = straggler[0]
        function(s.rank, s.seconds, s.busy, s.median)

    listener = STRAGGLER(call)
    check(lib.hvd_on_straggler(listener, None))
    _listeners[function] = listener


def off_straggler(function):
    """Takes back a function of on_straggler."""
    if function not in _listeners:
        raise ValueError("this function was not given to on_straggler")
    check(lib.hvd_off_straggler(_listeners.pop(function), None))


def elastic_run(train, on_reset=None):
    """Calls train() until it is not a lost rank that ends it, as hvd_elastic_run does.
    on_reset(), if it is given, is called in each new world, with the state of the
    newest commit. Returns what train has returned."""
    begun = False
    while True:
        try:
            begun = begun or restore()
            if not begun:
                state_sync(0)
                commit()
                begun = True
            result = train()
            commit_wait()
            if commit() == 0:
                return result
            if on_reset:
                on_reset()
        except Error as error:
            while error:
                if error.status not in OF_LOSSES:
                    raise error
                recover()  # if that fails, there is no world any more
                try:
                    begun = restore()
                    if on_reset:
                        on_reset()
                    error = None
                except Error as another:
                    error = another

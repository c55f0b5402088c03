# SPDX-License-Identifier: Apache-2.0
"""The loop that trains through losses, and the states that it knows how to handle."""
import functools

import hvd
from hvd._elastic import OF_LOSSES

from .. import _requests
from .._basics import rank
from ..exceptions import HorovodInternalError, HostsUpdatedInterrupt, translated
from ..functions import broadcast_object
from ..mpi_ops import barrier


class State:
    """What the ranks of a training have in common. A class of a program's own overrides
    save, restore and sync."""

    def __init__(self, bcast_object=broadcast_object, get_rank=rank):
        self._bcast_object, self._rank = bcast_object, get_rank
        self._reset_callbacks = []

    def register_reset_callbacks(self, callbacks):
        """Has functions called, without arguments, in each new world, before the state
        of rank 0 comes: such as one that adapts the learning rate to hvd.size()."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self):
        """Is called in a new world."""
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def commit(self):
        """Saves the state, and lets in who waits to join. Collective."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self):
        """Lets in the processes that wait to join. If there were some, it raises
        HostsUpdatedInterrupt, on all ranks. Collective."""
        with translated():
            grown = hvd.grow()
        if grown:
            raise HostsUpdatedInterrupt()

    def save(self):
        """Makes a copy in memory."""
        raise NotImplementedError

    def restore(self):
        """Goes back to the copy."""
        raise NotImplementedError

    def sync(self):
        """Gives all ranks the state of rank 0. Collective."""
        raise NotImplementedError

    def reset(self):
        """Adapts what depends on the ranks, in a new world."""


class ObjectState(State):
    """A state of objects that pickle accepts: each is an attribute."""

    def __init__(self, bcast_object=broadcast_object, get_rank=rank, **kwargs):
        self._saved_state = kwargs
        self._set_attrs()
        super().__init__(bcast_object, get_rank)

    def save(self):
        self._saved_state = {name: getattr(self, name) for name in self._saved_state}

    def restore(self):
        self._set_attrs()

    def sync(self):
        if self._saved_state:
            self._saved_state = self._bcast_object(self._saved_state)
            self._set_attrs()

    def _set_attrs(self):
        for name, value in self._saved_state.items():
            setattr(self, name, value)


def _recover(error):
    """Goes on without the ranks whose loss was an error. Any other error is raised: it
    would come again. So is one of recover(), such as that the others have given up this
    rank: there is no world any more."""
    if getattr(error, "status", hvd.Status.LOST) not in OF_LOSSES:
        raise error
    with translated():
        hvd.recover()
    _requests.forget()


def run_fn(func, reset=None):
    """Returns what run returns. reset is called in each new world, before the state's own
    functions."""
    @functools.wraps(func)
    def wrapper(state, *args, **kwargs):
        is_new, skip_sync = False, False
        while True:
            try:
                if is_new:
                    if reset:
                        reset()
                    state.on_reset()
                if not skip_sync:
                    state.sync()
                is_new, skip_sync = False, False
                result = func(state, *args, **kwargs)
                # Whoever is through stays until all are: else its end would be a loss.
                barrier()
                return result
            except HorovodInternalError as error:
                # Until then, transfers of the old world may write to the state.
                _recover(error)
                state.restore()
                skip_sync = False
            except HostsUpdatedInterrupt as interrupt:
                _requests.forget()
                skip_sync = interrupt.skip_sync
            is_new = True
    return wrapper


def run(func):
    """
    Decorates the function that trains, whose first argument is a State. It is called
    again, with the state of the last commit, when a rank has been lost (HVD_ELASTIC), and
    with the state as it is when processes have joined in state.commit(). It must go on
    from the state that it finds. Errors of other kinds, such as tensors whose shapes
    differ, are raised.

    Before it there must be no collectives but init(): processes that join begin there.
    """
    return run_fn(func)

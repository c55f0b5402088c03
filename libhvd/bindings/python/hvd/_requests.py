# SPDX-License-Identifier: Apache-2.0
"""
Requests under way. The modules above describe a request by keywords (fields), and
submit it, or run it at once.
"""
import time

from ._constants import COMPRESSIONS, KINDS, OPS, Op, Status
from ._engine import engine, lost, under_way
from ._errors import Error, code
from ._library import check, lib

# A wait lasts so long before Python looks for signals.
_SLICE_SECONDS = 0.05


def op_number(op):
    """Returns the number of an operation that is given by its name or as hvd.Sum."""
    return op if type(op) is Op else code(op, OPS, "op")


def fields(kind, input=None, output=None, name=None, op=0, root=0, prescale=1.0,
           postscale=1.0, process_set=0, priority=0, flags=0, compression=None,
           capacity=0, splits=None, counts=None):
    """Returns the fields of a request as the engine takes them, by position. input,
    output, splits and counts are Views."""
    return (KINDS[kind], op_number(op), root, input, output, name, prescale, postscale,
            process_set, priority, flags,
            0 if compression is None else code(compression, COMPRESSIONS, "compression"),
            capacity, splits, counts)


def keep_if_lost(error, what):
    """Keeps what a request uses if it failed by a loss: until there is a new world, a
    transfer may still write there."""
    if error.status in (Status.LOST, Status.STALLED, Status.SHUTDOWN):
        lost.append(what)


class Handle:
    """
    A request under way, or several of them. wait() must be called once. The arrays
    of the request are kept alive until then, even if the handle is dropped.
    """
    __slots__ = ("_number", "_keep", "_wanted", "_build", "__weakref__")

    def __init__(self, request, build):
        """build makes the result of the View of an output that the library made, or of
        None. It also refers to all that the request uses."""
        self._wanted, self._build = request[4] is None, build
        self._keep = request

    def _submitted(self, number):
        self._number = number
        under_way.add(self)
        return self

    def poll(self):
        """Returns whether the request is done. Never blocks."""
        return engine.poll(self._number)

    def wait_until(self, deadline):
        """Waits until the request is done, or until time.monotonic() is the deadline.
        Returns whether it is done. wait() takes the result."""
        while True:
            left = deadline - time.monotonic()
            limit_ns = int(1e9 * min(max(left, 0), _SLICE_SECONDS))
            if check(lib.hvd_wait_for(self._number, limit_ns)):
                return True
            if left <= 0:
                return False

    def wait(self):
        """Waits until the request is done, and returns its result. If the handler of a
        signal raises an exception, the request goes on, and can be waited for again."""
        try:
            view = engine.wait(self._number, self._wanted)
        except Error as error:
            under_way.discard(self)
            keep_if_lost(error, self)
            raise
        under_way.discard(self)
        self._keep = None
        build, self._build = self._build, None
        return build(view)


class Group:
    """Requests that succeed or fail together, as one handle."""
    __slots__ = ("_handles", "_results", "_build", "__weakref__")

    def __init__(self, handles, build=list):
        self._handles, self._results, self._build = handles, [], build

    def poll(self):
        """Returns whether all requests of the group are done. Never blocks."""
        return all([handle.poll() for handle in self._handles[len(self._results):]
                    or self._handles])

    def wait_until(self, deadline):
        """Waits until the group is done, or until the deadline, as that of a Handle."""
        return all(handle.wait_until(deadline)
                   for handle in self._handles[len(self._results):] or self._handles)

    def wait(self):
        """Waits until the group is done, and returns the results in their order."""
        error = None
        for handle in self._handles[len(self._results):] or self._handles:
            try:
                self._results.append(handle.wait())
            except Error as failure:
                self._results.append(None)
                error = error or failure
        if error:
            raise error
        return self._build(self._results)


def submit(request, build):
    """Submits a request and returns its Handle."""
    return Handle(request, build)._submitted(engine.submit(*request))


def run(request, build):
    """Submits a request, waits for it, and returns its result."""
    try:
        view = engine.run(*request)
    except Error as error:
        keep_if_lost(error, request)
        raise
    return build(view)


def submit_group(name, members, build=list):
    """Submits pairs of a request and its builder as a group."""
    numbers = engine.submit_group(name, [request for request, _ in members])
    return Group([Handle(*member)._submitted(number)
                  for member, number in zip(members, numbers)], build)

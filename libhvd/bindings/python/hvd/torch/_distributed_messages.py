# SPDX-License-Identifier: Apache-2.0
"""
Messages between two ranks of a group of torch.distributed, which this library has not:
PyTorch's Gloo sends them. Two ranks connect when one of them first sends to or receives
from the other, beside the program: an isend does not wait for it.
"""
import collections
import concurrent.futures
import os
import threading

import torch.distributed as dist

from ._distributed_start import own_address


def _connected(store, number, timeout):
    """Returns Gloo's group of two. Gloo asks the name of the host for an address unless it
    is told one, and takes that of the loopback interface if nobody knows the name."""
    gloo = dist.ProcessGroupGloo
    options = gloo._Options()
    options._timeout = timeout
    options._devices = [gloo.create_device(hostname=own_address())
                        if "MASTER_ADDR" in os.environ and "GLOO_SOCKET_IFNAME" not in os.environ
                        else gloo.create_default_device()]
    return gloo(store, number, 2, options)


class Pair:
    """This rank and another one."""

    def __init__(self, store, rank, other, timeout):
        self._lock, self._group, self._problem = threading.Lock(), None, None
        self._waiting = collections.deque()
        self.other = int(other > rank)  # the other's number of the two
        store = dist.PrefixStore("hvd.pair.{}.{}".format(*sorted((rank, other))), store)
        threading.Thread(target=self._connect, args=(store, 1 - self.other, timeout),
                         daemon=True).start()

    def _connect(self, store, number, timeout):
        group = problem = None
        try:
            group = _connected(store, number, timeout)
        except Exception as error:  # the messages' work raises it
            problem = error
        with self._lock:
            self._group, self._problem = group, problem
            while self._waiting:
                self._post(*self._waiting.popleft())

    def _post(self, begin, posted):
        try:
            if self._problem is not None:
                raise self._problem
            posted.set_result(begin(self._group))
        except Exception as error:
            posted.set_exception(error)

    def begin(self, begin):
        """Has begin(group of the two) begin a message, after those before it. Returns the
        future of what it returns."""
        posted = concurrent.futures.Future()
        with self._lock:
            if self._group is None and self._problem is None:
                self._waiting.append((begin, posted))
            else:
                self._post(begin, posted)
        return posted


class Pairs:
    """This rank's pairs in a group."""

    def __init__(self, store, rank, timeout):
        self._store, self._rank, self._timeout, self._pairs = store, rank, timeout, {}
        self._lock = threading.Lock()

    def send(self, tensors, other, tag):
        pair = self._with(other)
        return pair.begin(lambda group: group.send(tensors, pair.other, tag))

    def recv(self, tensors, other, tag):
        pair = self._with(other)
        return pair.begin(lambda group: group.recv(tensors, pair.other, tag))

    def _with(self, other):
        with self._lock:
            if other not in self._pairs:
                self._pairs[other] = Pair(self._store, self._rank, other, self._timeout)
            return self._pairs[other]

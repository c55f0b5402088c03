# SPDX-License-Identifier: Apache-2.0
"""
A backend for torch.distributed:

    import hvd.torch
    torch.distributed.init_process_group("hvd", rank=..., world_size=...)

Collectives on tensors in this machine's memory are done by this library, and messages
between two ranks by Gloo. A group that is not of all ranks is a process set. To make one
is collective over all ranks, while a backend is told of a group on its members alone, so
new_group, which all ranks call, makes it before.
"""
import collections
import functools
import inspect
import itertools
import threading
import time

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Work

import hvd

from . import _memory, mpi_ops as ops
from ._distributed_messages import Pairs
from ._distributed_start import start
from ._later import future_of
from ._requests import begin, request, tensor_of, view_of, wait_until
from .exceptions import translated

_OPS = [(dist.ReduceOp.SUM, ops.Sum), (dist.ReduceOp.AVG, ops.Average),
        (dist.ReduceOp.MIN, ops.Min), (dist.ReduceOp.MAX, ops.Max),
        (dist.ReduceOp.PRODUCT, ops.Product)]

# C++ holds one half of a Work: the other one, of Python, must live until it was waited
# for. Those that never are, are forgotten when there are too many of them.
_works = collections.OrderedDict()
_MOST_WORKS = 4096


class _Work(Work):
    """A collective under way, which may take so many seconds of waiting, if that is
    limited. finish waits for it, and returns its tensors."""

    def __init__(self, finish, handles=(), limit=None):
        super().__init__()
        self._finish, self._handles, self._limit = finish, handles, limit
        self._future = None
        self._lock, self._tensors = threading.Lock(), None
        _works[id(self)] = self
        if len(_works) > _MOST_WORKS:
            _works.popitem(last=False)

    def _done(self, limit=None):
        with self._lock:
            if self._finish:
                self._wait_within(limit or self._limit)
                self._tensors = self._finish()
                self._finish = None
        return self._tensors

    def _wait_within(self, limit):
        """Raises an error unless the requests are done within so many seconds. They are
        under way still, and may be waited for again."""
        if limit is None:
            return
        deadline = time.monotonic() + limit
        if not all(wait_until(handle, deadline) for handle in self._handles):
            # Programs look for PyTorch's word "timeout" in such a text.
            raise RuntimeError("a collective of the backend hvd has not ended within the timeout "
                               f"of its group or of wait(), {limit:g} s: some of its ranks have "
                               "not begun it")

    def wait(self, timeout=None):
        self._done(timeout.total_seconds() if timeout else None)
        _works.pop(id(self), None)
        return True

    def synchronize(self):
        self.wait()

    def is_completed(self):
        return self._finish is None or all(map(ops.poll, self._handles))

    def is_success(self):
        return self.is_completed()

    def result(self):
        return self._done()

    def get_future(self):
        if self._future is None:
            self._future = future_of(lambda: self.wait() and self._tensors)
        return self._future


class _Message(_Work):
    """A message under way: posted is the future of Gloo's work."""

    def __init__(self, posted, tensors):
        super().__init__(lambda: posted.result().wait() and tensors)
        self._posted = posted

    def is_completed(self):
        return self._finish is None or (self._posted.done() and
                                        self._posted.result().is_completed())


def _op(options):
    for theirs, ours in _OPS:
        if options.reduceOp == theirs:
            return ours
    raise ValueError("the backend hvd has no such reduction: only SUM, AVG, MIN, MAX and "
                     "PRODUCT")


def _only(tensors):
    """Returns the tensor of a list of one for each device."""
    if len(tensors) != 1:
        raise ValueError(f"the backend hvd takes one tensor, not {len(tensors)}")
    return tensors[0]


def _write(target, values):
    """Writes values into a tensor that the program has given."""
    if values.data_ptr() != target.data_ptr() or not target.is_contiguous():
        target.detach().copy_(values.reshape(target.shape))


class ProcessGroupHvd(dist.ProcessGroup):
    """A group of torch.distributed on a process set."""

    def __init__(self, rank, size, process_set, pairs, timeout):
        super().__init__(rank, size)
        self._seconds = timeout.total_seconds()
        self._set, self._ranks, self._pairs = process_set, process_set.ranks(), pairs
        self._numbers = itertools.count()  # of its sparse tensors

    def getBackendName(self):
        return "hvd"

    def _work(self, finish, handles=()):
        return _Work(finish, handles, self._seconds)

    def allreduce(self, tensors, opts=None):
        tensor = _only(tensors)
        if tensor.is_sparse:
            return self._sparse_allreduce(tensor, opts)
        whole = tensor.detach().contiguous()
        handle = ops.allreduce_async_(whole, op=_op(opts) if opts else ops.Sum,
                                      process_set=self._set)

        def finish():
            _write(tensor, ops.synchronize(handle))
            return [tensor]
        return self._work(finish, [handle])

    def _sparse_allreduce(self, tensor, opts):
        op = _op(opts) if opts else ops.Sum
        if op not in (ops.Sum, ops.Average):
            raise ValueError("the backend hvd reduces sparse tensors with SUM and AVG only")
        gathered = ops.sparse_allreduce_async(tensor.detach().coalesce(),
                                              f"sparse.{next(self._numbers)}", op, self._set)

        def finish():
            with torch.no_grad():  # detach() of a sparse tensor does not share its values
                tensor.copy_(gathered().coalesce())
            return [tensor]
        return self._work(finish)

    def allreduce_coalesced(self, tensors, opts=None):
        wholes = [tensor.detach().contiguous() for tensor in tensors]
        handle = ops.grouped_allreduce_async_(wholes, op=_op(opts) if opts else ops.Sum,
                                              process_set=self._set)

        def finish():
            for tensor, whole in zip(tensors, ops.synchronize(handle)):
                _write(tensor, whole)
            return list(tensors)
        return self._work(finish, [handle])

    def broadcast(self, tensors, opts):
        tensor = _only(tensors)
        whole = tensor.detach().contiguous()
        handle = ops.broadcast_async_(whole, self._ranks[opts.rootRank],
                                      process_set=self._set)

        def finish():
            _write(tensor, ops.synchronize(handle))
            return [tensor]
        return self._work(finish, [handle])

    def reduce(self, tensors, opts):
        tensor, root = _only(tensors), opts.rootRank
        whole = tensor.detach().contiguous()
        output = torch.empty_like(whole) if self.rank() == root else None
        handle = begin(request("reduce", view_of(whole), output is not None and view_of(output)
                               or None, None, _op(opts), self._ranks[root],
                               process_set=self._set), lambda _: output)

        def finish():
            reduced = ops.synchronize(handle)
            if output is not None:
                _write(tensor, reduced)
            return [tensor]
        return self._work(finish, [handle])

    def _gathered(self, tensor, spread):
        """Begins an allgather of a flat tensor; spread gets a row for each rank."""
        handle = ops.allgather_async(tensor.detach().reshape(1, -1).contiguous(),
                                     process_set=self._set)
        return self._work(lambda: spread(ops.synchronize(handle)), [handle])

    def allgather(self, outputs, inputs, opts=None):
        targets, tensor = _only(outputs), _only(inputs)
        if len(targets) != self.size():
            raise ValueError(f"{len(targets)} outputs for {self.size()} ranks")

        def spread(rows):
            for target, row in zip(targets, rows):
                _write(target, row)
            return [targets]
        return self._gathered(tensor, spread)

    def allgather_coalesced(self, outputs, inputs, opts=None):
        works = [self.allgather([[of_rank[i] for of_rank in outputs]], [tensor])
                 for i, tensor in enumerate(inputs)]

        def finish():
            for work in works:
                work.wait()
            return outputs
        return self._work(finish)

    def _allgather_base(self, output, input, opts=None):
        def spread(rows):
            _write(output, rows)
            return [output]
        return self._gathered(input, spread)

    def gather(self, outputs, inputs, opts):
        tensor, root = _only(inputs), opts.rootRank
        row = tensor.detach().reshape(1, -1).contiguous()
        # The root says by a capacity that it wants the library to make the output.
        handle = begin(request("gather", view_of(row), None, None, root=self._ranks[root],
                               process_set=self._set, capacity=2**62),
                       lambda view: tensor_of(view) if view is not None else None)

        def finish():
            rows = ops.synchronize(handle)
            if self.rank() != root:
                return []
            for target, values in zip(_only(outputs), rows):
                _write(target, values)
            return list(outputs)
        return self._work(finish, [handle])

    def scatter(self, outputs, inputs, opts):
        target, n = _only(outputs), self.size()
        shape = (0, target.numel())
        splits, rows = [0] * n, torch.empty(shape, dtype=target.dtype)
        if self.rank() == opts.rootRank:
            splits, rows = [1] * n, torch.stack([t.detach().reshape(-1) for t in _only(inputs)])
        return self._exchanged(rows, splits, lambda got: (_write(target, got), [target])[1])

    def _exchanged(self, rows, splits, spread):
        handle = ops.alltoall_async(rows, splits, process_set=self._set)
        return self._work(lambda: spread(ops.synchronize(handle)[0]), [handle])

    def alltoall_base(self, output, input, output_splits, input_splits, opts=None):
        def spread(rows):
            if rows.numel() != output.numel():
                raise ValueError(f"{rows.shape[0]} rows came, and the output has the shape "
                                 f"{tuple(output.shape)}")
            _write(output, rows)
            return [output]
        return self._exchanged(input.detach().contiguous(), input_splits or None, spread)

    def alltoall(self, outputs, inputs, opts=None):
        flat = [tensor.detach().reshape(-1) for tensor in inputs]

        def spread(values):
            for target, part in zip(outputs, values.split([t.numel() for t in outputs])):
                _write(target, part)
            return list(outputs)
        return self._exchanged(torch.cat(flat), [len(part) for part in flat], spread)

    def _scattered(self, rows, target, opts):
        handle = ops.reducescatter_async(rows.contiguous(), op=_op(opts) if opts else ops.Sum,
                                         process_set=self._set)

        def finish():
            _write(target, ops.synchronize(handle))
            return [target]
        return self._work(finish, [handle])

    def reduce_scatter(self, outputs, inputs, opts=None):
        rows = torch.stack([tensor.detach().reshape(-1) for tensor in _only(inputs)])
        return self._scattered(rows, _only(outputs), opts)

    def _reduce_scatter_base(self, output, input, opts=None):
        return self._scattered(input.detach().reshape(self.size(), -1), output, opts)

    def barrier(self, opts=None):
        handle = begin(request("barrier", process_set=self._set), lambda _: [])
        return self._work(lambda: ops.synchronize(handle), [handle])

    def send(self, tensors, to, tag=0):
        return _Message(self._pairs.send(tensors, to, tag), tensors)

    def recv(self, tensors, source, tag=0):
        return _Message(self._pairs.recv(tensors, source, tag), tensors)

    def recv_anysource(self, *_):
        raise NotImplementedError("the backend hvd receives from a rank that is named: give "
                                  "recv its src, or make a group of the backend gloo")


def _process_set(store, rank, size):
    """Returns the process set of a group. Its members learn their ranks in the world from
    each other, through the store of the group."""
    store.set(f"hvd.rank.{rank}", str(hvd.rank()))
    ranks = [int(store.get(f"hvd.rank.{i}")) for i in range(size)]
    if ranks != sorted(ranks):
        raise NotImplementedError(f"the backend hvd orders the ranks of a group as those of the "
                                  f"world, and this group's are {ranks}")
    for process_set in hvd.process_sets():
        if process_set.ranks() == ranks:
            return process_set
    raise NotImplementedError(
        f"the backend hvd has no process set of the ranks {ranks}: call "
        f"hvd.add_process_set({ranks}) on all {hvd.size()} ranks before new_group")


def _create(store, rank, size, timeout):
    start(store, rank, size)
    _memory.keep()
    return ProcessGroupHvd(rank, size, _process_set(store, rank, size),
                           Pairs(store, rank, timeout), timeout)


def _register_ranks(ranks):
    """Makes the process set of a new group on all ranks, if there is none. The ranks of
    torch.distributed must be those of the library; wrong ones are left to PyTorch."""
    start(dist.distributed_c10d._get_default_store(), dist.get_rank(), dist.get_world_size())
    ranks = sorted(set(ranks))
    known = [process_set.ranks() for process_set in hvd.process_sets()]
    if ranks and hvd.size() == dist.get_world_size() and ranks not in known and \
            0 <= ranks[0] and ranks[-1] < hvd.size():
        hvd.ProcessSet(ranks)


def _with_sets(new_group):
    """Returns PyTorch's new_group, which makes the process set first."""
    signature = inspect.signature(new_group)

    @functools.wraps(new_group)
    def new_group_of_a_set(*args, **named):
        given = signature.bind(*args, **named).arguments
        backend = given.get("backend") or (dist.is_initialized() and dist.get_backend())
        if given.get("ranks") and backend and dist.Backend(backend) == "hvd":
            with translated():
                _register_ranks(given["ranks"])
        return new_group(*args, **named)
    return new_group_of_a_set


dist.Backend.register_backend("hvd", _create)
dist.new_group = dist.distributed_c10d.new_group = _with_sets(dist.new_group)

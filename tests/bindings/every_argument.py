# SPDX-License-Identifier: Apache-2.0
"""What the package hvd takes beside numpy arrays, where results go, and what is
asynchronous, on any number of ranks."""
import array
import gc
import os
import pickle
import sys

import numpy as np

sys.path.insert(0, sys.argv[1])
import hvd

hvd.init(process_sets=[[0]])
r, n = hvd.rank(), hvd.size()
everyone = range(n)
total = n * (n + 1) // 2


class Foreign:
    """A tensor of another library, which only has __dlpack__."""

    def __init__(self, content):
        self.content = content

    def __dlpack__(self, stream=None):
        return self.content.__dlpack__()


# Constants.
assert (hvd.Average, hvd.Sum, hvd.Adasum, hvd.Min, hvd.Max, hvd.Product) == tuple(range(6))
assert hvd.Status.MISMATCH == -4 and hvd.__version__ == hvd.version()
assert pickle.loads(pickle.dumps(hvd.Error(-4, "x"))).status is hvd.Status.MISMATCH
for op in hvd.Op:
    if op != hvd.Op.ADASUM:
        one = hvd.allreduce(np.full(3, 2.0), op=op, name=op.name)
        assert (one == hvd.allreduce(np.full(3, 2.0), op=op.name.lower())).all()

# Memory that is no numpy array.
for ones in (array.array("d", [1, 2]), bytearray(b"\1\2"), memoryview(np.arange(1, 3)),
             Foreign(np.arange(1, 3, dtype=np.int16)), [1.0, 2.0], (1, 2), b"\1\2"):
    assert hvd.allreduce(ones, op=hvd.Sum).tolist() == [n, 2 * n], ones
    if not isinstance(ones, (list, tuple, bytes)):
        assert hvd.allreduce(ones, ones, op=hvd.Sum) is ones
        got = np.asarray(ones.content if isinstance(ones, Foreign) else ones)
        assert got.tolist() == [n, 2 * n], ones
        assert hvd.broadcast(ones) is ones
assert hvd.allreduce(7, op=hvd.Max) == 7 and hvd.allreduce(True, op=hvd.Min).dtype == bool
for strange, error in ((Foreign(np.zeros((4, 4))[:, ::2]), ValueError),
                       (Foreign(np.zeros(2, complex)), TypeError)):
    try:
        hvd.allreduce(strange)
    except error:
        continue
    raise AssertionError(strange)

# The library's own memory.
for dtype in "uint8 int8 uint16 int16 int32 int64 float16 float32 float64 bool".split():
    x = hvd.zeros((3, 2), dtype)
    assert x.dtype == dtype and x.shape == (3, 2) and not x.any()
    x[...] = 1
    hvd.allreduce(x, x, op=hvd.Max)
    assert (x == 1).all() and x.ctypes.data % 64 == 0
    view = x[1:]
    del x
    gc.collect()
    assert (view == 1).all()
assert hvd.empty(3, "bfloat16").dtype == np.uint16 and hvd.empty((), np.float64).shape == ()
assert hvd.zeros(0).size == 0 and hvd.empty(2).dtype == np.float32
for _ in range(20):  # which are freed
    hvd.empty(1 << 20)[0] = 1

# Results of the library's memory live as long as what refers to them.
rows = hvd.allgather(np.full((1, 4), r + 1.0))[0][n - 1:]
gc.collect()
hvd.allgather(np.zeros((1, 4)))
assert rows.tolist() == [[n] * 4]
rows[...] = 5

# Where results go.
x = np.arange(6.0).reshape(3, 2) + r
out = np.empty((3 * n + 2, 2))
got, counts = hvd.allgather(x[:1 + r % 2], out)
assert got.base is out and counts.tolist() == [1 + k % 2 for k in everyone]
assert (got == np.concatenate([(np.arange(6.0).reshape(3, 2) + k)[:1 + k % 2]
                               for k in everyone])).all()
got, counts = hvd.alltoall(np.full((n, 2), r), splits=[1] * n, out=np.empty((n, 2), int))
assert got[:, 0].tolist() == list(everyone)
share = np.empty((3 // n + (r < 3 % n), 2))
assert hvd.reducescatter(x, share, op=hvd.Sum) is share
assert (share == hvd.reducescatter(x, op=hvd.Sum)).all()
out = np.empty((3, 2))
assert hvd.broadcast(x if r == n - 1 else None, n - 1, out) is out
assert (out == np.arange(6.0).reshape(3, 2) + n - 1).all() and (x[0, 0] == r)
try:
    hvd.allgather(x, np.empty((3 * n - 1, 2)))
    assert False, "rows went where there is no room"
except hvd.Error as error:
    assert error.status is hvd.Status.ARGUMENT, error

# Everything is asynchronous, too.
handles = [
    (hvd.grouped_allreduce_async([x, np.float32(r + 1)], "g", op=hvd.Sum),
     lambda got: got[1] == total),
    (hvd.grouped_allgather_async([[r], [[r, r]]], "ag"), lambda got: len(got[1][0]) == n),
    (hvd.grouped_reducescatter_async([np.ones(n), np.ones((n, 2))], "rs", op=hvd.Sum),
     lambda got: got[0].tolist() == [n] and got[1].shape == (1, 2)),
    (hvd.sparse_allreduce_async([r], [[2.0 * n]], name="sp"),
     lambda got: got[0].tolist() == list(everyone) and (got[1] == 2).all()),
    (hvd.reduce_async(r + 1, root=n - 1, op=hvd.Sum, name="re"),
     lambda got: got == (total if r == n - 1 else None)),
    (hvd.gather_async([r + 1], name="ga"),
     lambda got: got[1].tolist() == [1] * n and (r > 0) == (got[0] is None)),
    (hvd.reducescatter_async(np.ones(n), name="rs1"), lambda got: got.tolist() == [1]),
    (hvd.alltoall_async(np.arange(n), name="a2a"), lambda got: (got[0] == r).all()),
    (hvd.broadcast_async(x, n - 1, np.empty((3, 2)), name="bc"),
     lambda got: got[0, 0] == n - 1),
    (hvd.barrier_async(), lambda got: got is None)]
for handle, is_right in reversed(handles):
    assert handle.poll() in (True, False)
    got = handle.wait()
    assert is_right(got), got
    try:
        handle.wait()
        raise AssertionError("waited twice")
    except hvd.Error as error:
        assert error.status is hvd.Status.HANDLE
assert hvd.grouped_allgather([[r]])[0][0].tolist() == list(everyone)
assert hvd.grouped_reducescatter([np.ones(n)])[0] == 1
joined = hvd.join_async()
assert joined.wait() in everyone

# Process sets are objects.
everybody, first = hvd.process_sets()
assert everybody == hvd.global_process_set and everybody.ranks() == list(everyone)
assert first.ranks() == [0] and first.id == 1 and first.included() == (r == 0)
assert len({first, hvd.process_sets()[1]}) == 1 and first != everybody
if r == 0:
    assert hvd.allreduce(5.0, process_set=first, op=hvd.Sum) == 5
hvd.init(process_sets=[[0]])
hvd.shutdown()
os.write(sys.stdout.fileno(), f"rank {r} of {n}: every argument\n".encode())

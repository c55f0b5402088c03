# SPDX-License-Identifier: Apache-2.0
"""What the package hvd refuses, and how; the same mistakes on every rank."""
import gc
import os
import sys
import weakref

import numpy as np

sys.path.insert(0, sys.argv[1])
import hvd


def refused(kind, words, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except kind as error:
        for word in words:
            assert word in str(error), f"{word!r} is not in {str(error)!r}"
        assert kind is not hvd.Error or error.status < 0
        return error
    raise AssertionError(f"{words} was not refused")


x = np.arange(6, dtype=np.float32).reshape(2, 3)

# Before the beginning.
for early in (hvd.rank, hvd.size, hvd.barrier, hvd.join, hvd.metrics_text,
              lambda: hvd.allreduce(x), lambda: hvd.broadcast(x.copy()),
              lambda: hvd.allgather(x), lambda: hvd.alltoall(x),
              lambda: hvd.ProcessSet([0]), lambda: hvd.grouped_allreduce([x])):
    assert refused(hvd.Error, ["hvd_init"], early).status == -20
assert not hvd.is_initialized()
refused(ValueError, ["a rank", "32 bits"], hvd.init, process_sets=[[2**32]])
refused(ValueError, ["a rank", "32 bits"], hvd.init, comm=[2**32])
refused(hvd.Error, ["0 of them"], hvd.init, comm=[])

hvd.init()
r, n = hvd.rank(), hvd.size()
everything = {
    "allreduce": hvd.allreduce, "reduce": hvd.reduce, "broadcast": hvd.broadcast,
    "allgather": hvd.allgather, "gather": hvd.gather, "alltoall": hvd.alltoall,
    "reducescatter": hvd.reducescatter,
    "group": lambda array, **options: hvd.grouped_allreduce([array], **options),
    "sparse": lambda array, **options: hvd.sparse_allreduce(range(len(array)), array, **options)}

# Another world than the one that there is.
hvd.init()
hvd.init(comm=range(n))
refused(ValueError, ["initialized already", "shutdown()", f"comm=[{n}]"], hvd.init, comm=[n])
if n > 1:
    refused(ValueError, ["without the process set [0]"], hvd.init, process_sets=[[0]])
hvd.init(process_sets=[range(n)])
refused(TypeError, ["cluster is dict"], hvd.init, cluster={})

# Mistakes are named by the public name.
for name, operation in vars(hvd).items():
    if callable(operation) and hasattr(operation, "__code__"):
        refused(TypeError, [f"{name}() got an unexpected keyword argument 'averge'"], operation,
                averge=1)

# Arrays that are not what they seem.
foreign = x.astype(x.dtype.newbyteorder())
for operation in everything.values():
    refused(TypeError, ["byte order", foreign.dtype.str], operation, foreign)
    refused(ValueError, ["C-contiguous"], operation, np.zeros((4, 6))[:, ::2])
    refused(ValueError, ["C-contiguous"], operation, np.asfortranarray(x))
    for strange, name in ((np.full((2, 3), None), "object"), (x.astype(complex), "complex128"),
                          (x.astype(np.longdouble), "longdouble"), (x.astype("U"), "str")):
        want = strange.dtype.name if name == "longdouble" else name
        refused(TypeError, ["knows no dtype", want], operation, strange)
    # A dtype that contradicts the array: wider, narrower, of another kind.
    for dtype in ("float64", "int32", "uint8", "bfloat16", np.int64):
        refused(TypeError, ["the array's float32"], operation, x.copy(), dtype=dtype)
    refused(TypeError, ["knows no dtype float128x"], operation, x.copy(), dtype="float128x")
    refused(TypeError, ["the array's int16"], operation, x.astype(np.int16), dtype="bfloat16")
refused(TypeError, ["the array's uint8"], hvd.allreduce, np.ones(3, np.uint8), dtype="bool")
refused(TypeError, ["the array's int64"], hvd.allreduce, np.ones(3, np.int64), dtype="uint16")

# Where results go.
locked = x.copy()
locked.flags.writeable = False
before = locked.copy()
refused(ValueError, ["out", "read-only"], hvd.allreduce, x, out=locked)
refused(ValueError, ["read-only"], hvd.reduce, x, out=locked)
refused(ValueError, ["read-only"], hvd.broadcast, locked)
refused(ValueError, ["read-only"], hvd.grouped_allreduce, [x], outs=[locked])
assert (locked == before).all()
assert np.allclose(hvd.allreduce(locked), x)  # to read from is fine
refused(TypeError, ["list"], hvd.allreduce, x, out=[[0] * 3] * 2)
refused(TypeError, ["list"], hvd.broadcast, [1, 2])
refused(ValueError, ["[3, 2]", "[2, 3]"], hvd.allreduce, x,
        out=np.empty((3, 2), np.float32))
refused(ValueError, ["float64", "float32"], hvd.allreduce, x, out=np.empty((2, 3)))
refused(ValueError, ["C-contiguous"], hvd.allreduce, x, out=np.empty((2, 6), np.float32)[:, ::2])
refused(TypeError, ["byte order"], hvd.allreduce, x, out=np.empty((2, 3), foreign.dtype))
refused(ValueError, ["1 outs for 2 arrays"], hvd.grouped_allreduce, [x, x], outs=[x.copy()])

for gather in hvd.allgather, hvd.alltoall:
    refused(ValueError, ["[9, 2]", "[2, 3]"], gather, x, out=np.empty((9, 2), np.float32))
    refused(ValueError, ["float64", "float32"], gather, x, out=np.empty((9, 3)))
refused(ValueError, ["share", "[9, 3]"], hvd.reducescatter, x, out=np.empty((9, 3), np.float32))
refused(ValueError, ["[3, 2]", "[2, 3]"], hvd.broadcast, x, r, np.empty((3, 2), np.float32))
refused(TypeError, ["str, not an array to write to"], hvd.broadcast, "text")
refused(ValueError, ["read-only"], hvd.broadcast, b"bytes")
refused(TypeError, ["no dtype", "int128"], hvd.empty, 3, "int128")
refused(ValueError, ["-1"], hvd.zeros, -1)
refused(ValueError, ["17 dimensions"], hvd.zeros, (1,) * 17)

# Names.
for operation in everything.values():
    refused(ValueError, ["NUL"], operation, x.copy(), name="two\0parts")
refused(TypeError, ["7"], hvd.allreduce, x, name=7)
refused(ValueError, ["NUL"], hvd.start_timeline, "a\0b")
refused(ValueError, ["NUL"], hvd.register_compressor, "a\0b", len, len, len)
assert refused(hvd.Error, ["control character 0x0a"], hvd.allreduce, x, name="a\nb").status == -1
assert refused(hvd.Error, ["255 bytes"], hvd.allreduce, x, name="é" * 200).status == -1

# Options.
refused(ValueError, ["no op 'median'", "average"], hvd.allreduce, x, op="median")
refused(TypeError, ["op", "1.5"], hvd.allreduce, x, op=1.5)
refused(TypeError, ["prescale", "'2'", "number"], hvd.allreduce, x, prescale="2")
refused(TypeError, ["priority", "None"], hvd.allreduce, x, priority=None)
refused(ValueError, ["flags", "32 bits"], hvd.allreduce, x, flags=2**31)
assert refused(hvd.Error, ["0x40"], hvd.allreduce, x, flags=64).status is hvd.Status.UNSUPPORTED
refused(ValueError, ["sums or averages"], hvd.sparse_allreduce, [0, 1], x, op=hvd.Max)
assert refused(hvd.Error, ["op 77"], hvd.allreduce, x, op=77).status == -1
refused(ValueError, ["no compression 'zip'"], hvd.allreduce, x, compression="zip")
assert refused(hvd.Error, ["compression 15"], hvd.allreduce, x, compression=15).status == -1
refused(ValueError, ["root", "32 bits"], hvd.broadcast, x.copy(), root=2**32)
refused(TypeError, ["root", "'0'"], hvd.broadcast, x.copy(), root="0")
refused(TypeError, ["process_set"], hvd.allreduce, x, process_set=0.0)
assert refused(hvd.Error, ["-1"], hvd.broadcast, x.copy(), root=-1).status == -1
assert refused(hvd.Error, ["99"], hvd.allreduce, x, process_set=99).status == -9
assert refused(hvd.Error, ["99"], hvd.allgather, x, process_set=99).status == -9
refused(ValueError, [f"{n + 1} splits for {n} ranks"], hvd.alltoall, x, splits=[0] * (n + 1))
refused(ValueError, [f"0 splits for {n} ranks"], hvd.alltoall, x, splits=[])
refused(TypeError, ["a split", "0.5"], hvd.alltoall, x, splits=[0.5] * n)
refused(ValueError, ["64 bits"], hvd.alltoall, x, splits=[2**64] * n)
assert refused(hvd.Error, ["more than the 2 rows"], hvd.alltoall, x, splits=[3] * n).status == -1
assert hvd.alltoall(x, splits=np.zeros(n, np.int64))[0].shape == (0, 3)
refused(TypeError, ["indices", "float64"], hvd.sparse_allreduce, [0.5, 1.0], x)
refused(ValueError, ["3 indices for rows [2, 3]"], hvd.sparse_allreduce, [1, 2, 3], x)
refused(TypeError, ["bfloat16"], hvd.sparse_allreduce, [1, 2], x.astype(np.uint16),
        op="average", dtype="bfloat16")
refused(ValueError, ["a rank", "32 bits"], hvd.ProcessSet, [0, 2**32])
assert refused(hvd.Error, [], hvd.ProcessSet, []).status == -1

# Objects that cannot be pickled on one rank: told to all, in words.
bad = (lambda: 0) if r == n - 1 else 0
words = ["pickle"] if r == n - 1 else [f"rank {n - 1} has an object", "pickle"]
refused(Exception, words, hvd.allgather_object, bad)
refused(Exception, words, hvd.broadcast_object, bad, root=n - 1)
assert hvd.allgather_object(r) == list(range(n))

# Strategies.
refused(ValueError, ["no optimizer 'adma'", "adam"], hvd.Strategy, "adma")
refused(TypeError, ["no option 'rate'", "learning_rate"], hvd.Strategy, rate=1)
refused(ValueError, ["no op 'mean'"], hvd.Strategy, op="mean")
assert refused(hvd.Error, ["op 4, max"], hvd.Strategy, op="max").status == -1
refused(hvd.Error, ["learning rate"], hvd.Strategy, learning_rate=-1)
strategy = hvd.Strategy("sgd")
refused(TypeError, ["float64, not float32"], strategy.add, "w", np.ones(3))
refused(TypeError, ["not an array to write to"], strategy.add, "w", [1.0])
refused(ValueError, ["C-contiguous"], strategy.add, "w", np.ones((4, 4), np.float32)[:, ::2])
refused(ValueError, ["NUL"], strategy.add, "w\0", x.copy())
strategy.add("w", x.copy())
refused(hvd.Error, ["'w' was added before"], strategy.add, "w", x.copy())
refused(hvd.Error, ["hvd_strategy_start"], strategy.gradient, "w")
refused(hvd.Error, ["hvd_strategy_start"], strategy.step)
strategy.start()
refused(ValueError, ["no variable 'v'", "'w'"], strategy.ready, "v")
assert refused(hvd.Error, ["was not ready"], strategy.step).status == -1
assert refused(hvd.Error, ["/nowhere/state"], strategy.save, "/nowhere/state").status == -11
assert refused(hvd.Error, ["rank 0: ", "/nowhere/state"], strategy.load,
               "/nowhere/state").status == -11
strategy.close()
strategy = hvd.Strategy("sgd")
refused(ValueError, ["'w' has 1 dimensions"], strategy.add, "w", np.ones(3, np.float32), True)
strategy.add("table", np.ones((5, 3), np.float32), sparse=True)
strategy.start()
refused(hvd.Error, ["hvd_strategy_ready_rows"], strategy.ready, "table")
refused(TypeError, ["indices", "float64"], strategy.ready_rows, "table", [0.5], np.ones((1, 3)))
refused(ValueError, ["2 indices for rows [1, 3]"], strategy.ready_rows, "table", [0, 1],
        np.ones((1, 3)))
assert refused(hvd.Error, ["row -1 of variable 'table'"], strategy.read_rows, "table",
               [-1]).status == -1
assert refused(hvd.Error, ["row 5 of variable 'table'", "5 rows"], strategy.ready_rows, "table",
               [5], np.ones((1, 3))).status == -1
assert refused(hvd.Error, ["row 5 of variable 'table'"], strategy.step).status == -1
strategy.close()
for late in (strategy.step, strategy.check, lambda: strategy.add("v", x.copy())):
    refused(ValueError, ["closed"], late)

# Handles.
handle = hvd.allreduce_async(x, name="h")
assert np.allclose(handle.wait(), x)
for again in (handle.wait, handle.poll):
    assert refused(hvd.Error, ["already waited for"], again).status == -6

# A handle that is dropped: what the library uses stays.
dropped = np.ones(1 << 16)
watch = weakref.ref(dropped)
hvd.allreduce_async(dropped, name="dropped")
del dropped
gc.collect()
assert watch() is not None
hvd.barrier()

# Nothing of that has harmed what comes after; then the end.
assert np.allclose(hvd.allreduce(x, name="good", dtype="float32"), x)
assert np.allclose(hvd.allreduce(x, op="sum", dtype=np.float32), n * x)
assert hvd.allgather(np.empty((0, 4)))[0].shape == (0, 4)
late = hvd.allreduce_async(x, name="late")
hvd.shutdown()
for after in (late.wait, late.poll, lambda: hvd.allreduce(x)):
    assert refused(hvd.Error, ["hvd_shutdown has been called"], after).status == -21
os.write(sys.stdout.fileno(), f"rank {r} of {n}: every mistake\n".encode())

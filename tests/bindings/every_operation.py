# SPDX-License-Identifier: Apache-2.0
"""Every operation of the package hvd, on any number of ranks, against numpy."""
import os
import select
import sys
import tempfile

import numpy as np

sys.path.insert(0, sys.argv[1])
import hvd

hvd.init()
r, n = hvd.rank(), hvd.size()
everyone = range(n)


def given(rank, shape=(5, 3), dtype=np.float32):
    return (np.arange(np.prod(shape)).reshape(shape) * (rank + 1) + rank).astype(dtype)


def fails(status, words, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except hvd.Error as error:
        assert error.status == status, (error.status, str(error))
        for word in words:
            assert word in str(error), str(error)
        return
    raise AssertionError(f"{function} did not fail")


for dtype in "uint8 int8 uint16 int16 int32 int64 float16 float32 float64".split():
    x = given(r, dtype=dtype) % 7
    every = [given(k, dtype=dtype) % 7 for k in everyone]
    assert (hvd.allreduce(x, op="sum", name="x") == sum(e.astype(np.float64) for e in every)).all()
    mean = np.trunc(sum(e.astype(np.float64) for e in every) / n).astype(dtype) \
        if x.dtype.kind in "iu" else sum(e.astype(np.float64) for e in every) / n
    assert np.allclose(hvd.allreduce(x), mean, rtol=2e-3)  # the default
    assert (hvd.allreduce(x, op="max") == np.max(every, axis=0)).all()
    assert (hvd.allreduce(x, op="min") == np.min(every, axis=0)).all()
    gathered, counts = hvd.allgather(x[:r + 1])
    assert gathered.dtype == x.dtype and list(counts) == [k + 1 for k in everyone]
    assert (gathered == np.concatenate([every[k][:k + 1] for k in everyone])).all()
assert hvd.allreduce(np.array([r == 0, True]), op="product").tolist() == [n == 1, True]
half = np.full(3, 0x3f80, np.uint16)  # 1.0 as bfloat16
assert (hvd.allreduce(half, op="product", dtype="bfloat16") == half).all()

x = given(r)
total = sum(given(k) for k in everyone)
for mean in (hvd.allreduce(x), hvd.allreduce(x, op="average"), hvd.grouped_allreduce([x])[0],
             hvd.allreduce_async(x).wait()):
    assert np.allclose(mean, total / n)
fails(-1, ["bool has no average", "sum or max"], hvd.allreduce, np.array([True]))
assert np.allclose(hvd.allreduce(x, prescale=0.5, postscale=4.0), total * 2 / n)
same = x.copy()
assert hvd.allreduce(same, out=same) is same and np.allclose(same, total / n)
assert np.allclose(hvd.allreduce(np.ones(4, np.float32), op="adasum"), 1)
assert np.allclose(hvd.allreduce(x, op="average", compression="bf16"), total / n, rtol=0.02)
assert np.allclose(hvd.allreduce(x, op="sum", compression="topk").sum(),
                   sum(np.abs(given(k)).max() for k in everyone))
scalar = hvd.allreduce(np.float64(r + 1), op="sum")
assert scalar == n * (n + 1) / 2 and scalar.shape == ()

handles = [hvd.allreduce_async(x + i, op="sum", name=f"a/{i}") for i in range(5)]
for i, handle in enumerate(handles):
    assert handle.poll() in (True, False)
    assert np.allclose(handle.wait(), total + n * i)
results = hvd.grouped_allreduce([x, x * 2], name="g", op="average")
assert np.allclose(results[0], total / n) and np.allclose(results[1], 2 * total / n)
reduced = hvd.reduce(x, root=n - 1)
assert np.allclose(reduced, total / n) if r == n - 1 else reduced is None
reduced = hvd.reduce(x, root=n - 1, op="sum")
assert np.allclose(reduced, total) if r == n - 1 else reduced is None
y = given(r)
assert (hvd.broadcast(y, root=n - 1) == given(n - 1)).all() and (y == given(n - 1)).all()
rows, counts = hvd.gather(x[:2 + r % 2], root=0)
assert list(counts) == [2 + k % 2 for k in everyone]
assert r != 0 or (rows == np.concatenate([given(k)[:2 + k % 2] for k in everyone])).all()

parts = [(r + k) % 3 for k in everyone]
mine = np.arange(sum(parts), dtype=np.int64) + 100 * r
got, counts = hvd.alltoall(mine, splits=parts)
assert list(counts) == [(k + r) % 3 for k in everyone]
want = []
for k in everyone:
    theirs = [(k + j) % 3 for j in everyone]
    start = sum(theirs[:r])
    want += [100 * k + start + i for i in range(theirs[r])]
assert got.tolist() == want
assert hvd.alltoall(np.arange(n) + 10 * r)[0].tolist() == [10 * k + r for k in everyone]

share = hvd.reducescatter(x, op="sum")
edges = np.cumsum([0] + [5 // n + (k < 5 % n) for k in everyone])
assert np.allclose(share, total[edges[r]:edges[r + 1]])
assert np.allclose(hvd.reducescatter(x) * n, share)

indices, rows = hvd.sparse_allreduce([r, 7], np.full((2, 3), r, np.float32))
assert indices.tolist() == [i for k in everyone for i in (k, 7)]
assert np.allclose(rows, [[k / n] * 3 for k in everyone for _ in "ab"])
rows = hvd.sparse_allreduce([r], np.array([[-7, 7]], np.int16))[1]
assert rows.dtype == np.int16 and (rows == [-(7 // n), 7 // n]).all()
rows = hvd.sparse_allreduce([r], np.array([[True]]), op="sum")[1]
assert rows.all() and len(rows) == n

if n > 1:
    first = hvd.ProcessSet(range(n - 1))
    assert first.ranks() == list(range(n - 1)) and first.included() == (r < n - 1)
    if first.included():
        assert hvd.allreduce(np.float64(1), op="sum", process_set=first) == n - 1
        assert first.rank() == r and first.size() == n - 1
    else:
        fails(-9, ["not a member"], hvd.allreduce, x, process_set=first)
    first.remove()
    fails(-4, ["'w' differs: rank", "[5,3]", "[4,3]"], hvd.allreduce,
          x[:4] if r == n - 1 else x, name="w")
fails(-1, ["root 99"], hvd.broadcast, y, root=99)
for bad in (lambda: hvd.allreduce(np.zeros((4, 4))[:, ::2]),
            lambda: hvd.allreduce(x, op="median"),
            lambda: hvd.allreduce(x, out=np.zeros(3))):
    try:
        bad()
    except ValueError:
        continue
    raise AssertionError("a mistake was not found")
try:
    hvd.allreduce(np.zeros(3, complex))
    raise AssertionError("complex numbers were taken")
except TypeError:
    pass


def encode(state, values, code):
    code[:] = values.astype(np.float16).view(np.uint8)
    return code.size


def add(code, total_):
    total_ += code.view(np.float16).astype(np.float32)


mine = hvd.register_compressor("python-half", lambda count: 2 * count, encode, add)
assert np.allclose(hvd.allreduce(x, op="sum", compression=mine), total)

thing = {"epoch": r, "text": "x" * (1000 * r), "array": np.arange(r)}
got = hvd.broadcast_object(thing, root=n - 1, name="thing")
assert got["epoch"] == n - 1 and len(got["text"]) == 1000 * (n - 1)
assert (hvd.broadcast_object(thing if r == 0 else None) or {})["epoch"] == 0
things = hvd.allgather_object(thing)
assert [t["epoch"] for t in things] == list(everyone)
assert all(t["array"].size == k for k, t in enumerate(things))
assert hvd.allgather_object(None) == [None] * n
if n > 1:
    some = hvd.ProcessSet([1])
    if some.included():
        assert hvd.allgather_object("alone", process_set=some) == ["alone"]
        assert hvd.broadcast_object(7, root=1, process_set=some) == 7
    some.remove()

# Strategies, against numpy.
for optimizer in ("sgd", "momentum", "adam", "none", "nesterov", "rmsprop", "lion"):
    w, b = np.full((3, 2), r + 1, np.float32), np.float32([r])
    s = hvd.Strategy(optimizer, learning_rate=0.1, momentum=0.5, op="sum")
    s.add("w", w)
    s.add("b", b)
    own, mean = np.full(3, r, np.float32), np.empty(3, np.float32)
    s.add_statistic("norm/mean", own, mean)
    s.start()
    assert (own == 0).all() and (mean == 0).all()
    own[...] = [r, 2 * r, -r]
    s.read_statistics()
    assert np.allclose(mean, np.array([1, 2, -1]) * (n - 1) / 2) and own[0] == r
    want, m, v = np.ones((3, 2)), 0, 0
    for step in range(1, 4):
        for name in ("b", "w") if r % 2 else ("w", "b"):
            s.gradient(name)[...] = (r + 1) * step
            s.ready(name)
        s.step()
        g = n * (n + 1) / 2 * step
        if optimizer == "rmsprop":
            v = v * 0.99 + 0.01 * g * g
            m = m * 0.5 + g / (np.sqrt(v) + 1e-8)
        else:
            m, v = (m * 0.5 + g, 0) if optimizer in ("momentum", "nesterov") else (
                m * 0.9 + 0.1 * g, v * 0.999 + 0.001 * g * g)
        want -= 0.1 * {"sgd": g, "momentum": m, "none": 0, "nesterov": g + 0.5 * m,
                       "rmsprop": m, "lion": 1,
                       "adam": m / (1 - 0.9**step) / (np.sqrt(v / (1 - 0.999**step)) + 1e-7)
                       }[optimizer]
        assert np.allclose(w, want, 1e-5, 1e-5) and np.allclose(b, want[0, 0] - 1, atol=1e-4)
        if step == 2:
            place = hvd.broadcast_object(os.path.join(tempfile.gettempdir(), f"hvd-{os.getpid()}"))
            if r == 0:
                s.save(place)
    assert s.gradient("w").shape == (3, 2) and s.gradient("w")[2, 1] == g
    after = w.copy()
    assert s.load(place if r == 0 else None)
    for name in "w", "b":
        s.gradient(name)[...] = (r + 1) * 3
        s.ready(name)
    s.step()
    assert (w == after).all()
    s.check()
    state = s.read_state()
    slots = {"momentum": ["momentum"], "nesterov": ["momentum"], "adam": ["m", "v"],
             "lion": ["m"], "rmsprop": ["v", "momentum"]}.get(optimizer, [])
    if optimizer != "none":
        assert list(state) == [f"{name}/{slot}" for name in "wb" for slot in slots + ["updates"]]
        assert state["w/updates"] == 3 and state["b/updates"].dtype == np.int64
    if slots and optimizer != "lion":
        assert np.allclose(state["w/" + slots[0]], m if slots[0] != "v" else v, 1e-5)
        assert state["w/" + slots[0]].shape == (3, 2)
    w[...] = r
    s.write_state({"step": 7, **state} if r == 0 else {})
    assert (w == 0).all()
    assert all((value == s.read_state()[name]).all() for name, value in state.items())
    s.write_state()
    assert not any(value.any() for value in s.read_state().values())
    if optimizer != "none":
        fails(-1, ["tensor 'w/" + (slots + ["updates"])[0] + "' of the optimizer's state is NULL"],
              s.write_state, {name: [value] for name, value in state.items()})
    w[...] = after
    s.write_state(state)
    assert s.stats()["steps"] == 4 and s.stats()["variables"] == 2
    for _ in range(r):  # more steps on higher ranks
        for name in "w", "b":
            s.gradient(name)[...] = 1
            s.ready(name)
        s.step()
    assert s.join() == n - 1
    s.check()
    assert n == 1 or optimizer == "none" or (w != after).all()
    s.set_learning_rate(0)
    if optimizer in ("momentum", "adam"):
        s.set_momentum(0.5)
    s.close()
    hvd.barrier()
    if r == 0:
        os.unlink(place)

s, table = hvd.Strategy("sgd", learning_rate=0.5), np.ones((5, 3), np.float32)
s.add("table", table, sparse=True)
s.start()
s.ready_rows("table", [4, 1, 4] if r == 0 else [], np.full((3, 3), 2) if r == 0 else [])
s.step()
s.read_rows("table", [4, 0])
assert np.allclose(table[[0, 1, 4]], [[1] * 3, [1 - 1 / n] * 3, [1 - 2 / n] * 3])
s.close()

fd = hvd.completion_fd()
handle = hvd.allreduce_async(x, name="fd")
handle.wait()
assert select.select([fd], [], [], 10)[0] and int.from_bytes(os.read(fd, 8), sys.byteorder) >= 1

steps = r + 1
for step in range(steps):
    assert hvd.allreduce(np.float64(1), op="sum") == n - step
assert hvd.join() == n - 1
hvd.barrier()
assert 'hvd_completed_total{rank="%d",op="join"} 8' % r in hvd.metrics_text()
hvd.shutdown()
fails(-21, ["hvd_shutdown has been called"], hvd.allreduce, x)
hvd.init(process_sets=[[0]] if n > 1 else [])
assert hvd.is_initialized()
hvd.shutdown()
alike = [k for k in everyone if k % 2 == r % 2]
hvd.init(comm=alike, process_sets=[alike[:1]] if len(alike) > 1 else [])
assert hvd.size() == len(alike) and alike[hvd.rank()] == r
assert hvd.allreduce(np.int32(r), op="sum") == sum(alike)
hvd.shutdown()

# Clusters need no world.
workers = [f"h:{k + 1}" for k in everyone]
cluster = hvd.Cluster({"cluster": {"worker": workers, "evaluator": ["E:1"]},
                       "task": {"type": "worker", "index": r}})
cluster.check_allreduce()
assert (cluster.rank(), cluster.size(), cluster.is_chief()) == (r, n, r == 0)
assert cluster.address("worker", n - 1) == workers[-1] and cluster.address("evaluator", 0) == "e:1"
os.environ["TF_CONFIG"] = cluster.tf_config("worker", n - 1)
assert hvd.Cluster().rank() == n - 1 and hvd.Cluster().text() == cluster.text()
with tempfile.NamedTemporaryFile("w+") as file:
    file.write(cluster.text())
    file.flush()
    assert hvd.Cluster(path=file.name).size() == n
fails(-1, ["does not say which task"], hvd.Cluster(cluster.text()).rank)
fails(-1, ["no ps 0"], cluster.address, "ps", 0)
fails(-1, ["'boss' is not a role"], cluster.tf_config, "boss", 0)
fails(-22, ["line 1, column ", "cluster.worker[0]", "no port"], hvd.Cluster,
      {"cluster": {"worker": ["h"]}})
fails(-11, ["/no/such/file"], hvd.Cluster, path="/no/such/file")
del os.environ["TF_CONFIG"]
try:
    hvd.Cluster()
    assert False
except ValueError as error:
    assert "not set" in str(error)
# One write: print makes two of a line where Python does not buffer, and
# another rank's may come between them.
os.write(sys.stdout.fileno(), f"rank {r} of {n}: every operation\n".encode())

# SPDX-License-Identifier: Apache-2.0
"""The backend of torch.distributed and the hook for DistributedDataParallel, on any number
of ranks, against PyTorch itself."""
import datetime
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, sys.argv[1])
import hvd.torch as hvd

from refused import refused

hvd.init()
r, n = hvd.rank(), hvd.size()
dist.init_process_group("hvd", init_method=f"file://{os.environ['STORE']}", rank=r, world_size=n)
everyone = range(n)


def given(rank, dtype=torch.float32):
    return (torch.arange(6).reshape(3, 2) + rank).to(dtype)


x, total = given(r), sum(given(k) for k in everyone)
assert dist.get_rank() == r and dist.get_world_size() == n and dist.get_backend() == "hvd"
for op, want in ((dist.ReduceOp.SUM, total), (dist.ReduceOp.AVG, total / n),
                 (dist.ReduceOp.MAX, given(n - 1)), (dist.ReduceOp.MIN, given(0))):
    for layout in lambda t: t, lambda t: t.t().contiguous().t():
        mine = layout(x.clone())
        work = dist.all_reduce(mine, op, async_op=True)
        assert work.wait() and work.is_completed() and torch.allclose(mine, want), op
mine = x.clone()
assert torch.equal(dist.all_reduce(mine, async_op=True).get_future().wait()[0], total)
dist.broadcast(mine, n - 1)
assert torch.equal(mine, total)
mine = x.clone()
dist.broadcast(mine, n - 1)
assert torch.equal(mine, given(n - 1))
mine = x.clone()
dist.reduce(mine, n - 1)
assert torch.equal(mine, total if r == n - 1 else x)
got = [torch.zeros(3, 2) for _ in everyone]
dist.all_gather(got, x)
assert all(torch.equal(got[k], given(k)) for k in everyone)
whole = torch.zeros(3 * n, 2)
dist.all_gather_into_tensor(whole, x)
assert torch.equal(whole, torch.cat([given(k) for k in everyone]))
got = [torch.zeros(3, 2) for _ in everyone] if r == 0 else None
dist.gather(x, got, 0)
assert r or all(torch.equal(got[k], given(k)) for k in everyone)
mine = torch.zeros(3, 2)
dist.scatter(mine, [given(k) for k in everyone] if r == n - 1 else None, n - 1)
assert torch.equal(mine, x)
dist.reduce_scatter(mine, [given(k + r) for k in everyone])
assert torch.equal(mine, sum(given(k + r) for k in everyone))
dist.reduce_scatter_tensor(mine, torch.cat([given(k + r) for k in everyone]))
assert torch.equal(mine, sum(given(k + r) for k in everyone))
whole = torch.zeros(n, 2)
dist.all_to_all_single(whole, torch.full((n, 2), float(r)))
assert whole[:, 0].tolist() == list(everyone)
got = [torch.zeros(k + r + 1) for k in everyone]
dist.all_to_all(got, [torch.full((k + r + 1,), float(r)) for k in everyone])
assert all((got[k] == k).all() for k in everyone)
objects = [None] * n
dist.all_gather_object(objects, {"rank": r})
assert objects == [{"rank": k} for k in everyone]
dist.barrier()
refused(ValueError, "no such reduction", dist.all_reduce, torch.ones(1).int(), dist.ReduceOp.BAND)
got = [[torch.zeros(3, 2), torch.zeros(1)] for _ in everyone]
dist.all_gather_coalesced(got, [x, torch.full((1,), float(r))])
assert all(torch.equal(a, given(k)) and b == k for k, (a, b) in enumerate(got))
for op, want in ((dist.ReduceOp.SUM, n), (dist.ReduceOp.AVG, 1)):
    # All ranks have row 0, and each has another one twice.
    rows = torch.tensor([[0, r + 1, r + 1]])
    mine = torch.sparse_coo_tensor(rows, torch.ones(3, 2), (n + 1, 2))
    dist.all_reduce(mine, op)
    assert torch.equal(mine.to_dense()[:, 0], torch.tensor([n] + [2] * n) * want / n), op
refused(ValueError, "SUM and AVG only", dist.all_reduce, mine, dist.ReduceOp.MAX)

# A rank that waits for a late one gives up after the group's time-out, and may wait again.
if n > 1:
    group = dist.new_group(timeout=datetime.timedelta(seconds=0.2))
    store = dist.distributed_c10d._get_default_store()
    if r == n - 1:
        store.wait([f"rank {k} gave up" for k in range(n - 1)])
    several = [x.clone(), x.clone()]
    works = [dist.all_reduce(x.clone(), group=group, async_op=True),
             group.allreduce_coalesced(several),
             dist.barrier(group=group, async_op=True)]
    if r < n - 1:
        for work in works:
            refused(RuntimeError, " timeout of its group or of wait(), 0.2 s", work.wait)
            refused(RuntimeError, "wait(), 0.01 s", work.wait, datetime.timedelta(seconds=0.01))
            assert not work.is_completed()
        store.set(f"rank {r} gave up", "")
    for work in works:
        assert work.wait(datetime.timedelta(seconds=50)) and work.is_completed()
    assert all(torch.equal(mine, total) for mine in several)

# Messages in a circle, whose pairs all connect at once; then several of two tags.
if n > 1:
    before, behind = torch.zeros(3, 2), torch.zeros(3, 2)
    sent = [dist.isend(x, (r + k) % n, tag=5 + k) for k in (1, -1) for _ in range(3)]
    for _ in range(3):
        dist.recv(behind, (r + 1) % n, tag=4)
        dist.recv(before, (r - 1) % n, tag=6)
        assert torch.equal(behind, given((r + 1) % n)) and torch.equal(before, given((r - 1) % n))
    for work in sent:
        work.wait()
        assert work.is_completed()
    refused(NotImplementedError, "give recv its src", dist.recv, x)

# A group is known to those that are not of it, too, and may come again.
for ranks in [n - 1], sorted({0, n - 1}), list(range(n // 2 + 1)), sorted({0, n - 1}):
    group, mine = dist.new_group(ranks), x.clone()
    if r in ranks:
        dist.all_reduce(mine, group=group)
        assert torch.equal(mine, sum(given(k) for k in ranks))
        dist.broadcast(mine, ranks[-1], group=group)
refused(RuntimeError, "within the", dist.new_group, [n])

# PyTorch has all ranks wait for those that could not make a group: so none is made here.
for ranks, words in ([0, n], f"add_process_set([0, {n}])"), ([1, 0], "orders the ranks"):
    store = dist.HashStore()
    store.set("hvd.rank.1", str(ranks[1]))
    if r == ranks[0]:
        refused(NotImplementedError, words, hvd.distributed._process_set, store, 0, 2)


def train(model, ranks):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(4):
        for k in ranks:
            generator = torch.Generator().manual_seed(10 * step + k)
            data = torch.randn(8, 40, generator=generator)
            (model(data) ** 2).mean().div(len(ranks)).backward()
        optimizer.step()
        optimizer.zero_grad()
    return [p.detach() for p in model.parameters()]


def network(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(40, 500), torch.nn.ReLU(),
                               torch.nn.Linear(500, 3))


alone = train(network(0), everyone)
for hook, state in (None, None), (hvd.ddp_hook, None), (hvd.ddp_hook, hvd.Compression.bf16):
    model = DistributedDataParallel(network(r), bucket_cap_mb=0.01)
    if hook:
        model.register_comm_hook(state, hook)
    trained = train(model, [r])
    tolerance = 1e-2 if state else 1e-5
    assert all(torch.allclose(a, b, tolerance, tolerance) for a, b in zip(alone, trained)), hook
os.write(sys.stdout.fileno(), f"rank {r} of {n}: every group\n".encode())
dist.barrier()
hvd.shutdown()

# SPDX-License-Identifier: Apache-2.0
"""Everything of hvd.torch, on any number of ranks, against PyTorch itself."""
import os
import signal
import sys

import torch

sys.path.insert(0, sys.argv[1])
import hvd.torch as hvd

from refused import refused

# A set of all ranks is the global one.
alone = os.environ.get("OMPI_COMM_WORLD_SIZE", "1") == "1"
half = hvd.global_process_set if alone else hvd.ProcessSet([0])
hvd.init(process_sets=[] if alone else [half])
r, n = hvd.rank(), hvd.size()
everyone = range(n)
assert half.included() == (r == 0) and half.size() == 1 and half.process_set_id == (not alone)
assert hvd.global_process_set.ranks == list(everyone)


def given(rank, dtype=torch.float32):
    return (torch.arange(6).reshape(3, 2) % 5 + rank).to(dtype)


total = sum(given(k) for k in everyone)
for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
              torch.float32, torch.float64, torch.bfloat16):
    x = given(r, dtype)
    assert torch.equal(hvd.allreduce(x, op=hvd.Sum), total.to(dtype))
    assert hvd.allreduce_(x, op=hvd.Max) is x and torch.equal(x, given(n - 1, dtype))
    x = given(r, dtype)
    rows = hvd.allgather(x[:1 + r % 2], name="g")
    assert torch.equal(rows, torch.cat([given(k, dtype)[:1 + k % 2] for k in everyone]))
    assert torch.equal(hvd.broadcast(x, n - 1), given(n - 1, dtype))
    assert torch.equal(x, given(r, dtype))
    got, counts = hvd.alltoall(x.repeat(n, 1), splits=torch.IntTensor([3] * n))
    assert torch.equal(got, torch.cat([given(k, dtype) for k in everyone]))
    assert counts.dtype == torch.int32 and counts.tolist() == [3] * n
    share = hvd.reducescatter(x, op=hvd.Sum)
    start = sum(3 // n + (k < 3 % n) for k in range(r))
    assert torch.equal(share, total.to(dtype)[start:start + len(share)])
assert torch.equal(hvd.allreduce(torch.tensor([r == 0, True]), op=hvd.Min),
                   torch.tensor([n == 1, True]))

x = given(r)
assert torch.allclose(hvd.allreduce(x), total / n)
assert torch.allclose(hvd.allreduce(x, average=False), total)
for small in hvd.Compression.fp16, hvd.Compression.bf16:
    assert torch.equal(hvd.allreduce(x, compression=small, op=hvd.Sum), total)
assert torch.allclose(hvd.allreduce(x, prescale_factor=2, postscale_factor=.5), total / n)
handles = [hvd.allreduce_async(x + i, name=f"a{i}", op=hvd.Sum) for i in range(5)]
for i, handle in reversed(list(enumerate(handles))):
    assert hvd.poll(handle) in (True, False)
    assert torch.allclose(hvd.synchronize(handle), total + n * i)
    assert hvd.synchronize(handle) is None and hvd.poll(handle)
two = [x.clone(), x.double()]
assert [t.data_ptr() for t in hvd.grouped_allreduce_(two, op=hvd.Sum, name="g")] == \
    [t.data_ptr() for t in two]
assert torch.allclose(two[1], total.double())
assert torch.equal(hvd.grouped_allgather([x[:1], x])[0], torch.cat([given(k)[:1] for k in
                                                                    everyone]))
assert torch.equal(hvd.grouped_reducescatter([x], op=hvd.Sum)[0],
                   hvd.reducescatter(x, op=hvd.Sum))
sparse = torch.sparse_coo_tensor([[r, 1]], [[1.0, 2.0], [3.0, 4.0]], (n + 2, 2))
got = hvd.sparse_allreduce_async(sparse, "s", hvd.Average)().to_dense()
assert torch.allclose(got, hvd.allreduce(sparse.to_dense()))
if r == 0:
    assert torch.equal(hvd.allreduce(x, process_set=half), x)
else:
    refused(ValueError, "not a member", hvd.allreduce, x, process_set=half)
assert hvd.broadcast_object({"rank": r}, n - 1) == {"rank": n - 1}
assert hvd.allgather_object(r) == list(everyone)

# Mistakes.
refused(ValueError, "contiguous", hvd.allreduce, x.t())
refused(ValueError, "not supported", hvd.allreduce, torch.zeros(2, dtype=torch.complex64))
refused(ValueError, "supersedes", hvd.allreduce, x, average=True, op=hvd.Sum)
refused(ValueError, "int32", hvd.alltoall, x, torch.LongTensor([3] + [0] * (n - 1)))
refused(ValueError, "splits for", hvd.alltoall, x, [1] * (n + 1))
refused(ValueError, "a dict or a list", hvd.broadcast_parameters, iter([]), 0)
refused(ValueError, "not registered", hvd.allreduce, x, process_set=hvd.ProcessSet([0]))
if n > 1:
    refused(hvd.HorovodInternalError, "differs", hvd.allreduce, x[:2 + r % 2])
    again = hvd.allreduce_async(x, name="twice") if r == 0 else None
    if r == 0:
        refused(ValueError, "in flight", hvd.allreduce_async, x, name="twice")
    else:
        again = hvd.allreduce_async(x, name="twice")
        try:
            hvd.allreduce(x, name="twice")
        except (ValueError, hvd.HorovodInternalError):
            pass
    hvd.synchronize(again)

# Gradients.
weight = torch.arange(6.0).reshape(3, 2)


def gradient(function, tensor):
    tensor = tensor.clone().requires_grad_()
    result = function(tensor)
    torch.manual_seed(r)
    result.backward(torch.ones_like(result) * (r + 1))
    return tensor.grad


ranks = n * (n + 1) / 2
assert torch.allclose(gradient(lambda t: hvd.allreduce(t, op=hvd.Sum), x), x * 0 + ranks)
assert torch.allclose(gradient(lambda t: hvd.grouped_allreduce([t, t * 2])[1], x),
                      x * 0 + 2 * ranks / n)
assert torch.allclose(gradient(hvd.allgather, x[:1 + r % 2]), x[:1 + r % 2] * 0 + ranks / n)
assert torch.allclose(gradient(lambda t: hvd.grouped_allgather([t])[0], x), x * 0 + ranks / n)
assert torch.allclose(gradient(lambda t: hvd.broadcast(t, 0), x), x * 0 + ranks / n * (r == 0))
got = gradient(lambda t: hvd.alltoall(t, splits=[1] * n)[0], torch.ones(n + 1, 2))
assert got[:, 0].tolist() == [k + 1 for k in everyone] + [0]
for op, factor in (hvd.Sum, n), (hvd.Average, 1):
    got = gradient(lambda t: hvd.reducescatter(t, op=op, prescale_factor=2), torch.ones(n, 2))
    assert got[:, 0].tolist() == [2 * factor * (k + 1) for k in everyone]
    got = gradient(lambda t: hvd.grouped_reducescatter([t], op=op)[0], torch.ones(n, 2))
    assert got[:, 0].tolist() == [factor * (k + 1) for k in everyone]


# Training: the same as on one rank with all data.
def network():
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(40, 50), torch.nn.ReLU(), torch.nn.Linear(50, 3))


def data(rank, step):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(8, 40, generator=generator), torch.randn(8, 3, generator=generator)


def train(optimizer, model, ranks, passes=1, scale=1.0, clip=False):
    for step in range(0, 6, passes):
        for part in range(passes):
            for rank in ranks:
                x, y = data(rank, step + part)
                ((model(x) - y) ** 2).mean().mul(scale).backward()
        if clip:
            optimizer.synchronize()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            with optimizer.skip_synchronize():
                optimizer.step()
        else:
            optimizer.step()
        optimizer.zero_grad()


def same(one, other):
    return all(torch.allclose(a, b, 1e-4, 1e-6) for a, b in zip(one.parameters(),
                                                               other.parameters()))


for options, passes, clip in (
        (dict(), 1, False), (dict(backward_passes_per_step=2), 2, False),
        (dict(groups=2), 1, False), (dict(gradient_predivide_factor=2.0), 1, False),
        (dict(compression=hvd.Compression.none), 1, True), (dict(op=hvd.Sum), 1, False)):
    model, alone = network(), network()
    if r:
        for parameter in model.parameters():
            parameter.data.zero_()
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    assert same(model, alone)
    rate = 0.05 / (n if "op" in options else 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters(), **options)
    assert isinstance(optimizer, torch.optim.SGD)
    torch.optim.lr_scheduler.StepLR(optimizer, 100)
    train(optimizer, model, [r], passes, clip=clip)

    class Clipped(torch.optim.SGD):
        def step(self, closure=None):
            if clip:
                torch.nn.utils.clip_grad_norm_(alone.parameters(), 0.1)
            super().step(closure)

    train(Clipped(alone.parameters(), lr=0.05, momentum=0.9), alone, everyone, passes, 1 / n)
    assert same(model, alone), options

# Gradients that are somewhere else in the next step, or of which there are none.
model, alone = network(), network()
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.05))
plain = torch.optim.SGD(alone.parameters(), lr=0.05)
for step in range(8):
    for each, ranks in (model, [r]), (alone, everyone):
        for rank in ranks:
            x, y = data(rank, step)
            if step != 5:
                ((each(x) - y) ** 2).mean().div(len(ranks)).backward()
    optimizer.step(), plain.step()
    assert same(model, alone), step
    if step == 2:
        for p in model.parameters():
            p.grad = torch.zeros_like(p)
    else:
        optimizer.zero_grad(set_to_none=step % 2 == 0)
    plain.zero_grad()

# Adasum of what each rank's own optimizer would change, momentum included.
for passes, options in (1, {}), (2, dict(compression=hvd.Compression.fp16)):
    model, lone = network(), network()
    unused = torch.nn.Parameter(torch.ones(2))

    def wrapped(of):
        return torch.optim.SGD([dict(params=list(of.parameters())[:2], lr=0.02),
                                dict(params=list(of.parameters())[2:] + [unused], lr=0.05)],
                               lr=0.1, momentum=0.9)

    optimizer, plain = wrapped(model), wrapped(lone)
    optimizer = hvd.DistributedOptimizer(optimizer, op=hvd.Adasum,
                                         backward_passes_per_step=passes, **options)
    for step in range(4):
        for each in model, lone:
            for part in range(passes):
                x, y = data(r, step * passes + part)
                ((each(x) - y) ** 2).mean().backward()
        before = [p.detach().clone() for p in lone.parameters()]
        assert all(torch.equal(p, q) for p, q in zip(before, model.parameters()))
        assert optimizer.step() is None
        plain.step()
        for p, q, start in zip(lone.parameters(), model.parameters(), before):
            change = p.detach() - start
            together = hvd.allreduce(change, op=hvd.Adasum, **options)
            if n == 2:
                a, b = hvd.allgather(change.double().reshape(1, -1))
                dot, other = a @ b, b @ b
                together = ((1 - dot / (2 * (a @ a))) * a + (1 - dot / (2 * other)) * b)
                together = together.reshape(p.shape).float()
            assert torch.allclose(q - start, together, 1e-2 if options else 1e-3, 1e-4), passes
            p.data.copy_(q.detach())
        optimizer.zero_grad(), plain.zero_grad()
    assert (unused == 1).all() and same(model, lone)
    assert all(str(s) == str(hvd.broadcast_object(s)) for s in [model.state_dict()])
    if n > 1:
        refused(AssertionError, "not supported", optimizer.skip_synchronize)
        optimizer.synchronize()
        calls = []
        assert optimizer.step(lambda: calls.append(torch.is_grad_enabled()) or 5) == 5
        assert calls == [True]
        refused(ValueError, "closure", hvd.DistributedOptimizer,
                torch.optim.LBFGS(model.parameters()), op=hvd.Adasum)

# Gradients that are sparse, and parameters without a gradient.
for dense in False, True:
    table, model = torch.nn.Embedding(5, 3, sparse=True), network()
    hvd.broadcast_parameters(table.state_dict(), 0)
    before = table.weight.detach().clone()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(list(table.parameters()) + list(model.parameters()), lr=1.0),
        sparse_as_dense=dense)
    table(torch.tensor([r % 5, 4])).sum().backward()
    optimizer.step()
    want = before.clone()
    for k in everyone:
        want[k % 5] -= 1 / n
        want[4] -= 1 / n
    assert torch.allclose(table.weight, want, atol=1e-6)
    assert same(model, network())

# Misuse of the optimizer.
model = network()
plain = torch.optim.SGD(model.parameters(), lr=0.1)
refused(ValueError, "> 0", hvd.DistributedOptimizer, plain, backward_passes_per_step=0)
refused(ValueError, "predivide", hvd.DistributedOptimizer, plain, op=hvd.Sum,
        gradient_predivide_factor=2.0)
refused(ValueError, "tuples", hvd.DistributedOptimizer, plain, list(model.parameters()))
refused(ValueError, "unique", hvd.DistributedOptimizer, plain,
        [("p", p) for p in model.parameters()])
refused(ValueError, "not named", hvd.DistributedOptimizer, plain,
        list(model.named_parameters())[:1])
if n > 1:
    optimizer = hvd.DistributedOptimizer(plain, model.named_parameters())
    model(data(r, 0)[0]).sum().backward()
    refused(AssertionError, "race", optimizer.zero_grad)
    refused(AssertionError, "backward_passes_per_step",
            lambda: model(data(r, 0)[0]).sum().backward())
    optimizer.synchronize()

# A request that is kept from step to step fails as every other one does, and a signal
# ends the wait for it.
if n > 1:
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=0.0), [("w", weight)])
    for _ in range(3):
        weight.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    if r == 0:  # what the others have not submitted yet stays in flight
        handle = hvd.allreduce_async_(torch.ones(3), name="w")
        refused(ValueError, "in flight", lambda: weight.sum().backward())
    hvd.barrier()
    if r != 0:
        handle = hvd.allreduce_async_(torch.ones(3), name="w")
    hvd.synchronize(handle)
    if r != 0:  # these wait for what was refused there, and hear of it
        weight.sum().backward()
        refused(RuntimeError, "refused on rank 0", optimizer.synchronize)
    optimizer.step()
    optimizer.zero_grad()
    if r == 0:
        weight.sum().backward()
        rung = []
        signal.signal(signal.SIGALRM, lambda *_: rung.append(1) or 1 / 0)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        refused(ZeroDivisionError, "", optimizer.step)
        assert rung
    hvd.broadcast(torch.ones(1), 0, name="rung")
    if r != 0:
        weight.sum().backward()
    optimizer.step()
    assert torch.equal(weight.grad, torch.ones(3))

# The state of an optimizer.
for kind, options in ((torch.optim.Adam, dict(lr=0.1 + r)), (torch.optim.SGD, dict(lr=0.1)),
                      (torch.optim.RMSprop, dict(lr=0.1, momentum=0.5)),
                      (torch.optim.Adagrad, dict(lr=0.1, weight_decay=r * 0.5))):
    model = network()
    optimizer = kind(model.parameters(), **options)
    if r == n - 1:
        train(optimizer, model, [r])
    hvd.broadcast_optimizer_state(optimizer, n - 1)
    states = hvd.allgather_object(optimizer.state_dict())
    for state in states:
        assert str(state) == str(states[-1])
refused(ValueError, "LBFGS", hvd.broadcast_optimizer_state,
        torch.optim.LBFGS(model.parameters()), 0)

for _ in range(r):
    hvd.allreduce(torch.ones(2))
assert hvd.join() == n - 1
hvd.shutdown()
refused(ValueError, "not been initialized", hvd.rank)
os.write(sys.stdout.fileno(), f"rank {r} of {n}: every tensor\n".encode())

# SPDX-License-Identifier: Apache-2.0
"""SyncBatchNorm, on any number of ranks, against one BatchNorm over the joined batch."""
import os
import sys

import torch

sys.path.insert(0, sys.argv[1])
import hvd.torch as hvd

from refused import refused

hvd.init()
r, n = hvd.rank(), hvd.size()


def batch(rank, step, shape, dtype):
    """The ranks' batches have different lengths; those of rank 1 are empty at times."""
    rows = 0 if rank == 1 and step == 2 else 3 + 2 * rank + step
    generator = torch.Generator().manual_seed(100 * step + rank)
    values = torch.randn(rows, *shape, generator=generator, dtype=torch.float64)
    return (values * (rank + 1) + 50).to(dtype)


def close(one, other, dtype, what):
    error = 1e-10 if dtype == torch.float64 else 2e-3
    assert one.dtype == other.dtype, what
    assert torch.allclose(one.double(), other.double(), error, error), (what, one, other)


def alike(dtype, shape, kind, **options):
    """Trains for three steps and evaluates, beside PyTorch's own layer on all data."""
    ours, whole = hvd.SyncBatchNorm(shape[0], **options), kind(shape[0], **options)
    ours, whole = ours.to(dtype), whole.to(dtype)
    for layer in ours, whole:
        for i, parameter in enumerate(layer.parameters()):
            parameter.data += torch.arange(shape[0]) * 0.1 + i
    for step in range(3):
        parts = [batch(k, step, shape, dtype) for k in range(n)]
        lengths, own = [len(part) for part in parts], parts[r].clone().requires_grad_()
        joined = torch.cat(parts).requires_grad_()
        got, want = ours(own), whole(joined)
        close(got, want.split(lengths)[r], dtype, "output")
        for result, given in (got, own), (want, joined):
            (result ** 3 * (1 + given.detach() * 0.01)).sum().backward()
        close(own.grad, joined.grad.split(lengths)[r], dtype, "gradient")
    for a, b in zip(ours.parameters(), whole.parameters()):
        close(hvd.allreduce(a.grad, op=hvd.Sum), b.grad, dtype, "gradient of a parameter")
    for a, b in zip(ours.buffers(), whole.buffers()):
        close(a, b, dtype, "running statistics")
        assert all(torch.equal(a, other) for other in hvd.allgather_object(a))
    if ours.running_mean is not None:
        ours.eval(), whole.eval()
        own = batch(0, r, shape, dtype)
        close(ours(own), whole(own), dtype, "evaluation")


for dtype in torch.float32, torch.float64:
    alike(dtype, (4, 5, 3), torch.nn.BatchNorm2d)
alike(torch.float64, (3,), torch.nn.BatchNorm1d, momentum=None)
alike(torch.float64, (2, 3), torch.nn.BatchNorm1d, affine=False, eps=0.1)
alike(torch.float64, (3, 2, 2, 2), torch.nn.BatchNorm3d, track_running_stats=False)

# Sums of squares would have lost the variance of values like these.
far = torch.tensor([[1e8], [1e8 + 1]], dtype=torch.float64)
assert torch.allclose(hvd.SyncBatchNorm(1).double()(far).abs(), torch.ones(1).double(), 1e-4)
small = torch.randn(4, 3).bfloat16()
assert hvd.SyncBatchNorm(3)(small).dtype == torch.bfloat16

net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2),
                          torch.nn.Sequential(torch.nn.BatchNorm2d(2, affine=False))).eval()
state, parameters = net.state_dict(), list(net.parameters())
net = hvd.SyncBatchNorm.convert_sync_batchnorm(net)
assert all(isinstance(each, hvd.SyncBatchNorm) for each in (net[1], net[2][0]))
assert net.state_dict().keys() == state.keys() and not net[1].training
assert all(a is b for a, b in zip(parameters, net.parameters()))

refused(ValueError, "at least 2D", hvd.SyncBatchNorm(3), torch.zeros(3))
refused(ValueError, "3 channels", hvd.SyncBatchNorm(3), torch.zeros(2, 4))
refused(ValueError, "more than 1 value", hvd.SyncBatchNorm(3), torch.zeros(int(r == 0), 3))
hvd.shutdown()
os.write(sys.stdout.fileno(), f"rank {r} of {n}: every layer\n".encode())

# SPDX-License-Identifier: Apache-2.0
"""Processes that no launcher of MPI has started, which torch.distributed tells of each
other by RANK, WORLD_SIZE and an address of a store, as those of torchrun are."""
import os
import sys

import torch
import torch.distributed as dist

sys.path.insert(0, sys.argv[1])
import hvd.torch as hvd

dist.init_process_group("hvd")
r, n = dist.get_rank(), dist.get_world_size()
assert (hvd.rank(), hvd.size()) == (r, n) == (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
assert "HVD_JOB_KEY_FD" not in os.environ
x = torch.full((100000,), float(r + 1))
dist.all_reduce(x)
assert (x == n * (n + 1) / 2).all()
group = dist.new_group(sorted({0, n - 1}))
if r in (0, n - 1) and n > 1:
    other = n - 1 - r
    dist.isend(x + r, other)
    dist.recv(x, other)
    dist.all_reduce(x, group=group)
    assert (x == n * (n + 1) + n - 1).all()
os.write(sys.stdout.fileno(), f"rank {r} of {n}: every meeting\n".encode())
dist.destroy_process_group()

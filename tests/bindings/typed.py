# SPDX-License-Identifier: Apache-2.0
"""
A training with hvd.torch that mypy accepts with --strict, but for the lines that say which
mistake it finds in them.
"""
from typing import Any

import torch

import hvd.torch as hvd

first = hvd.ProcessSet([0])
hvd.init(process_sets="dynamic")
if hvd.size() > 1:
    hvd.add_process_set(first)
model: torch.nn.Module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
model = hvd.SyncBatchNorm.convert_sync_batchnorm(model)
sgd = torch.optim.SGD(model.parameters(), lr=0.01)
optimizer = hvd.DistributedOptimizer(sgd, model.named_parameters(), hvd.Compression.fp16,
                                     op=hvd.Average, process_set=hvd.global_process_set)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)

rows: torch.Tensor = hvd.alltoall(torch.ones(hvd.size()))
rows, counts = hvd.alltoall(torch.ones(hvd.size()), [1] * hvd.size())
total: torch.Tensor = hvd.synchronize(hvd.allreduce_async(rows, name="rows", op=hvd.Sum))
both: list[torch.Tensor] = hvd.grouped_allreduce([rows, counts])
seed: int = hvd.broadcast_object({"seed": 1})["seed"]
sizes: list[int] = hvd.allgather_object(len(rows))
data: Any = list(range(8))
sampler = hvd.elastic.ElasticSampler(data, seed=seed)


@hvd.elastic.run
def train(state: hvd.elastic.TorchState, epochs: int) -> float:
    mean = 0.0
    while state.epoch < epochs:
        for batch, indices in enumerate(torch.utils.data.DataLoader(data, 4, sampler=sampler)):
            optimizer.zero_grad()
            loss = model(torch.randn(len(indices), 4)).square().mean()
            loss.backward()
            optimizer.step()
            sampler.record_batch(batch, len(indices))
            mean = float(hvd.allreduce(loss.detach()))
        state.epoch += 1
        state.commit()
    return mean


last: float = train(hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=0), 2)
try:
    hvd.broadcast(total, root_rank=hvd.size())
except (ValueError, hvd.HorovodInternalError) as error:
    print(error)


def mistakes() -> None:
    hvd.allreduce([1, 2])  # type: ignore[arg-type]
    hvd.allreduce(total, operation=hvd.Sum)  # type: ignore[call-arg]
    hvd.allgather(total).shape.rows  # type: ignore[attr-defined]
    train(model, 2)  # type: ignore[arg-type]
    hvd.synchronise(1)  # type: ignore[attr-defined]
    first.size() + 1  # type: ignore[operator]

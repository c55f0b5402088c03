# SPDX-License-Identifier: Apache-2.0
"""
Trains in PyTorch through the death of the last rank, which comes back where the launcher
starts it again. The weights count how often each index of the data was used: once in each
epoch, whatever has happened.
"""
import os
import signal
import sys
import time

import torch

sys.path.insert(0, sys.argv[1])
import hvd.torch as hvd
from hvd import exclude

EPOCHS, INDICES = 3, 24
comes_back = "TF_CONFIG" in os.environ
hvd.init()
size, sizes, calls = hvd.size(), [], []


def copies():
    """Attributes, copies and what goes back to them, without other ranks."""
    layer = torch.nn.Linear(3, 2)
    adam = torch.optim.Adam(layer.parameters(), lr=0.1)
    state = hvd.elastic.TorchState(layer, adam, batch=1, other=torch.nn.Linear(1, 1))

    def step():
        layer(torch.ones(1, 3)).sum().backward()
        adam.step()
        return str([p.tolist() for p in layer.parameters()]) + str(adam.state_dict())

    step()
    state.batch = 5
    state.save()
    after = step()
    state.batch = 6
    for _ in range(2):
        state.restore()
        layer.zero_grad()
        layer(torch.ones(1, 3)).sum().backward()
        assert state.batch == 5 and step() == after
    state.model = torch.nn.Linear(3, 2)
    want = state.model.weight.tolist()
    state.model.weight.data.zero_()
    state.restore()
    assert state.model.weight.tolist() == want and state.model is not layer
    sampler = hvd.elastic.ElasticSampler(range(2), shuffle=False)
    sampler.num_replicas, sampler.total_size, sampler.num_samples = 5, 5, 1
    sampler.rank = 4
    assert list(sampler) == [0]
    sampler = hvd.elastic.ElasticSampler(range(7), seed=3)
    assert sorted(sampler.remaining_indices) == list(range(7)) != sampler.remaining_indices
    sampler.load_state_dict({"epoch": 2, "processed_num": 7})
    assert list(sampler) == [] and len(sampler) == 0


def train(state):
    calls.append(hvd.size())
    while state.epoch < EPOCHS:
        for number, index in enumerate(state.sampler):
            done = state.sampler.processed_num
            if size > 1 and state.epoch == 1:
                if done == 3 * size and hvd.rank() == size - 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                while done == 12 and hvd.size() < size and comes_back:
                    state.check_host_updates()
                    time.sleep(0.05)
            state.model.weight[0, index].backward()
            state.optimizer.step()
            state.optimizer.zero_grad()
            state.sampler.record_batch(number, 1)
            state.batches += 1
            if state.batches % 2 == 0:
                state.commit()
        state.epoch += 1
        state.sampler.set_epoch(state.epoch)
        state.commit()
    return "trained"


if size == 1:
    copies()
model = torch.nn.Linear(INDICES, 60)
model.weight.data.fill_(hvd.rank())
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), op=hvd.Sum,
                                     named_parameters=model.named_parameters())
state = hvd.elastic.TorchState(model, optimizer, epoch=0, batches=0,
                               sampler=hvd.elastic.ElasticSampler(range(INDICES)))
state.register_reset_callbacks([lambda: sizes.append(hvd.size())])
assert hvd.elastic.run(train)(state) == "trained"
assert (model.weight[0] == -EPOCHS).all() and (model.weight[1:] == 0).all(), model.weight[0]
if size > 1 and len(calls) > 1:
    assert sizes == ([size - 1, size] if comes_back else [size - 1]), sizes
    assert calls == [size] + sizes, calls

# A mistake would come again: it is not taken for a loss.
if hvd.size() > 1:
    try:
        hvd.elastic.run(lambda _: hvd.allreduce(torch.ones(2 + hvd.rank() % 2), name="x"))(state)
        raise AssertionError("shapes that differ were taken")
    except hvd.HorovodInternalError as error:
        assert "differs" in str(error), error

# One that the others have given up is told so: there is no next world for it.
if hvd.size() > 1:
    last, tries = hvd.rank() == hvd.size() - 1, []

    def lose(_):
        tries.append(hvd.size())
        if len(tries) == 1:
            exclude(hvd.size() - 1)
            raise hvd.HorovodInternalError("a rank is lost")
        return "gone on"

    try:
        assert hvd.elastic.run(lose)(state) == "gone on" and not last, tries
    except hvd.HorovodInternalError as error:
        assert last and "excluded by hvd_exclude" in str(error), error
print("every elastic", flush=True)
hvd.shutdown()

# SPDX-License-Identifier: Apache-2.0
"""A program for Horovod, started by mpi-launch.sh --horovod, finds the names it uses."""
import horovod
import horovod.tensorflow
import horovod.torch as hvd
import torch
from horovod.common.elastic import ObjectState, run_fn
from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt
from horovod.common.process_sets import global_process_set
from horovod.common.util import (_cache, env, extension_available, gloo_built, mpi_built,
                                 split_list)
from horovod.runner.util.threads import in_thread
from horovod.torch.compression import Compression
from horovod.torch.elastic import run
from horovod.torch.elastic.sampler import ElasticSampler
from horovod.torch.elastic.state import TorchState
from horovod.torch.functions import broadcast_parameters
from horovod.torch.mpi_ops import synchronize
from horovod.torch.optimizer import DistributedOptimizer
from horovod.torch.sync_batch_norm import SyncBatchNorm

assert horovod.__version__ == "0.28.1"
assert mpi_built() and not gloo_built() and extension_available("torch")
assert not extension_available("mxnet")
assert split_list(list(range(5)), 2) == [[0, 1], [2, 3, 4]]

calls = []
counted = _cache(lambda x: calls.append(x) or len(calls))
assert counted(7) == counted(7) == 1 and calls == [7]

import os
with env(HVD_OF_A_TEST="1"):
    assert os.environ["HVD_OF_A_TEST"] == "1"
    with env(HVD_OF_A_TEST=None):
        assert "HVD_OF_A_TEST" not in os.environ
assert "HVD_OF_A_TEST" not in os.environ
seen = []
in_thread(seen.append, (3,)).join()
assert seen == [3]

hvd.init()
try:
    horovod.tensorflow.allreduce
    raise AssertionError("there is an operation for TensorFlow")
except AttributeError as error:
    assert "no operations for TensorFlow" in str(error)
assert hvd.global_process_set is global_process_set
assert hvd.elastic.TorchState is TorchState and issubclass(TorchState, ObjectState)
assert hvd.elastic.run is run and run_fn and hvd.elastic.ElasticSampler is ElasticSampler
assert hvd.SyncBatchNorm is SyncBatchNorm and issubclass(HostsUpdatedInterrupt, RuntimeError)
assert hvd.Compression is Compression and hvd.broadcast_parameters is broadcast_parameters
n, model = hvd.size(), torch.nn.Linear(40, 30)
optimizer = DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0),
                                 named_parameters=model.named_parameters())
broadcast_parameters(model.state_dict(), root_rank=0)
before = model.weight.detach().clone()
(model(torch.ones(1, 40)) * (hvd.rank() + 1)).sum().backward()
optimizer.step()
assert torch.allclose(before - model.weight, torch.full((30, 40), (n + 1) / 2), atol=1e-5)
assert synchronize(hvd.allreduce_async(torch.ones(2), op=hvd.Sum)).tolist() == [n, n]
try:
    hvd.allreduce(torch.ones(2 + hvd.rank()), name="of different shapes")
    assert n == 1
except HorovodInternalError as error:
    assert isinstance(error, RuntimeError) and "of different shapes" in str(error)

# A list with a set that is there already is refused, and another one is taken.
def again(*lists):
    sets = [hvd.ProcessSet(ranks) for ranks in lists]
    try:
        hvd.init(process_sets=sets)
        return [each.process_set_id for each in sets]
    except ValueError as error:
        assert "given twice" in str(error), error
        assert hvd.is_initialized()
        return None


if n > 1:
    assert again([0], list(range(1, n)), [0]) is None
    assert again([0], reversed(range(1, n))) == [1, 2] == again([0], range(1, n))
    assert again(range(n)) is None
    from mpi4py import MPI
    half = MPI.COMM_WORLD.Split(hvd.rank() % 2, hvd.rank())
    assert again(half) == [(1 if n == 2 else 3) + hvd.rank() % 2]
    assert again(half, range(n)) is None and again(half.Dup(), half) is None
    ids = hvd.mpi_ops._basics._get_process_set_ids_and_ranks()
    assert ids[0] == list(range(n)) == hvd.global_process_set.ranks
    half.Free()
    try:
        hvd.init(process_sets=[hvd.ProcessSet([hvd.rank()])])
        raise AssertionError("sets that differ were taken")
    except ValueError as error:
        assert "different process sets" in str(error)
try:
    hvd.ProcessSet([0.5])
    raise AssertionError("half a rank was taken")
except ValueError as error:
    assert "integers" in str(error)
print(f"rank {hvd.rank()} of {n}: every name", flush=True)
hvd.shutdown()

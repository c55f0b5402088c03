# SPDX-License-Identifier: Apache-2.0
"""Trains through the death of a rank, or with LOSS=exit through its exit, with a state
of numpy arrays, and excludes one that keeps the others waiting."""
import os
import signal
import sys
import time

import numpy as np

sys.path.insert(0, sys.argv[1])
import hvd

hvd.init()
first, size = hvd.rank(), hvd.size()
weights, step, own = np.zeros(1000), np.zeros(1, np.int64), np.full(1, first)
resets = []
hvd.state_register("weights", weights)
hvd.state_register("step", step)
hvd.state_register("own", own, per_rank=True)
for wrong in [1, 2], np.zeros((4, 4))[:, 1]:
    try:
        hvd.state_register("wrong", wrong)
        raise SystemExit("a piece that is no array was taken")
    except TypeError:
        pass


def train():
    while step[0] < 40:
        if first == size - 1 and size > 1 and step[0] == 17:
            if os.environ.get("LOSS") == "exit":
                sys.exit("a mistake of the program")
            os.kill(os.getpid(), signal.SIGKILL)
        weights[:] += hvd.allreduce(np.full(1000, 1.0))
        step[0] += 1
        if step[0] % 10 == 0:
            hvd.commit()
        elif step[0] % 10 == 3:
            hvd.commit_start()
            hvd.commit_wait()
    return "trained"


assert hvd.elastic_run(train, lambda: resets.append(int(step[0]))) == "trained"
assert (weights == 40).all() and own[0] == first, (weights, own)
assert resets == ([13] if size > 1 else []), resets
weights[:] = 0
assert hvd.restore() and (weights == 40).all()
hvd.state_unregister("own")


def drop(rank, seconds, busy, median):
    assert 0 < median <= busy <= seconds * 1.5, (seconds, busy, median)
    slow.append(rank)
    hvd.exclude(rank)


def unheard(rank, seconds, busy, median):
    heard.append(rank)  # what it raised would go no further


def wait_for_first():
    """Rank 0 is slow, until it is excluded."""
    for _ in range(400):
        if hvd.rank() == 0:
            time.sleep(0.02)
        hvd.barrier()
        hvd.commit()
    raise SystemExit("rank 0 was not excluded")


slow, heard = [], []
hvd.dismiss_spares()
for function in unheard, drop:
    hvd.on_straggler(function)
hvd.off_straggler(unheard)
try:
    hvd.off_straggler(unheard)
    raise SystemExit("a function was taken back twice")
except ValueError:
    pass
try:
    wait_for_first() if size > 1 else hvd.exclude(0)
except hvd.Error as error:
    assert error.status == (hvd.Status.LOST if size > 1 else hvd.Status.UNSUPPORTED), error
assert not heard, "a function that was taken back was called"
if size > 1:
    assert slow == [0], slow
    try:
        hvd.elastic_run(lambda: hvd.barrier())  # pylint: disable=unnecessary-lambda
        assert first > 0 and hvd.size() == size - 2
    except hvd.Error as error:
        assert first == 0 and "excluded" in str(error), error
print("every loss", flush=True)
hvd.shutdown()

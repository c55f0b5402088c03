# SPDX-License-Identifier: Apache-2.0
"""Waits let other threads run, and signals be handled, at most 0.1 s after they came.
The last rank is late, until the others tell it that they are through."""
import os
import signal
import sys
import threading
import time

import numpy as np

sys.path.insert(0, sys.argv[1])
import hvd

hvd.init()
r, n = hvd.rank(), hvd.size()
x = np.ones(4)


def interrupted(wait):
    """Calls wait, sends this process SIGINT 0.2 s later, and returns how long after
    that the wait has ended."""
    sent = []

    def send():
        time.sleep(0.2)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        wait()
    except KeyboardInterrupt:
        return time.monotonic() - sent[0]
    finally:
        thread.join()
    raise AssertionError("the wait was not interrupted")


if r < n - 1:
    # On a busy machine one wait may take longer for other reasons: of five, none.
    ticks, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            ticks[0] += 1
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    late = hvd.allreduce_async(x, name="late", op=hvd.Sum)
    assert min(interrupted(late.wait) for _ in range(5)) < 0.1
    blocked = np.ones(4)
    assert interrupted(lambda: hvd.allreduce(blocked, blocked, name="blocked")) < 5
    stop.set()
    counter.join()
    assert ticks[0] > 100, ticks
    seen = []
    signal.signal(signal.SIGUSR1, lambda *_: seen.append(late.poll()))
    threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
    interrupted(late.wait)  # not by the handler that raises nothing
    assert seen == [False]
    hvd.allreduce(x, name="through")
    assert late.wait().tolist() == [n] * 4
else:
    hvd.allreduce(x, name="through")
    assert hvd.allreduce(x, name="late", op=hvd.Sum).tolist() == [n] * 4
    hvd.allreduce(np.ones(4), name="blocked")
hvd.barrier()
if r < n - 1:
    assert (blocked == 1).all()  # it went on
hvd.shutdown()
os.write(sys.stdout.fileno(), f"rank {r} of {n}: every signal\n".encode())

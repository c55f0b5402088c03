# SPDX-License-Identifier: Apache-2.0
"""
Futures of PyTorch that are set when a request is done. PyTorch waits for them in C++,
where it does not move this library's requests; so a thread waits for the requests, in
the order in which they were begun. While it waits it does not hold the interpreter's
lock.
"""
import queue
import threading
import warnings

import torch

_waiting, _started = queue.SimpleQueue(), threading.Lock()
_thread = None


def _run():
    while True:
        future, finish = _waiting.get()
        try:
            future.set_result(finish())
        except Exception as error:  # whatever waiting for a request raises
            # PyTorch says only that the result is no tensor.
            warnings.warn(f"a collective of torch.distributed failed: {error}")
            future.set_exception(error)
        del future, finish


def future_of(finish):
    """Returns a future of what a function returns that waits for a request."""
    global _thread
    with _started:
        if _thread is None:
            _thread = threading.Thread(target=_run, name="hvd-later", daemon=True)
            _thread.start()
    future = torch.futures.Future()
    _waiting.put((future, finish))
    return future

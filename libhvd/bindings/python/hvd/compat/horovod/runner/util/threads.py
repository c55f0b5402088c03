# SPDX-License-Identifier: Apache-2.0
"""Threads, as programs for Horovod start them."""
import threading


def in_thread(target, args=(), name=None, daemon=True, silent=False):
    """Runs a function on a thread of its own, and returns the thread. silent: its
    exceptions are not printed."""
    def run():
        try:
            target(*args)
        except Exception:
            if not silent:
                raise
    if not isinstance(args, tuple):
        raise ValueError("args must be a tuple, not {}".format(type(args)))
    thread = threading.Thread(target=run, name=name, daemon=daemon)
    thread.start()
    return thread

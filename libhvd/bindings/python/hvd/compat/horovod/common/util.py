# SPDX-License-Identifier: Apache-2.0
"""What programs ask of horovod.common.util: what is built in, and small helpers. To
import it starts nothing."""
import contextlib
import functools
import importlib.util
import os


def _cache(function):
    """Has a function compute its value once for the same arguments."""
    return functools.lru_cache(maxsize=None)(function)


def _always(value, name):
    def answer(verbose=False):
        return value
    answer.__name__ = name
    answer.__doc__ = f"Returns {value}."
    return answer


mpi_built = _always(True, "mpi_built")
gloo_built, nccl_built, ddl_built, ccl_built, cuda_built, rocm_built = (
    _always(False, name) for name in ("gloo_built", "nccl_built", "ddl_built", "ccl_built",
                                      "cuda_built", "rocm_built"))


def extension_available(ext_base_name, verbose=False):
    """Returns whether tensors of a framework can be used: those of PyTorch, if it is
    installed."""
    return ext_base_name == "torch" and importlib.util.find_spec("torch") is not None


def gpu_available(ext_base_name, verbose=False):
    """Returns False: tensors are in this machine's memory."""
    return False


@contextlib.contextmanager
def env(**variables):
    """Sets environment variables, or removes those that are None, as long as the block
    runs."""
    before = {name: os.environ.get(name) for name in variables}
    try:
        _set(variables)
        yield
    finally:
        _set(before)


def _set(variables):
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def split_list(items, n):
    """Divides a list into n parts whose lengths differ by one at most."""
    edges = [i * len(items) // n for i in range(n + 1)]
    return [items[a:b] for a, b in zip(edges, edges[1:])]

# SPDX-License-Identifier: Apache-2.0
"""malloc keeps freed memory once a training begins, and only then, and not against the
user's settings. CASES says what begins it: each case has a process of its own, made by
fork of one that has imported PyTorch, which takes longer than all of them."""
import ctypes
import os
import sys

import torch

sys.path.insert(0, sys.argv[1])
import hvd.torch as hvd
from hvd.torch import _memory

from refused import refused

LARGE = 2**26


class Counts(ctypes.Structure):
    """The counts that mallinfo2 returns."""
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost")]


def counts():
    mallinfo2 = ctypes.CDLL("libc.so.6").mallinfo2
    mallinfo2.restype = Counts
    return mallinfo2()


def keeps():
    """Returns whether a large block comes from glibc's heap, and whether that stays as
    large as it was when the block has been freed."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    before = counts()
    block = libc.malloc(LARGE)
    during = counts()
    libc.free(block)
    return (during.hblkhd == before.hblkhd and during.arena >= LARGE
            and counts().arena >= during.arena)


def optimizer():
    hvd.DistributedOptimizer(torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0))


def group(backend="hvd"):
    torch.distributed.init_process_group(backend, f"file://{os.environ['STORE']}.{backend}", rank=0,
                                         world_size=1)


def hook():
    group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    model.register_comm_hook(None, hvd.ddp_hook)
    model(torch.ones(1, 2)).sum().backward()


def is_wanted(setting):
    """Returns what a setting of the user means."""
    name, _, value = setting.partition("=")
    os.environ[name] = value
    try:
        return _memory._is_wanted()
    finally:
        del os.environ[name]


def settings():
    for setting in ("HVD_TORCH_KEEP_MEMORY=0", "HVD_TORCH_KEEP_MEMORY=Off",
                    "MALLOC_TRIM_THRESHOLD_=131072", "MALLOC_MMAP_THRESHOLD_=1048576",
                    "MALLOC_TOP_PAD_=131072", "MALLOC_MMAP_MAX_=9",
                    "GLIBC_TUNABLES=glibc.malloc.tcache_count=5:glibc.malloc.top_pad=131072"):
        assert not is_wanted(setting), setting
    for setting in ("HVD_TORCH_KEEP_MEMORY=", "HVD_TORCH_KEEP_MEMORY=on", "MALLOC_ARENA_MAX=2",
                    "GLIBC_TUNABLES=glibc.malloc.tcache_count=5:glibc.malloc.hugetlb=1"):
        assert is_wanted(setting), setting
    refused(ValueError, "HVD_TORCH_KEEP_MEMORY is '2', neither yes (1, on, true, yes) nor no",
            is_wanted, "HVD_TORCH_KEEP_MEMORY=2")


def run(case):
    hvd.init()
    assert not keeps()  # neither the import nor init() changes anything
    if case == "settings":
        settings()
    elif case == "unwanted":
        if "LD_PRELOAD" not in os.environ:
            os.environ["HVD_TORCH_KEEP_MEMORY"] = "no"
        optimizer()
        assert not keeps() and not _memory.keep()
    else:
        {"optimizer": optimizer, "group": group, "hook": hook}[case]()
        assert keeps()
    os.write(1, b"every block\n")


for case in os.environ["CASES"].split():
    child = os.fork()
    if child == 0:
        run(case)
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0, case

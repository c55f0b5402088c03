# SPDX-License-Identifier: Apache-2.0
"""
Starts the library for a group of torch.distributed.

Under mpirun and with TF_CONFIG it starts as everywhere. Processes that torchrun,
torch.multiprocessing or a script started know of each other only what the store of the
group tells: through it they exchange addresses, and make a cluster of them
(docs/CLUSTERS.md).
"""
import contextlib
import ipaddress
import os
import random
import secrets
import socket

import hvd

from ._basics import init, is_initialized

# Variables by which a launcher tells how many processes it has started.
_COUNTS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
_KEYS = ("HVD_JOB_KEY_FILE", "HVD_JOB_KEY_FD")


def start(store, rank, size):
    """Starts the library, unless it runs, as that rank of so many."""
    if is_initialized():
        return
    counts = [os.environ[name] for name in _COUNTS if name in os.environ]
    if size == 1 or "TF_CONFIG" in os.environ or str(size) in counts or "PMIX_RANK" in os.environ:
        init()
    else:
        _start_cluster(store, rank, size)


def _start_cluster(store, rank, size):
    machines = _exchange(store, "machine", rank, size, _machine())
    several = len(set(machines)) > 1
    with _reserved(own_address() if several else "127.0.0.1") as address:
        workers = _exchange(store, "address", rank, size, address)
    cluster = hvd.Cluster({"cluster": {"worker": workers},
                           "task": {"type": "worker", "index": rank}})
    with _job_key(store, rank) if several else contextlib.nullcontext():
        init(cluster=cluster)


def _exchange(store, name, rank, size, value):
    """Returns the values of all ranks, in their order."""
    store.set(f"hvd.{name}.{rank}", value)
    return [store.get(f"hvd.{name}.{i}").decode() for i in range(size)]


def _machine():
    """Returns a text that processes of one machine have in common: containers of one
    machine do not, if they have networks of their own."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return f"{file.read().strip()} {os.stat('/proc/self/ns/net').st_ino}"


def own_address():
    """Returns the address under which other hosts reach this one: that from which it
    reaches rank 0's host, which MASTER_ADDR names."""
    master = os.environ.get("MASTER_ADDR", socket.gethostname())
    family, _, _, _, target = socket.getaddrinfo(master, 1, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(target)
        own = probe.getsockname()[0]
    if not ipaddress.ip_address(own).is_loopback:
        return own
    # This is rank 0's host, and knows that name as an address of the loopback interface.
    with contextlib.suppress(OSError):
        for *_, target in socket.getaddrinfo(socket.gethostname(), 1, family):
            if not ipaddress.ip_address(target[0]).is_loopback:
                return target[0]
    return own


@contextlib.contextmanager
def _reserved(host):
    """Gives "host:port", with a port that no other process of this machine takes before
    all ranks have theirs. It is below those that the kernel gives to connections."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first = int(file.read().split()[0])
    ports = range(10000, first) if first > 12000 else range(10000, 32768)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as holder:
        for _ in range(1000):
            port = random.SystemRandom().choice(ports)
            with contextlib.suppress(OSError):
                holder.bind(("", port))
                yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                return
    raise OSError("no port is free for the backend hvd")


@contextlib.contextmanager
def _job_key(store, rank):
    """Hosts prove to each other that they are of the job by a key, which rank 0 makes
    unless the user has given one."""
    if any(name in os.environ for name in _KEYS):
        yield
        return
    if rank == 0:
        store.set("hvd.key", secrets.token_hex(32))
    descriptor = os.memfd_create("hvd-job-key", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, store.get("hvd.key"))
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.environ["HVD_JOB_KEY_FD"] = str(descriptor)
        yield
    finally:
        os.environ.pop("HVD_JOB_KEY_FD", None)
        os.close(descriptor)

# SPDX-License-Identifier: Apache-2.0
"""hvd for Python: ctypes and numpy, nothing else.

    import hvd, numpy as np
    hvd.init()
    mean = hvd.allreduce(np.arange(4.0), name="x")
    total = hvd.allreduce(np.arange(4.0), op="sum")
    hvd.shutdown()

Arrays must be C-contiguous and of this machine's byte order; results are new
arrays unless out= is given. bfloat16 has no numpy type: pass uint16 arrays and
dtype="bfloat16". Reductions average unless op= says otherwise. An argument that cannot be meant raises TypeError or
ValueError; every other failure raises Error, whose text names the ranks and
the tensor, and whose status is one of the HVD_ERR_* of hvd.h. An asynchronous
call returns a Handle; wait() gives the result. Its arrays are kept alive until
then, whether the Handle is or not.

The library is HVD_LIBRARY, or libhvd.so.0 beside this file, in .., ../lib,
../../build/lib, or where the system finds it.
"""
import atexit
import ctypes as C
import json
import operator
import os
import pickle

import numpy as np

OPS = {"average": 0, "sum": 1, "adasum": 2, "min": 3, "max": 4, "product": 5}
COMPRESSIONS = {"none": 0, "fp16": 1, "bf16": 2, "topk": 3}
_KINDS = {"allreduce": 0, "allgather": 1, "broadcast": 2, "join": 3, "alltoall": 5,
          "barrier": 6, "reducescatter": 7, "gather": 8, "reduce": 9}
_DTYPES = {"uint8": 0, "int8": 1, "uint16": 2, "int16": 3, "int32": 4, "int64": 5,
           "float16": 6, "float32": 7, "float64": 8, "bool": 9, "bfloat16": 10}
OPTIMIZERS = {"sgd": 0, "momentum": 1, "adam": 2, "none": 3, "nesterov": 4, "adamw": 5, "lamb": 6,
              "lion": 7, "rmsprop": 8, "adagrad": 9, "adadelta": 10, "lars": 11}
_NAMES = {number: name for name, number in _DTYPES.items()}
AVERAGE_CONTRIBUTORS = 1
_CALLBACK = C.CFUNCTYPE(None, C.c_void_p, C.c_int)


class Error(RuntimeError):
    """A call failed; status is the HVD_ERR_*."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class _Request(C.Structure):
    _fields_ = [("size", C.c_uint32), ("kind", C.c_int32), ("dtype", C.c_int32),
                ("op", C.c_int32), ("root", C.c_int32), ("ndim", C.c_int32),
                ("shape", C.POINTER(C.c_int64)), ("name", C.c_char_p),
                ("input", C.c_void_p), ("output", C.c_void_p),
                ("prescale", C.c_double), ("postscale", C.c_double),
                ("callback", _CALLBACK), ("callback_context", C.c_void_p),
                ("process_set", C.c_int32), ("priority", C.c_int32),
                ("flags", C.c_int32), ("compression", C.c_int32),
                ("capacity", C.c_int64), ("splits", C.POINTER(C.c_int64)),
                ("counts", C.POINTER(C.c_int64))]


class _Tensor(C.Structure):
    _fields_ = [("size", C.c_uint32), ("dtype", C.c_int32), ("ndim", C.c_int32),
                ("reserved", C.c_int32), ("shape", C.c_int64 * 16),
                ("data", C.c_void_p)]


class _Options(C.Structure):
    _fields_ = [("size", C.c_uint32), ("nprocess_sets", C.c_int32),
                ("process_set_sizes", C.POINTER(C.c_int32)),
                ("process_set_ranks", C.POINTER(C.c_int32))]


_MAX = C.CFUNCTYPE(C.c_int64, C.c_void_p, C.c_int64)
_ENCODE = C.CFUNCTYPE(C.c_int64, C.c_void_p, C.c_void_p, C.POINTER(C.c_float),
                      C.c_int64, C.c_void_p)
_ADD = C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_void_p, C.c_int64,
                   C.POINTER(C.c_float), C.c_int64)


class _Compressor(C.Structure):
    _fields_ = [("size", C.c_uint32), ("reserved", C.c_int32), ("name", C.c_char_p),
                ("context", C.c_void_p), ("max_bytes", _MAX), ("state_bytes", _MAX),
                ("encode", _ENCODE), ("add", _ADD)]


class _Strategy_Options(C.Structure):
    _fields_ = [("size", C.c_uint32), ("optimizer", C.c_int32),
                ("learning_rate", C.c_double), ("momentum", C.c_double),
                ("beta1", C.c_double), ("beta2", C.c_double), ("epsilon", C.c_double),
                ("serial", C.c_int32), ("compression", C.c_int32),
                ("updated", C.c_void_p), ("context", C.c_void_p),
                ("check_every", C.c_int32), ("op", C.c_int32),
                ("flags", C.c_int32), ("reserved", C.c_int32),
                ("kind", C.c_int32), ("servers", C.c_int32), ("mode", C.c_int32),
                ("backups", C.c_int32), ("staleness", C.c_int32),
                ("placement", C.c_int32), ("part_bytes", C.c_int64),
                ("rho", C.c_double), ("weight_decay", C.c_double),
                ("trust", C.c_double), ("centered", C.c_int32),
                ("reserved2", C.c_int32)]


class _Strategy_Stats(C.Structure):
    _fields_ = [("size", C.c_uint32), ("variables", C.c_int32), ("steps", C.c_int64),
                ("gradients", C.c_int64), ("bytes", C.c_int64),
                ("wait_seconds", C.c_double), ("update_seconds", C.c_double),
                ("early", C.c_int64), ("dropped", C.c_int64), ("updates", C.c_int64),
                ("ahead", C.c_int64)]


class _Strategy_Tensor(C.Structure):
    _fields_ = [("size", C.c_uint32), ("variable", C.c_int32), ("dtype", C.c_int32),
                ("ndim", C.c_int32), ("shape", C.c_int64 * 16), ("count", C.c_int64),
                ("name", C.c_char * 256)]


def _load():
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.environ.get("HVD_LIBRARY")] if os.environ.get("HVD_LIBRARY") else [
        os.path.join(here, *where, "libhvd.so.0")
        for where in ((), ("..",), ("..", "lib"), ("..", "..", "lib"), ("..", "..", "build", "lib"))]
    for place in places:
        if os.path.exists(place):
            return C.CDLL(place)
    try:
        return C.CDLL("libhvd.so.0")
    except OSError:
        raise ImportError("libhvd.so.0 is neither in " + ", ".join(map(str, places)) +
                          " nor where the system looks; set HVD_LIBRARY") from None


_lib = _load()
_lib.hvd_last_error.restype = _lib.hvd_version.restype = C.c_char_p
_lib.hvd_free.argtypes = [C.c_void_p]
_lib.hvd_wait.argtypes = _lib.hvd_poll.argtypes = [C.c_int64]
_lib.hvd_wait_output.argtypes = [C.c_int64, C.POINTER(_Tensor)]
_lib.hvd_request_init.argtypes = [C.POINTER(_Request), C.c_size_t]
_lib.hvd_submit.argtypes = [C.POINTER(_Request), C.POINTER(C.c_int64)]
_lib.hvd_metrics_text.argtypes = [C.c_char_p, C.c_int64]
_lib.hvd_strategy_options_init.argtypes = [C.POINTER(_Strategy_Options), C.c_size_t]
_lib.hvd_strategy_options_set_optimizer.argtypes = [C.POINTER(_Strategy_Options), C.c_int32]
_lib.hvd_strategy_new.argtypes = [C.POINTER(_Strategy_Options), C.POINTER(C.c_void_p)]
_lib.hvd_strategy_add.argtypes = [C.c_void_p, C.c_char_p, C.c_void_p, C.c_int32,
                                  C.POINTER(C.c_int64)]
_lib.hvd_strategy_add_sparse.argtypes = [C.c_void_p, C.c_char_p, C.c_void_p, C.c_int64,
                                         C.c_int64]
_lib.hvd_strategy_ready_rows.argtypes = [C.c_void_p, C.c_int32, C.c_void_p, C.c_void_p,
                                         C.c_int64, C.c_int64]
_lib.hvd_strategy_read_rows.argtypes = [C.c_void_p, C.c_int32, C.c_void_p, C.c_int64]
_lib.hvd_strategy_add_statistic.argtypes = [C.c_void_p, C.c_char_p, C.c_void_p, C.c_void_p,
                                            C.c_int32, C.POINTER(C.c_int64)]
_lib.hvd_strategy_gradient.argtypes = _lib.hvd_strategy_ready.argtypes = [C.c_void_p, C.c_int32]
_lib.hvd_strategy_gradient.restype = C.c_void_p
for _name in "learning_rate", "momentum":
    getattr(_lib, "hvd_strategy_set_" + _name).argtypes = [C.c_void_p, C.c_double]
_lib.hvd_state_register.argtypes = [C.c_char_p, C.c_void_p, C.c_size_t, C.c_uint32]
_lib.hvd_state_unregister.argtypes = [C.c_char_p]
_lib.hvd_recover.argtypes = [C.c_void_p, C.c_size_t]
_lib.hvd_strategy_join.argtypes = [C.c_void_p, C.POINTER(C.c_int)]
_lib.hvd_strategy_state_info.argtypes = [C.c_void_p, C.c_int32, C.POINTER(_Strategy_Tensor)]
_lib.hvd_strategy_read_state.argtypes = [C.c_void_p, C.POINTER(C.c_void_p)]
_lib.hvd_strategy_write_state.argtypes = [C.c_void_p, C.POINTER(C.c_void_p)]
_lib.hvd_strategy_get_stats.argtypes = [C.c_void_p, C.POINTER(_Strategy_Stats)]
for _name in "save", "load", "abandon":
    getattr(_lib, "hvd_strategy_" + _name).argtypes = [C.c_void_p, C.c_char_p]
for _name in "start", "step", "check", "free", "read_statistics", "state_count":
    getattr(_lib, "hvd_strategy_" + _name).argtypes = [C.c_void_p]
_lib.hvd_strategy_free.restype = None
_lib.hvd_cluster_parse.argtypes = [C.c_char_p, C.c_int64, C.c_int32, C.POINTER(C.c_void_p)]
_lib.hvd_cluster_load.argtypes = [C.c_char_p, C.c_int32, C.POINTER(C.c_void_p)]
_lib.hvd_cluster_address.argtypes = [C.c_void_p, C.c_int32, C.c_int32]
_lib.hvd_cluster_address.restype = C.c_char_p
_lib.hvd_cluster_tf_config.argtypes = [C.c_void_p, C.c_int32, C.c_int32, C.c_char_p, C.c_int64]
_lib.hvd_cluster_text.argtypes = [C.c_void_p, C.c_char_p, C.c_int64]
for _name in "free", "size", "rank", "is_chief", "check_allreduce", "rank_servers":
    getattr(_lib, "hvd_cluster_" + _name).argtypes = [C.c_void_p]
_lib.hvd_init_cluster.argtypes = [C.c_void_p]
_lib.hvd_cluster_free.restype = None


def _check(status):
    if status < 0:
        raise Error(status, _lib.hvd_last_error().decode(errors="replace"))
    return status


# ------------------------------------------------------------------- arguments

def _integer(value, what, bits=32):
    """ctypes takes the lowest bits of whatever it is given."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is {value!r}, not an integer") from None
    if not -1 << bits - 1 <= number < 1 << bits - 1:
        raise ValueError(f"{what} {number} has more than {bits} bits")
    return number


def _integers(values, what, bits=32):
    numbers = [_integer(value, what, bits) for value in values]
    # One element more, for an empty array has no address.
    return ((C.c_int32 if bits == 32 else C.c_int64) * (len(numbers) + 1))(*numbers)


def _text(text, what):
    """Returns the bytes of a text; refuses a NUL, which ends C strings."""
    if not isinstance(text, (str, bytes, os.PathLike)):
        raise TypeError(f"{what} is {text!r}, not a string")
    data = text.encode() if isinstance(text, str) else os.fsencode(text)
    if b"\0" in data:
        raise ValueError(f"{what} {text!r} holds a NUL")
    return data


# ------------------------------------------------------------------ who is who

def init(process_sets=(), comm=None, cluster=None):
    """
    Start. comm: the ranks that are the world, as mpirun counts them, or a
    communicator of mpi4py; None: all. process_sets: lists of ranks, which get
    the ids 1, 2, ... cluster: a Cluster that says which task this process is;
    its tasks are the world, without MPI, and comm must be None.
    """
    if cluster is not None:
        if comm is not None:
            raise ValueError("the world is given by a cluster or by comm, not by both")
        if not isinstance(cluster, Cluster):
            raise TypeError(f"cluster is {type(cluster).__name__}, not a Cluster")
        began = is_initialized()
        _check(_lib.hvd_init_cluster(cluster._cluster))
        for ranks in () if began else process_sets:
            ProcessSet(ranks)
        return
    if comm is not None and not is_initialized():
        if hasattr(comm, "py2f"):
            _check(_lib.hvd_init_fint(comm.py2f()))
        else:
            ranks = list(comm)
            _check(_lib.hvd_init_ranks(_integers(ranks, "a rank"), len(ranks)))
        for ranks in process_sets:
            ProcessSet(ranks)
        return
    flat = [rank for ranks in process_sets for rank in ranks]
    options = _Options(C.sizeof(_Options), len(process_sets),
                       _integers(map(len, process_sets), "a size"),
                       _integers(flat, "a rank"))
    _check(_lib.hvd_init_with(C.byref(options)))


def shutdown():
    _check(_lib.hvd_shutdown())


def is_initialized():
    return bool(_lib.hvd_is_initialized())


def check():
    """Raises the error with which every request fails from now on, if the world
    has ended: for programs that do something else for long."""
    _check(_lib.hvd_check())


def _number(function):
    return lambda: _check(getattr(_lib, function)())


rank, size = _number("hvd_rank"), _number("hvd_size")
local_rank, local_size = _number("hvd_local_rank"), _number("hvd_local_size")
cross_rank, cross_size = _number("hvd_cross_rank"), _number("hvd_cross_size")
completion_fd = _number("hvd_completion_fd")
stop_timeline = _number("hvd_stop_timeline")


def version():
    return _lib.hvd_version().decode()


def start_timeline(path):
    _check(_lib.hvd_start_timeline(_text(path, "the path")))


def _written(write, *arguments, spare=0):
    """Returns a text that a function writes, which may grow by spare bytes."""
    buffer = C.create_string_buffer(_check(write(*arguments, None, 0)) + 1 + spare)
    _check(write(*arguments, buffer, len(buffer)))
    return buffer.value.decode()


def metrics_text():
    """Returns the text of hvd_metrics_text, for Prometheus."""
    return _written(_lib.hvd_metrics_text, spare=4096)


class Cluster:
    """
    Which tasks train together, where they are, and which of them this process
    is: hvd_cluster.h.

        Cluster()                 TF_CONFIG, which must be set
        Cluster(text)             such a text, or a dict of its form; this and
        Cluster(path=path)        a file may lack "task"
    """

    def __init__(self, text=None, path=None):
        self._cluster = C.c_void_p()
        if text is not None and path is not None:
            raise ValueError("a cluster is read from a text or from a file, not from both")
        if path is not None:
            status = _lib.hvd_cluster_load(_text(path, "the path"), 1, C.byref(self._cluster))
        elif text is not None:
            data = _text(json.dumps(text) if isinstance(text, dict) else text, "the cluster")
            status = _lib.hvd_cluster_parse(data, len(data), 1, C.byref(self._cluster))
        else:
            status = _lib.hvd_cluster_from_environment(C.byref(self._cluster))
        if _check(status) == 0 and text is path is None:
            raise ValueError("TF_CONFIG is not set")

    def __del__(self):
        _lib.hvd_cluster_free(self._cluster)

    def size(self):
        return _check(_lib.hvd_cluster_size(self._cluster))

    def rank(self):
        return _check(_lib.hvd_cluster_rank(self._cluster))

    def is_chief(self):
        return bool(_check(_lib.hvd_cluster_is_chief(self._cluster)))

    def address(self, role, index):
        address = _lib.hvd_cluster_address(self._cluster, _role(role), _integer(index, "an index"))
        if address is None:
            raise Error(-1, _lib.hvd_last_error().decode(errors="replace"))
        return address.decode()

    def rank_servers(self):
        return _check(_lib.hvd_cluster_rank_servers(self._cluster))

    def check_allreduce(self):
        _check(_lib.hvd_cluster_check_allreduce(self._cluster))

    def text(self):
        """Returns the text that all tasks share, without a task."""
        return _written(_lib.hvd_cluster_text, self._cluster)

    def tf_config(self, role, index):
        """Returns the TF_CONFIG of a task."""
        return _written(_lib.hvd_cluster_tf_config, self._cluster, _role(role),
                        _integer(index, "an index"))


def _role(name):
    return _check(_lib.hvd_role_from_name(_text(name, "a role")))


class ProcessSet:
    """A process set; pass it, or its id, as process_set=."""

    def __init__(self, ranks):
        ranks = list(ranks)
        self.id = _check(_lib.hvd_add_process_set(_integers(ranks, "a rank"),
                                                  len(ranks)))

    def __index__(self):
        return self.id

    def rank(self):
        return _check(_lib.hvd_process_set_rank(self.id))

    def size(self):
        return _check(_lib.hvd_process_set_size(self.id))

    def included(self):
        return bool(_check(_lib.hvd_process_set_included(self.id)))

    def ranks(self):
        ranks = (C.c_int32 * self.size())()
        _check(_lib.hvd_process_set_ranks(self.id, ranks, len(ranks)))
        return list(ranks)

    def remove(self):
        _check(_lib.hvd_remove_process_set(self.id))


# -------------------------------------------------------------------- requests

def _array(array, what):
    array = np.asarray(array)
    if not array.flags.c_contiguous:
        raise ValueError(f"{what} must be C-contiguous: np.ascontiguousarray makes it so")
    if not array.dtype.isnative:
        raise TypeError(f"{what} is {array.dtype.str}, of the other byte order: "
                        "array.astype(array.dtype.newbyteorder('=')) turns it")
    return array


def _target(array, what):
    """An array that the library writes to."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{what} is {type(array).__name__}, not an array to write to")
    if not array.flags.writeable:
        raise ValueError(f"{what} is written to, and this array is read-only")
    return _array(array, what)


def _dtype_of(array, dtype):
    own = array.dtype.name
    name = own if dtype is None else dtype if isinstance(dtype, str) else np.dtype(dtype).name
    if name not in _DTYPES:
        raise TypeError(f"hvd knows no dtype {name}: one of {', '.join(_DTYPES)}")
    if name != own and (name, own) != ("bfloat16", "uint16"):
        raise TypeError(f"dtype is {name}, the array's {own}: array.astype converts"
                        + (", or pass the bits as uint16" if name == "bfloat16" else ""))
    return _DTYPES[name]


def _code(value, table, what):
    if isinstance(value, str):
        if value not in table:
            raise ValueError(f"there is no {what} '{value}': one of {', '.join(table)}")
        return table[value]
    return _integer(value, what)


# The library uses the arrays of requests under way, even if the program has
# dropped the handle, and until the process is gone if it exits before. The
# interpreter, which frees everything first, must not free these arrays.
_under_way = set()
atexit.register(lambda: C.pythonapi.Py_IncRef(C.py_object(_under_way)))


class Handle:
    """A request under way. wait() must be called once."""

    def __init__(self, request, keep, result, counts=None):
        self._request, self._keep, self._result = request, keep, result
        self._counts, self._handle = counts, C.c_int64()

    def poll(self):
        return bool(_check(_lib.hvd_poll(self._handle)))

    def wait(self):
        """Returns the result: an array, or (array, counts) if there are counts."""
        tensor = _Tensor(size=C.sizeof(_Tensor))
        status = _lib.hvd_wait_output(self._handle, C.byref(tensor))
        _under_way.discard(self)
        _check(status)
        result = self._result
        if result is None and tensor.data:
            result = self._take(tensor)
        self._keep = None
        return result if self._counts is None else (result, np.array(self._counts[:]))

    def _take(self, tensor):
        shape = tuple(tensor.shape[:tensor.ndim])
        name = _NAMES[tensor.dtype]
        dtype = np.dtype("uint16" if name == "bfloat16" else name)
        # A copy, for numpy frees its memory and the library its own.
        data = np.empty(shape, dtype)
        C.memmove(data.ctypes.data, tensor.data, data.nbytes)
        _lib.hvd_free(tensor.data)
        return data


def _request(kind, array=None, out=None, name=None, op="average", root=0, dtype=None,
             prescale=1.0, postscale=1.0, process_set=0, priority=0, flags=0,
             compression="none", splits=None, capacity=0, counts=False, tensor=None):
    """A filled request, and the objects that must live as long as it."""
    r = _Request()
    _lib.hvd_request_init(C.byref(r), C.sizeof(r))
    r.kind, r.op, r.root = _KINDS[kind], _code(op, OPS, "op"), _integer(root, "root")
    r.name = _text(name, "the name") if name is not None else None
    r.prescale, r.postscale = prescale, postscale
    r.process_set, r.priority = _integer(process_set, "process_set"), _integer(priority, "priority")
    r.flags, r.capacity = _integer(flags, "flags"), capacity
    r.compression = _code(compression, COMPRESSIONS, "compression")
    keep = [array, out]
    tensor = array if tensor is None else tensor
    if tensor is not None:
        r.dtype, r.ndim = _dtype_of(tensor, dtype), tensor.ndim
        shape = (C.c_int64 * max(tensor.ndim, 1))(*tensor.shape)
        r.shape = C.cast(shape, C.POINTER(C.c_int64))
        keep.append(shape)
    r.input = array.ctypes.data if array is not None else None
    r.output = out.ctypes.data if out is not None else None
    if splits is not None:
        rows = _integers(splits, "a split", 64)
        members = _check(_lib.hvd_process_set_size(r.process_set))
        if len(splits) != members:
            raise ValueError(f"{len(splits)} splits for {members} ranks")
        r.splits = C.cast(rows, C.POINTER(C.c_int64))
        keep.append(rows)
    numbers = None
    if counts:
        numbers = (C.c_int64 * _check(_lib.hvd_process_set_size(r.process_set)))()
        r.counts = C.cast(numbers, C.POINTER(C.c_int64))
    return Handle(r, keep, out, numbers)


def _submit(handle):
    _check(_lib.hvd_submit(C.byref(handle._request), C.byref(handle._handle)))
    _under_way.add(handle)
    return handle


def _submit_group(name, handles):
    pointers = (C.POINTER(_Request) * len(handles))(*[C.pointer(h._request) for h in handles])
    numbers = (C.c_int64 * len(handles))()
    _check(_lib.hvd_submit_group(_text(name, "the group's name") if name else None,
                                 pointers, len(handles), numbers))
    for handle, number in zip(handles, numbers):
        handle._handle = C.c_int64(number)
    _under_way.update(handles)
    return handles


def _same_shape(kind, array, out, options):
    array = _array(array, "the input")
    out = np.empty_like(array) if out is None else _target(out, "out")
    if out.shape != array.shape or out.dtype != array.dtype:
        raise ValueError(f"out is {out.dtype}{list(out.shape)}, the input "
                         f"{array.dtype}{list(array.shape)}")
    return _request(kind, array, out, **options)


def allreduce_async(array, out=None, **options):
    return _submit(_same_shape("allreduce", array, out, options))


def allreduce(array, out=None, **options):
    return allreduce_async(array, out, **options).wait()


def grouped_allreduce(arrays, name=None, outs=None, **options):
    outs = [None] * len(arrays) if outs is None else outs
    if len(outs) != len(arrays):
        raise ValueError(f"{len(outs)} outs for {len(arrays)} arrays")
    return [h.wait() for h in _submit_group(name, [
        _same_shape("allreduce", a, o, options) for a, o in zip(arrays, outs)])]


def reduce(array, root=0, out=None, **options):
    """Returns the reduction on root, None elsewhere."""
    result = _submit(_same_shape("reduce", array, out, dict(options, root=root))).wait()
    return result if rank() == root else None


def broadcast_async(array, root=0, **options):
    """Broadcasts in place."""
    array = _target(array, "the array")
    return _submit(_request("broadcast", None, array, root=root, tensor=array, **options))


def broadcast(array, root=0, **options):
    return broadcast_async(array, root, **options).wait()


def allgather_async(array, **options):
    return _submit(_request("allgather", _array(array, "the input"), counts=True, **options))


def allgather(array, **options):
    """Returns (rows of all ranks, number of rows of each rank)."""
    return allgather_async(array, **options).wait()


def gather(array, root=0, **options):
    """Returns (rows of all ranks, or None, number of rows of each rank)."""
    return _submit(_request("gather", _array(array, "the input"), root=root, counts=True,
                            capacity=2**62, **options)).wait()


def alltoall_async(array, splits=None, **options):
    return _submit(_request("alltoall", _array(array, "the input"), splits=splits,
                            counts=True, **options))


def alltoall(array, splits=None, **options):
    """Returns (rows received, number of rows from each rank)."""
    return alltoall_async(array, splits, **options).wait()


def reducescatter_async(array, **options):
    return _submit(_request("reducescatter", _array(array, "the input"), **options))


def reducescatter(array, **options):
    return reducescatter_async(array, **options).wait()


def _divided(rows, n):
    """Divides as the library does: integers truncate toward zero."""
    if rows.dtype.kind not in "iu":
        return rows / n
    quotient = rows // n
    return quotient + ((rows < 0) & (quotient * n != rows)).astype(rows.dtype)


def _indices(indices):
    """Returns a list or an array of integers as int64."""
    indices = np.asarray(indices)
    if indices.size and indices.dtype.kind not in "iu":
        raise TypeError(f"indices are {indices.dtype}, not integers")
    return np.ascontiguousarray(indices, np.int64)


def sparse_allreduce(indices, rows, op="average", name=None, **options):
    """Returns (indices, rows) of all ranks; rows of one index are to be added up."""
    indices, rows = _indices(indices), _array(rows, "rows")
    if indices.shape != rows.shape[:1]:
        raise ValueError(f"{indices.size} indices for rows {list(rows.shape)}")
    dtype, average = options.pop("dtype", None), _code(op, OPS, "op") == OPS["average"]
    if average and _dtype_of(rows, dtype) in (_DTYPES["bfloat16"], _DTYPES["bool"]):
        raise TypeError(f"numpy cannot average {dtype or rows.dtype}: take op='sum'")
    both = _submit_group(name, [_request("allgather", indices, name="indices", **options),
                                _request("allgather", rows, name="rows", dtype=dtype,
                                         **options)])
    indices, rows = both[0].wait(), both[1].wait()
    n = _check(_lib.hvd_process_set_size(_integer(options.get("process_set", 0), "process_set")))
    return indices, _divided(rows, n) if average else rows


def _pickled(obj):
    """Returns the bytes of an object, and why there are none."""
    try:
        return np.frombuffer(pickle.dumps(obj), np.uint8), None
    except Exception as error:  # whatever the object's own methods raise
        return np.empty(0, np.uint8), error


def _unpickled(data, who):
    if data.size == 0:
        raise ValueError(f"rank {who} has an object that pickle does not take")
    return pickle.loads(data.tobytes())


def broadcast_object(obj=None, root=0, name=None, process_set=0):
    """Returns the object of rank root, which pickle must accept; those of other
    ranks are ignored. As with pickle itself, the ranks must be trusted."""
    data, error = _pickled(obj) if rank() == root else (np.empty(0, np.uint8), None)
    bytes_ = np.array([data.size], np.int64)
    broadcast(bytes_, root, name=name and name + "/bytes", process_set=process_set)
    if error:
        raise error
    if rank() != root:
        data = np.empty(bytes_[0], np.uint8)
    elif bytes_[0]:
        data = data.copy()  # which may be written to
    if bytes_[0]:
        broadcast(data, root, name=name, process_set=process_set)
    return obj if rank() == root else _unpickled(data, root)


def allgather_object(obj, name=None, process_set=0):
    """Returns a list of the objects of all ranks; pickle must accept them."""
    data, error = _pickled(obj)
    rows, counts = allgather(data, name=name, process_set=process_set)
    if error:
        raise error
    members = process_set.ranks() if isinstance(process_set, ProcessSet) else range(len(counts))
    parts = np.split(rows, np.cumsum(counts)[:-1])
    return [_unpickled(part, who) for part, who in zip(parts, members)]


def barrier(process_set=0):
    _submit(_request("barrier", process_set=process_set)).wait()


def join(process_set=0):
    """Says that this rank has no more data; returns the rank that joined last."""
    last = np.full(1, -1, np.int32)
    _submit(_request("join", out=last, process_set=process_set)).wait()
    return int(last[0])


# ---------------------------------------------------------------- elastic state

_LOST, _STALLED = -26, -27
_pieces = {}


def state_register(name, array, per_rank=False):
    """Adds a numpy array to the state of the training (hvd_elastic.h). It is kept,
    and written in place by restore() and state_sync()."""
    if not isinstance(array, np.ndarray) or not array.flags.c_contiguous \
            or not array.flags.writeable:
        raise TypeError(f"piece '{name}' of the state must be a contiguous numpy array "
                        "that can be written")
    _check(_lib.hvd_state_register(str(name).encode(), array.ctypes.data, array.nbytes,
                                   1 if per_rank else 0))
    _pieces[str(name)] = array


def state_unregister(name):
    _check(_lib.hvd_state_unregister(str(name).encode()))
    _pieces.pop(str(name), None)


def state_sync(root=0):
    """Gives all ranks the state of one. Collective."""
    _check(_lib.hvd_state_sync(_integer(root, "root")))


def commit():
    """Commits the state. Collective. Returns 1 if processes have been let in."""
    return _check(_lib.hvd_commit())


def commit_start():
    """Begins a commit; no piece may change until commit_wait() has returned."""
    _check(_lib.hvd_commit_start())


def commit_wait():
    _check(_lib.hvd_commit_wait())


def restore():
    """Goes back to the newest commit. Collective. Returns whether there is one."""
    return _check(_lib.hvd_restore()) > 0


def recover():
    """Goes on without the ranks that are lost; restore() follows. Collective."""
    _check(_lib.hvd_recover(None, 0))


def elastic_run(train, on_reset=None):
    """Calls train() until it is not a lost rank that ends it, as hvd_elastic_run does.
    on_reset(), if it is given, is called in each new world, with the state of the
    newest commit. Returns what train has returned."""
    begun = False
    while True:
        try:
            begun = begun or restore()
            if not begun:
                state_sync(0)
                commit()
                begun = True
            result = train()
            commit_wait()
            if commit() == 0:
                return result
            if on_reset:
                on_reset()
        except Error as error:
            while error:
                if error.status not in (_LOST, _STALLED):
                    raise error
                try:
                    recover()
                    begun = restore()
                    if on_reset:
                        on_reset()
                    error = None
                except Error as another:
                    error = another


_registered = []


def register_compressor(name, max_bytes, encode, add, state_bytes=None):
    """
    max_bytes(count) and state_bytes(count) give bytes; encode(state, values,
    code) fills the uint8 array code and returns how many bytes; add(code, sum)
    adds to the float32 array sum. state is a uint8 array. An exception is a
    failure of the request.
    """
    def guard(function):
        def call(*arguments):
            try:
                return function(*arguments)
            except Exception:  # the library's thread cannot raise into the caller's
                return -2
        return call

    def view(address, count, dtype):
        if count == 0:
            return np.empty(0, dtype)
        buffer = (C.c_char * (count * np.dtype(dtype).itemsize)).from_address(
            C.cast(address, C.c_void_p).value)
        return np.frombuffer(buffer, dtype)

    kept = state_bytes or (lambda count: 0)
    c = _Compressor(
        C.sizeof(_Compressor), 0, _text(name, "the name"), None,
        _MAX(guard(lambda _, count: int(max_bytes(count)))),
        _MAX(guard(lambda _, count: int(kept(count)))),
        _ENCODE(guard(lambda _, state, values, count, code: int(encode(
            view(state, int(kept(count)), np.uint8), view(values, count, np.float32),
            view(code, int(max_bytes(count)), np.uint8))))),
        _ADD(guard(lambda _, code, bytes_, total, count: int(add(
            view(code, bytes_, np.uint8), view(total, count, np.float32)) or 0))))
    number = _check(_lib.hvd_register_compressor(C.byref(c)))
    _registered.append(c)  # its functions must outlive every request
    return number


# -------------------------------------------------------------------- training

class Strategy:
    """
    hvd_strategy.h: variables that are the same on all ranks, gradients that are
    averaged as they become ready, an optimizer that is applied to the averages.

        s = hvd.Strategy("adam", learning_rate=0.01)
        s.add("w", w)                  # a float32 array, updated in place
        s.start()                      # all ranks get rank 0's
        for batch in batches:
            s.gradient("w")[...] = gradient_of(w, batch)
            s.ready("w")
            s.step()
        s.close()

    Options are those of hvd_strategy_options: learning_rate, momentum, beta1,
    beta2, epsilon, rho, weight_decay, trust, centered (defaults of the
    optimizer), serial, compression, check_every, op, flags
    (AVERAGE_CONTRIBUTORS). A strategy that is not
    closed lasts, with its arrays, as long as the process.
    """

    def __init__(self, optimizer="adam", **options):
        o = _Strategy_Options()
        _lib.hvd_strategy_options_init(C.byref(o), C.sizeof(o))
        _check(_lib.hvd_strategy_options_set_optimizer(
            C.byref(o), _code(optimizer, OPTIMIZERS, "optimizer")))
        names = {name for name, _ in o._fields_} - {"size", "optimizer", "updated", "context",
                                                    "reserved", "reserved2"}
        for name, value in options.items():
            if name not in names:
                raise TypeError(f"a strategy has no option '{name}': " + ", ".join(sorted(names)))
            if name == "op":
                value = _code(value, OPS, "op")
            elif name == "compression":
                value = _code(value, COMPRESSIONS, "compression")
            elif name in ("serial", "check_every", "flags", "centered"):
                value = _integer(value, name)
            setattr(o, name, value)
        self._strategy, self._variables, self._statistics = C.c_void_p(), {}, []
        _check(_lib.hvd_strategy_new(C.byref(o), C.byref(self._strategy)))
        _under_way.add(self)

    def _own(self):
        if not self._strategy:
            raise ValueError("the strategy is closed")
        return self._strategy

    def _number(self, name):
        if name not in self._variables:
            raise ValueError(f"there is no variable {name!r}: one of " +
                             (", ".join(map(repr, self._variables)) or "none"))
        return self._variables[name][0]

    def add(self, name, array, sparse=False):
        """Adds a variable, before start; at best in the order in which gradients
        become ready. Those of a sparse one, of two dimensions, are given by
        ready_rows, and only the rows that some rank gives change."""
        array = _target(array, "the variable")
        if array.dtype != np.float32:
            raise TypeError(f"variable {name!r} is {array.dtype}, not float32")
        if sparse and array.ndim != 2:
            raise ValueError(f"the sparse variable {name!r} has {array.ndim} dimensions, not 2")
        if sparse:
            number = _check(_lib.hvd_strategy_add_sparse(
                self._own(), _text(name, "the name"), array.ctypes.data, *array.shape))
        else:
            shape = (C.c_int64 * max(array.ndim, 1))(*array.shape)
            number = _check(_lib.hvd_strategy_add(self._own(), _text(name, "the name"),
                                                  array.ctypes.data, array.ndim, shape))
        self._variables[name] = (number, array)

    def add_statistic(self, name, array, mean):
        """Adds an array that each rank changes by itself, before start; mean gets the
        mean over the ranks whenever read_statistics is called."""
        for each in (array, mean):
            if _target(each, "the statistic").dtype != np.float32 or each.shape != array.shape:
                raise TypeError(f"statistic {name!r} and its mean must be float32 of one shape")
        shape = (C.c_int64 * max(array.ndim, 1))(*array.shape)
        _check(_lib.hvd_strategy_add_statistic(self._own(), _text(name, "the name"),
                                               array.ctypes.data, mean.ctypes.data,
                                               array.ndim, shape))
        self._statistics.append((array, mean))

    def read_statistics(self):
        """Makes the means those of all ranks that make steps."""
        _check(_lib.hvd_strategy_read_statistics(self._own()))

    def start(self):
        _check(_lib.hvd_strategy_start(self._own()))

    def gradient(self, name):
        """Returns the array for the gradient of a variable, until it is ready."""
        number, array = self._number(name), self._variables[name][1]
        address = _lib.hvd_strategy_gradient(self._own(), number)
        if not address:
            raise Error(-1, _lib.hvd_last_error().decode(errors="replace"))
        if array.size == 0:
            return np.empty(array.shape, np.float32)
        memory = (C.c_float * array.size).from_address(address)
        return np.frombuffer(memory, np.float32).reshape(array.shape)

    def ready(self, name):
        _check(_lib.hvd_strategy_ready(self._own(), self._number(name)))

    def read_rows(self, name, indices):
        """Gets rows of a sparse variable from the parameter servers."""
        indices = _indices(indices)
        _check(_lib.hvd_strategy_read_rows(self._own(), self._number(name),
                                           indices.ctypes.data, indices.size))

    def ready_rows(self, name, indices, rows):
        """Hands over the gradient of a sparse variable: rows, and which rows of it
        these are. Rows of one index are added."""
        indices, rows = _indices(indices), np.ascontiguousarray(rows, np.float32)
        width = self._variables[name][1].shape[-1] if name in self._variables else 0
        if rows.size == 0 and indices.size == 0:
            rows = np.empty((0, width), np.float32)
        if rows.ndim != 2 or indices.shape != rows.shape[:1]:
            raise ValueError(f"{indices.size} indices for rows {list(rows.shape)}")
        _check(_lib.hvd_strategy_ready_rows(self._own(), self._number(name),
                                            indices.ctypes.data, rows.ctypes.data,
                                            *rows.shape))

    def step(self):
        _check(_lib.hvd_strategy_step(self._own()))

    def abandon(self, reason=None):
        """Gives up a step that this rank cannot make; the others are told."""
        text = _text(reason, "the reason") if reason is not None else None
        _check(_lib.hvd_strategy_abandon(self._own(), text))

    def check(self):
        _check(_lib.hvd_strategy_check(self._own()))

    def join(self):
        """Says that this rank has no more data. When every rank has joined, all
        hold what the rank that joined last has; it is returned."""
        last = C.c_int(-1)
        _check(_lib.hvd_strategy_join(self._own(), C.byref(last)))
        return last.value

    def save(self, path):
        """Writes a checkpoint; one rank does."""
        _check(_lib.hvd_strategy_save(self._own(), _text(path, "the path")))

    def load(self, path=None):
        """Loads rank 0's checkpoint on all ranks. Returns False if it is of another
        optimizer; then the state begins anew."""
        text = _text(path, "the path") if path is not None else None
        return bool(_check(_lib.hvd_strategy_load(self._own(), text)))

    def _new_state(self):
        """Returns an array for each tensor of the optimizer's state, by name."""
        state, info = {}, _Strategy_Tensor(size=C.sizeof(_Strategy_Tensor))
        for i in range(_check(_lib.hvd_strategy_state_count(self._own()))):
            _check(_lib.hvd_strategy_state_info(self._own(), i, C.byref(info)))
            dtype = np.float32 if info.dtype == _DTYPES["float32"] else np.int64
            state[info.name.decode()] = np.zeros(info.shape[:info.ndim], dtype)
        return state

    def read_state(self):
        """Returns the optimizer's state: arrays by name, "w/m", and numbers of
        updates, "w/updates". Not collective."""
        state = self._new_state()
        places = (C.c_void_p * max(len(state), 1))(*(a.ctypes.data for a in state.values()))
        _check(_lib.hvd_strategy_read_state(self._own(), places))
        return state

    def write_state(self, state=None):
        """Has all ranks go on from rank 0's arrays and rank 0's state, a dict as that of
        read_state (other names in it do not matter); without one the optimizer begins
        anew. Collective."""
        places = None
        if state is not None:
            wanted = self._new_state()
            # What is missing, or of another shape, the library refuses on all ranks.
            given = [np.array(state[name], array.dtype)
                     if name in state and np.shape(state[name]) == array.shape else None
                     for name, array in wanted.items()]
            places = (C.c_void_p * max(len(given), 1))(
                *(None if array is None else array.ctypes.data for array in given))
        _check(_lib.hvd_strategy_write_state(self._own(), places))

    def set_learning_rate(self, rate):
        _check(_lib.hvd_strategy_set_learning_rate(self._own(), rate))

    def set_momentum(self, momentum):
        _check(_lib.hvd_strategy_set_momentum(self._own(), momentum))

    def stats(self):
        """Returns hvd_strategy_get_stats as a dict."""
        stats = _Strategy_Stats(size=C.sizeof(_Strategy_Stats))
        _check(_lib.hvd_strategy_get_stats(self._own(), C.byref(stats)))
        return {name: getattr(stats, name) for name, _ in stats._fields_ if name != "size"}

    def close(self):
        """Waits for what is in flight. Arrays of gradient() are gone then."""
        _lib.hvd_strategy_free(self._strategy)
        self._strategy, self._variables, self._statistics = C.c_void_p(), {}, []
        _under_way.discard(self)

# SPDX-License-Identifier: Apache-2.0
"""
Opens libhvd, and declares its structs and functions for ctypes.

The library is HVD_LIBRARY, or libhvd.so.0 in one of the folders of PLACES, or
where the system finds it.
"""
import ctypes as C
import os

from ._errors import Error, integer

CALLBACK = C.CFUNCTYPE(None, C.c_void_p, C.c_int)


class Request(C.Structure):
    _fields_ = [("size", C.c_uint32), ("kind", C.c_int32), ("dtype", C.c_int32),
                ("op", C.c_int32), ("root", C.c_int32), ("ndim", C.c_int32),
                ("shape", C.POINTER(C.c_int64)), ("name", C.c_char_p),
                ("input", C.c_void_p), ("output", C.c_void_p),
                ("prescale", C.c_double), ("postscale", C.c_double),
                ("callback", CALLBACK), ("callback_context", C.c_void_p),
                ("process_set", C.c_int32), ("priority", C.c_int32),
                ("flags", C.c_int32), ("compression", C.c_int32),
                ("capacity", C.c_int64), ("splits", C.POINTER(C.c_int64)),
                ("counts", C.POINTER(C.c_int64))]


class Tensor(C.Structure):
    _fields_ = [("size", C.c_uint32), ("dtype", C.c_int32), ("ndim", C.c_int32),
                ("reserved", C.c_int32), ("shape", C.c_int64 * 16),
                ("data", C.c_void_p)]


class Options(C.Structure):
    _fields_ = [("size", C.c_uint32), ("nprocess_sets", C.c_int32),
                ("process_set_sizes", C.POINTER(C.c_int32)),
                ("process_set_ranks", C.POINTER(C.c_int32))]


MAX = C.CFUNCTYPE(C.c_int64, C.c_void_p, C.c_int64)
ENCODE = C.CFUNCTYPE(C.c_int64, C.c_void_p, C.c_void_p, C.POINTER(C.c_float),
                     C.c_int64, C.c_void_p)
ADD = C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_void_p, C.c_int64,
                  C.POINTER(C.c_float), C.c_int64)


class Compressor(C.Structure):
    _fields_ = [("size", C.c_uint32), ("reserved", C.c_int32), ("name", C.c_char_p),
                ("context", C.c_void_p), ("max_bytes", MAX), ("state_bytes", MAX),
                ("encode", ENCODE), ("add", ADD)]


class Straggler(C.Structure):
    _fields_ = [("size", C.c_uint32), ("rank", C.c_int32), ("seconds", C.c_double),
                ("busy", C.c_double), ("median", C.c_double)]


STRAGGLER = C.CFUNCTYPE(None, C.c_void_p, C.POINTER(Straggler))


class StrategyOptions(C.Structure):
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
                ("elastic", C.c_int32)]


class StrategyStats(C.Structure):
    _fields_ = [("size", C.c_uint32), ("variables", C.c_int32), ("steps", C.c_int64),
                ("gradients", C.c_int64), ("bytes", C.c_int64),
                ("wait_seconds", C.c_double), ("update_seconds", C.c_double),
                ("early", C.c_int64), ("dropped", C.c_int64), ("updates", C.c_int64),
                ("ahead", C.c_int64)]


class StrategyTensor(C.Structure):
    _fields_ = [("size", C.c_uint32), ("variable", C.c_int32), ("dtype", C.c_int32),
                ("ndim", C.c_int32), ("shape", C.c_int64 * 16), ("count", C.c_int64),
                ("name", C.c_char * 256)]


# From this folder: in what is installed, in build/lib/python, in the sources.
PLACES = ((), ("..",), ("..", ".."), ("..", "..", "lib"),
          ("..", "..", "..", "..", "build", "lib"))


def _load():
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.environ.get("HVD_LIBRARY")] if os.environ.get("HVD_LIBRARY") else [
        os.path.join(here, *where, "libhvd.so.0") for where in PLACES]
    for place in places:
        if os.path.exists(place):
            return C.CDLL(place)
    try:
        return C.CDLL("libhvd.so.0")
    except OSError:
        raise ImportError("libhvd.so.0 is neither in " + ", ".join(map(str, places)) +
                          " nor where the system looks; set HVD_LIBRARY") from None


lib = _load()
lib.hvd_last_error.restype = lib.hvd_version.restype = C.c_char_p
lib.hvd_free.argtypes = [C.c_void_p]
lib.hvd_wait.argtypes = lib.hvd_poll.argtypes = [C.c_int64]
lib.hvd_wait_for.argtypes = [C.c_int64, C.c_int64]
lib.hvd_malloc.argtypes = [C.c_size_t]
lib.hvd_malloc.restype = C.c_void_p
lib.hvd_wait_output.argtypes = [C.c_int64, C.POINTER(Tensor)]
lib.hvd_request_init.argtypes = [C.POINTER(Request), C.c_size_t]
lib.hvd_submit.argtypes = lib.hvd_run.argtypes = [C.POINTER(Request), C.POINTER(C.c_int64)]
lib.hvd_metrics_text.argtypes = [C.c_char_p, C.c_int64]
lib.hvd_strategy_options_init.argtypes = [C.POINTER(StrategyOptions), C.c_size_t]
lib.hvd_strategy_options_set_optimizer.argtypes = [C.POINTER(StrategyOptions), C.c_int32]
lib.hvd_strategy_new.argtypes = [C.POINTER(StrategyOptions), C.POINTER(C.c_void_p)]
lib.hvd_strategy_add.argtypes = [C.c_void_p, C.c_char_p, C.c_void_p, C.c_int32,
                                 C.POINTER(C.c_int64)]
lib.hvd_strategy_add_sparse.argtypes = [C.c_void_p, C.c_char_p, C.c_void_p, C.c_int64,
                                        C.c_int64]
lib.hvd_strategy_ready_rows.argtypes = [C.c_void_p, C.c_int32, C.c_void_p, C.c_void_p,
                                        C.c_int64, C.c_int64]
lib.hvd_strategy_read_rows.argtypes = [C.c_void_p, C.c_int32, C.c_void_p, C.c_int64]
lib.hvd_strategy_add_statistic.argtypes = [C.c_void_p, C.c_char_p, C.c_void_p, C.c_void_p,
                                           C.c_int32, C.POINTER(C.c_int64)]
lib.hvd_strategy_gradient.argtypes = lib.hvd_strategy_ready.argtypes = [C.c_void_p, C.c_int32]
lib.hvd_strategy_gradient.restype = C.c_void_p
for _name in "learning_rate", "momentum":
    getattr(lib, "hvd_strategy_set_" + _name).argtypes = [C.c_void_p, C.c_double]
lib.hvd_state_register.argtypes = [C.c_char_p, C.c_void_p, C.c_size_t, C.c_uint32]
lib.hvd_state_unregister.argtypes = [C.c_char_p]
lib.hvd_recover.argtypes = lib.hvd_grow.argtypes = [C.c_void_p, C.c_size_t]
lib.hvd_on_straggler.argtypes = lib.hvd_off_straggler.argtypes = [STRAGGLER, C.c_void_p]
lib.hvd_strategy_join.argtypes = [C.c_void_p, C.POINTER(C.c_int)]
lib.hvd_strategy_state_info.argtypes = [C.c_void_p, C.c_int32, C.POINTER(StrategyTensor)]
lib.hvd_strategy_read_state.argtypes = [C.c_void_p, C.POINTER(C.c_void_p)]
lib.hvd_strategy_write_state.argtypes = [C.c_void_p, C.POINTER(C.c_void_p)]
lib.hvd_strategy_get_stats.argtypes = [C.c_void_p, C.POINTER(StrategyStats)]
for _name in "save", "load", "abandon":
    getattr(lib, "hvd_strategy_" + _name).argtypes = [C.c_void_p, C.c_char_p]
for _name in "start", "step", "check", "free", "read_statistics", "state_count":
    getattr(lib, "hvd_strategy_" + _name).argtypes = [C.c_void_p]
lib.hvd_strategy_free.restype = None
lib.hvd_cluster_parse.argtypes = [C.c_char_p, C.c_int64, C.c_int32, C.POINTER(C.c_void_p)]
lib.hvd_cluster_load.argtypes = [C.c_char_p, C.c_int32, C.POINTER(C.c_void_p)]
lib.hvd_cluster_address.argtypes = [C.c_void_p, C.c_int32, C.c_int32]
lib.hvd_cluster_address.restype = C.c_char_p
lib.hvd_cluster_tf_config.argtypes = [C.c_void_p, C.c_int32, C.c_int32, C.c_char_p, C.c_int64]
lib.hvd_cluster_text.argtypes = [C.c_void_p, C.c_char_p, C.c_int64]
for _name in "free", "size", "rank", "is_chief", "check_allreduce", "rank_servers":
    getattr(lib, "hvd_cluster_" + _name).argtypes = [C.c_void_p]
lib.hvd_init_cluster.argtypes = [C.c_void_p]
lib.hvd_cluster_free.restype = None


def check(status):
    """Returns a status that is no failure; else raises what the library says."""
    if status < 0:
        raise Error(status, lib.hvd_last_error().decode(errors="replace"))
    return status


def integers(values, what, bits=32):
    """Returns an array of whole numbers for the library."""
    numbers = [integer(value, what, bits) for value in values]
    # One element more, for an empty array has no address.
    return ((C.c_int32 if bits == 32 else C.c_int64) * (len(numbers) + 1))(*numbers)


def written(write, *arguments, spare=0):
    """Returns a text that a function writes, which may grow by spare bytes."""
    buffer = C.create_string_buffer(check(write(*arguments, None, 0)) + 1 + spare)
    check(write(*arguments, buffer, len(buffer)))
    return buffer.value.decode()

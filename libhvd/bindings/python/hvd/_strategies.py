# SPDX-License-Identifier: Apache-2.0
"""Training on top of the collectives (hvd_strategy.h)."""
import ctypes as C

import numpy as np

from ._arrays import as_array
from ._collectives import row_numbers
from ._constants import COMPRESSIONS, DTYPES, OPS, OPTIMIZERS
from ._engine import under_way
from ._errors import Error, code, integer, text as _bytes
from ._library import StrategyOptions, StrategyStats, StrategyTensor, check, lib


def _writable(array, what):
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{what} is {type(array).__name__}, not an array to write to")
    return as_array(array, what, True)


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
        o = StrategyOptions()
        lib.hvd_strategy_options_init(C.byref(o), C.sizeof(o))
        check(lib.hvd_strategy_options_set_optimizer(
            C.byref(o), code(optimizer, OPTIMIZERS, "optimizer")))
        names = {name for name, _ in o._fields_} - {"size", "optimizer", "updated", "context",
                                                    "reserved"}
        for name, value in options.items():
            if name not in names:
                raise TypeError(f"a strategy has no option '{name}': " + ", ".join(sorted(names)))
            if name == "op":
                value = code(value, OPS, "op")
            elif name == "compression":
                value = code(value, COMPRESSIONS, "compression")
            elif name in ("serial", "check_every", "flags", "centered", "elastic"):
                value = integer(value, name)
            setattr(o, name, value)
        self._strategy, self._variables, self._statistics = C.c_void_p(), {}, []
        check(lib.hvd_strategy_new(C.byref(o), C.byref(self._strategy)))
        under_way.add(self)

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
        array = _writable(array, "the variable")
        if array.dtype != np.float32:
            raise TypeError(f"variable {name!r} is {array.dtype}, not float32")
        if sparse and array.ndim != 2:
            raise ValueError(f"the sparse variable {name!r} has {array.ndim} dimensions, not 2")
        if sparse:
            number = check(lib.hvd_strategy_add_sparse(
                self._own(), _bytes(name, "the name"), array.ctypes.data, *array.shape))
        else:
            shape = (C.c_int64 * max(array.ndim, 1))(*array.shape)
            number = check(lib.hvd_strategy_add(self._own(), _bytes(name, "the name"),
                                                  array.ctypes.data, array.ndim, shape))
        self._variables[name] = (number, array)

    def add_statistic(self, name, array, mean):
        """Adds an array that each rank changes by itself, before start; mean gets the
        mean over the ranks whenever read_statistics is called."""
        for each in (array, mean):
            if _writable(each, "the statistic").dtype != np.float32 or each.shape != array.shape:
                raise TypeError(f"statistic {name!r} and its mean must be float32 of one shape")
        shape = (C.c_int64 * max(array.ndim, 1))(*array.shape)
        check(lib.hvd_strategy_add_statistic(self._own(), _bytes(name, "the name"),
                                               array.ctypes.data, mean.ctypes.data,
                                               array.ndim, shape))
        self._statistics.append((array, mean))

    def read_statistics(self):
        """Makes the means those of all ranks that make steps."""
        check(lib.hvd_strategy_read_statistics(self._own()))

    def start(self):
        check(lib.hvd_strategy_start(self._own()))

    def gradient(self, name):
        """Returns the array for the gradient of a variable, until it is ready."""
        number, array = self._number(name), self._variables[name][1]
        address = lib.hvd_strategy_gradient(self._own(), number)
        if not address:
            raise Error(-1, lib.hvd_last_error().decode(errors="replace"))
        if array.size == 0:
            return np.empty(array.shape, np.float32)
        memory = (C.c_float * array.size).from_address(address)
        return np.frombuffer(memory, np.float32).reshape(array.shape)

    def ready(self, name):
        check(lib.hvd_strategy_ready(self._own(), self._number(name)))

    def read_rows(self, name, indices):
        """Gets rows of a sparse variable from the parameter servers."""
        indices = row_numbers(indices)
        check(lib.hvd_strategy_read_rows(self._own(), self._number(name),
                                           indices.ctypes.data, indices.size))

    def ready_rows(self, name, indices, rows):
        """Hands over the gradient of a sparse variable: rows, and which rows of it
        these are. Rows of one index are added."""
        indices, rows = row_numbers(indices), np.ascontiguousarray(rows, np.float32)
        width = self._variables[name][1].shape[-1] if name in self._variables else 0
        if rows.size == 0 and indices.size == 0:
            rows = np.empty((0, width), np.float32)
        if rows.ndim != 2 or indices.shape != rows.shape[:1]:
            raise ValueError(f"{indices.size} indices for rows {list(rows.shape)}")
        check(lib.hvd_strategy_ready_rows(self._own(), self._number(name),
                                            indices.ctypes.data, rows.ctypes.data,
                                            *rows.shape))

    def step(self):
        check(lib.hvd_strategy_step(self._own()))

    def abandon(self, reason=None):
        """Gives up a step that this rank cannot make; the others are told."""
        text = _bytes(reason, "the reason") if reason is not None else None
        check(lib.hvd_strategy_abandon(self._own(), text))

    def check(self):
        check(lib.hvd_strategy_check(self._own()))

    def join(self):
        """Says that this rank has no more data. When every rank has joined, all
        hold what the rank that joined last has; it is returned."""
        last = C.c_int(-1)
        check(lib.hvd_strategy_join(self._own(), C.byref(last)))
        return last.value

    def save(self, path):
        """Writes a checkpoint; one rank does."""
        check(lib.hvd_strategy_save(self._own(), _bytes(path, "the path")))

    def load(self, path=None):
        """Loads rank 0's checkpoint on all ranks. Returns False if it is of another
        optimizer; then the state begins anew."""
        text = _bytes(path, "the path") if path is not None else None
        return bool(check(lib.hvd_strategy_load(self._own(), text)))

    def _new_state(self):
        """Returns an array for each tensor of the optimizer's state, by name."""
        state, info = {}, StrategyTensor(size=C.sizeof(StrategyTensor))
        for i in range(check(lib.hvd_strategy_state_count(self._own()))):
            check(lib.hvd_strategy_state_info(self._own(), i, C.byref(info)))
            dtype = np.float32 if info.dtype == DTYPES["float32"] else np.int64
            state[info.name.decode()] = np.zeros(info.shape[:info.ndim], dtype)
        return state

    def read_state(self):
        """Returns the optimizer's state: arrays by name, "w/m", and numbers of
        updates, "w/updates". Not collective."""
        state = self._new_state()
        places = (C.c_void_p * max(len(state), 1))(*(a.ctypes.data for a in state.values()))
        check(lib.hvd_strategy_read_state(self._own(), places))
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
        check(lib.hvd_strategy_write_state(self._own(), places))

    def set_learning_rate(self, rate):
        check(lib.hvd_strategy_set_learning_rate(self._own(), rate))

    def set_momentum(self, momentum):
        check(lib.hvd_strategy_set_momentum(self._own(), momentum))

    def stats(self):
        """Returns hvd_strategy_get_stats as a dict."""
        stats = StrategyStats(size=C.sizeof(StrategyStats))
        check(lib.hvd_strategy_get_stats(self._own(), C.byref(stats)))
        return {name: getattr(stats, name) for name, _ in stats._fields_ if name != "size"}

    def close(self):
        """Waits for what is in flight. Arrays of gradient() are gone then."""
        lib.hvd_strategy_free(self._strategy)
        self._strategy, self._variables, self._statistics = C.c_void_p(), {}, []
        under_way.discard(self)

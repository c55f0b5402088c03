# SPDX-License-Identifier: Apache-2.0
"""Compiled graphs: running them, and what they take of a chip."""
import operator
import threading

import numpy as np

from . import _picture
from ._errors import Error, Status
from ._graph import DTYPES, NAMES, NUMPY, Graph
from ._library import engine

REMEDIES, PIPELINE = 8, 6
MOST_IPUS = 256


def checked(value, dtype, shape, what):
    """Returns an array for the device: C-contiguous, of this dtype and shape. Lists and
    numbers are converted, arrays of another dtype are refused."""
    wanted = NUMPY[dtype]
    if not isinstance(value, np.ndarray):
        value = np.asarray(value)
        if value.dtype.kind in "fiub" and value.dtype != wanted:
            converted = value.astype(wanted)
            if NAMES[dtype] == "int32" and not np.array_equal(converted, value):
                raise TypeError(f"{what} is {value.dtype}, and not whole numbers of int32")
            value = converted
    if value.dtype != wanted:
        raise TypeError(f"{what} is {value.dtype}, the program takes {NAMES[dtype]}: "
                        f"array.astype('{wanted}') converts it")
    if value.shape != tuple(shape):
        raise ValueError(f"{what} has the shape {list(value.shape)}, the program takes "
                         f"{list(shape)}")
    return np.ascontiguousarray(value).reshape(value.shape)


def _check_graph(graph):
    if not isinstance(graph, Graph):
        raise TypeError(f"graph is {type(graph).__name__}, not a Graph")


def _remedy(graph, target, proportion, number, parts=0):
    """Returns the name of a remedy, and what it makes of a graph, or why it cannot."""
    name, found = engine.try_remedy(graph._graph, target, proportion, number, parts)
    if isinstance(found, str):
        found = found.removeprefix(f"remedy: {name}: ")
    else:
        found["fits"] = bool(found["fits"])
    return name, found


class Footprint:
    """
    What a compiled graph takes of a chip. In a notebook it is a picture: the bytes of
    each tile beside the tile's memory, and the cycles of each step. print() shows it as
    text.

    fits: whether the fullest tile has room for all that it would hold.
    target: the name of the chip.
    memory, cycles: dicts with the fields of ipu_memory_info and ipu_program_cycles.
    shares: the bytes of the fullest tile by what they are.
    remedies: if it does not fit, what would change that: a dict of a dict with parts,
        fits, tile_bytes, remote_bytes and seconds, or of a text that says why not.

    Of several chips, over which layers are divided so that the slowest chip is as fast
    as can be:

    ipus: a dict for each chip, with steps, variable_bytes, received_bytes, tile_bytes,
        cycles and seconds. One chip: empty, and so are the next two.
    sharding: what passes between the chips, the fields of ipu_sharding_info; cycles and
        seconds are those of a batch that goes from one chip to the next.
    pipeline: a dict with fits, tile_bytes and seconds: the chips as a pipeline, of an
        inference the time from one batch to the next, of a training that of the batch
        in parts; or a text that says why it can be none.

    memory then has no more than the steps, and fullest_tile_bytes and bytes_per_tile, of
    the fullest tile of all chips; shares and tiles() are empty.
    """

    def __init__(self, graph, target, proportion=0.0, remedies=True, executable=None,
                 ipus=1):
        _check_graph(graph)
        if not 1 <= operator.index(ipus) <= MOST_IPUS:
            raise ValueError(f"ipus is {ipus}: 1 to {MOST_IPUS}")
        self.target, proportion = target, float(proportion)
        self._executable = executable or engine.compile(graph._graph, target, 1, proportion,
                                                        1, ipus)
        self.memory, self.cycles = self._executable.memory(), self._executable.cycles()
        self.shares, self.ipus, self.sharding, self.pipeline = {}, [], {}, {}
        # A program of few steps may be on fewer chips than asked for.
        sharding = self._executable.sharding() if ipus > 1 else {"shards": 1}
        if sharding["shards"] > 1:
            self._spread(graph, proportion, ipus, sharding)
        else:
            self._measure_tile()
        self.fits = self.memory["fullest_tile_bytes"] <= self.memory["bytes_per_tile"]
        self.remedies = dict(_remedy(graph, target, proportion, number)
                             for number in range(REMEDIES if remedies and not self.fits
                                                 else 0))

    def _measure_tile(self):
        """Finds what the fullest tile holds."""
        tile = self._executable.tile(self.memory["fullest_tile"])
        self.shares = {
            "constants": tile["constant_bytes"],
            "variables": tile["always_live_bytes"] - tile["constant_bytes"],
            "activations, streams": tile["tensor_bytes"],
            "temporary": tile["temporary_bytes"],
            "exchange code": tile["exchange_code_bytes"],
            "vertex state": tile["state_bytes"],
            "vertex code": tile["code_bytes"] - tile["exchange_code_bytes"] -
            tile["state_bytes"]}

    def _spread(self, graph, proportion, ipus, sharding):
        """Finds what each of several chips holds and takes."""
        clock = engine.find_target(self.target)["clock_hz"]
        self.sharding = sharding
        self.ipus = [self._executable.chip(i) for i in range(sharding["shards"])]
        for each in self.ipus:
            each["seconds"] = each["cycles"] / clock
        self.memory = {"steps": self.memory["steps"],
                       "bytes_per_tile": self.memory["bytes_per_tile"],
                       "fullest_tile_bytes": max(each["tile_bytes"] for each in self.ipus)}
        self.cycles = {**self.cycles, "total": self.sharding["total_cycles"],
                       "seconds": self.sharding["seconds"]}
        self.pipeline = {
            "fits": self.memory["fullest_tile_bytes"] <= self.memory["bytes_per_tile"],
            "tile_bytes": self.memory["fullest_tile_bytes"],
            "seconds": max(each["seconds"] for each in self.ipus)}
        if graph._trains:
            _, found = _remedy(graph, self.target, proportion, PIPELINE, ipus)
            self.pipeline = found if isinstance(found, str) else {
                key: found[key] for key in ("fits", "tile_bytes", "seconds", "parts")}

    def __bool__(self):
        return self.fits

    def steps(self):
        """Returns the steps of the program, a list of dicts with the fields of
        ipu_step_info."""
        return [self._executable.step(i) for i in range(self.memory["steps"])]

    def tiles(self):
        """Returns the most bytes that each tile holds, an array."""
        if self.ipus:
            return np.array([], np.int64)
        count = engine.find_target(self.target)["tiles"]
        return np.array([self._executable.tile(i)["peak_bytes"] for i in range(count)])

    def text(self):
        """Returns the program, a line for each step."""
        return self._executable.text()

    def __str__(self):
        return _picture.text_of(self)

    def __repr__(self):
        return (f"<ipu.Footprint on {self.target}: {self.memory['fullest_tile_bytes']} of "
                f"{self.memory['bytes_per_tile']} bytes, {1e3 * self.cycles['seconds']:.3f} ms>")

    def _repr_svg_(self):
        return _picture.svg_of(self)

    def _repr_html_(self):
        return _picture.html_of(self)


class Program:
    """
    A graph that is compiled and loaded, with its variables.

    graph: it may not change any more.
    target: "mk1", "mk2", "bow", "c600", or the path of a JSON file.
    allow_out_of_memory: also a program that does not fit is made, and runs.
    memory_proportion: the share of a tile's memory that a product may take for what it
        fetches; 0 stands for 0.6.

    A program that does not fit raises ipu.Error with Status.FULL. Several threads may
    call run; they take turns.
    """

    def __init__(self, graph, target="mk2", *, allow_out_of_memory=False,
                 memory_proportion=0.0):
        _check_graph(graph)
        self.graph, self.target = graph, target
        self._executable = engine.compile(graph._graph, target, int(allow_out_of_memory),
                                          float(memory_proportion), 0, 1)
        self._engine = engine.Engine(self._executable)
        self._lock = threading.Lock()
        self._inputs = dict(graph._inputs)
        self._outputs = {name: tensor._described()[:2]
                         for name, tensor in graph._outputs.items()}

    def _arguments(self, inputs, named):
        """Returns all inputs by name."""
        given = dict(inputs or {}, **named)
        unknown, missing = given.keys() - self._inputs, self._inputs.keys() - given
        if unknown:
            raise ValueError(f"there is no input {', '.join(sorted(unknown))}: the program "
                             f"takes {', '.join(self._inputs) or 'none'}")
        if missing:
            raise ValueError(f"input {', '.join(sorted(missing))} is not given")
        return {name: checked(value, *self._inputs[name], f"input '{name}'")
                for name, value in given.items()}

    def run(self, inputs=None, **named):
        """
        Runs the program once, and returns its outputs, a dict of new arrays.

        inputs: a dict of arrays by name; or each as an argument of its name. Arrays have
            the dtype and the shape of the graph's input. bfloat16 is its bits, uint16.
        """
        arrays = self._arguments(inputs, named)
        results = {name: np.empty(shape, NUMPY[dtype])
                   for name, (dtype, shape) in self._outputs.items()}
        with self._lock:
            for name, array in arrays.items():
                self._engine.connect(name, array, False)
            for name, array in results.items():
                self._engine.connect(name, array, True)
            self._engine.run()
        return results

    def variables(self):
        """Returns the names of all that is kept from run to run, with dtype and shape."""
        found, number = {}, 0
        while (one := self._executable.variable(number)) is not None:
            found[one[0]] = NAMES[one[1]], one[2]
            number += 1
        return found

    def _variable(self, name):
        found = self.variables()
        if name not in found:
            raise ValueError(f"there is no variable '{name}': one of {', '.join(found)}")
        return DTYPES[found[name][0]], found[name][1]

    def read(self, name):
        """Returns a variable, a new array."""
        dtype, shape = self._variable(name)
        array = np.empty(shape, NUMPY[dtype])
        with self._lock:
            self._engine.read(name, array)
        return array

    def write(self, name, value):
        """Gives a variable its elements."""
        array = checked(value, *self._variable(name), f"variable '{name}'")
        with self._lock:
            self._engine.write(name, array)

    def footprint(self):
        """Returns what the program takes of its chip, a Footprint."""
        return Footprint(self.graph, self.target, remedies=False, executable=self._executable)

    def measure(self, on=True):
        """Begins to measure the time of runs on this machine, or ends it."""
        with self._lock:
            self._engine.measure(bool(on))

    def times(self):
        """Returns what was measured, a dict with runs, run_ns and fastest_ns, or None."""
        with self._lock:
            return self._engine.times()

    def profile(self, directory=None, name="program"):
        """Returns the profile (docs/PROFILE.md) as text; writes profile.json and
        report.html to a directory."""
        with self._lock:
            return self._executable.profile(self._engine, name,
                                            None if directory is None else str(directory))

    def close(self):
        """Frees the memory of the device. Closing twice does nothing."""
        with self._lock:
            self._engine.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def fits(graph, target="mk2", *, ipus=1, memory_proportion=0.0, remedies=True):
    """
    Returns whether a graph fits on a chip, or on several: a Footprint, which is true if it
    does. If it does not, its remedies say what would change that; remedies=False leaves
    them out, for which the graph is compiled several times.

    target: "mk1", "mk2", "bow", "c600", or the path of a JSON file.
    ipus: the layers are divided over so many chips, so that the slowest is as fast as can
        be, as ipu-run --fit --ipus does.
    memory_proportion: of Program.
    """
    return Footprint(graph, target, memory_proportion, remedies, ipus=ipus)


__all__ = ["Error", "Footprint", "Program", "Status", "fits"]

# SPDX-License-Identifier: Apache-2.0
"""Reads the files of bench/report/measure, and prints their numbers."""
import csv
import math
import os


class Measurements:
    """A directory of NAME.csv, each with the NAME.command that made it."""

    def __init__(self, directory):
        self.directory = directory

    def names(self):
        return sorted(name[:-len(".csv")] for name in os.listdir(self.directory)
                      if name.endswith(".csv"))

    def rows(self, name):
        """Returns a dictionary per line; none if the table was not measured."""
        path = os.path.join(self.directory, name + ".csv")
        if not os.path.exists(path):
            return []
        with open(path, newline="") as file:
            return list(csv.DictReader(file))

    def command(self, name):
        with open(os.path.join(self.directory, name + ".command")) as file:
            return file.read().strip()

    def sweep(self, name, placement="in_place"):
        """Returns [(bytes, row of hvd, row of MPI)] of a collective."""
        rows = [r for r in self.rows(name) if r["placement"] == placement]
        mpi = {r["bytes"]: r for r in rows if r["implementation"] == "mpi"}
        return [(int(r["bytes"]), r, mpi[r["bytes"]]) for r in rows
                if r["implementation"] == "hvd"]


def bytes_of(number):
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:g} {unit}"
        number /= 1024
    return f"{number:g} GiB"


def rounded(value):
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def geometric_mean(values):
    logs = [math.log(v) for v in values if v > 0]
    return math.exp(sum(logs) / len(logs)) if logs else 0

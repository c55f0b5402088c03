# SPDX-License-Identifier: Apache-2.0
"""Arrays as the trainer library takes them: tuples (name, dtype, shape, array), of which
the first is what the network gets, and the second has the labels."""
import numpy as np

# Names of components. The last of them numbers the rows.
FIRST, LABELS, ROW, ROW_OUTPUT = "x", "labels", "row", "ipu/row"
# The numbers of hvd_dtype, and those of ipu_dtype, by kind.
_DTYPES = {"f": (7, 0), "i": (4, 1)}


def _converted(value, what):
    """Returns a C-contiguous array of float32 or int32."""
    array = np.asarray(value)
    if array.ndim < 1:
        raise ValueError(f"{what} is one number: its first dimension must be the rows")
    if array.dtype.kind == "f":
        return np.ascontiguousarray(array, np.float32)
    if array.dtype.kind not in "iub":
        raise TypeError(f"{what} has elements of {array.dtype}, neither floats nor integers")
    made = np.ascontiguousarray(array, np.int32)
    if array.dtype.itemsize >= 4 and not np.array_equal(made, array):
        raise ValueError(f"{what} has integers beyond int32, which the device has")
    return made


def labels_of(y):
    """Returns labels as the device takes them."""
    return _converted(y, "y")


def _component(name, array):
    return name, _DTYPES["f" if array.dtype.kind == "f" else "i"][0], array.shape, array


def arrays(x, y):
    """Returns the arrays of a data set, the numbers of their rows behind them."""
    named = dict(x) if isinstance(x, dict) else {FIRST: x}
    if not named:
        raise ValueError("x is an empty dict")
    found = [(name, _converted(value, f"x['{name}']" if isinstance(x, dict) else "x"))
             for name, value in named.items()]
    for name in named:
        if name in (LABELS, ROW):
            raise ValueError(f"no input can be called '{name}'")
    if y is not None:
        found.insert(1, (LABELS, _converted(y, "y")))
    count = len(found[0][1])
    for name, array in found:
        if len(array) != count:
            raise ValueError(f"{'y' if name == LABELS else name} has {len(array)} rows, "
                             f"{found[0][0]} has {count}")
    if count == 0:
        raise ValueError("the data has no rows")
    found.append((ROW, np.arange(count, dtype=np.int32)))
    return [_component(name, array) for name, array in found]


def with_labels(x, y):
    """Returns the arrays of a data set that has labels. The trainer library would take
    whatever comes second for them."""
    if y is None:
        raise ValueError("y is None: a loss needs labels")
    return arrays(x, y)


def add_labels(found, labels):
    """Returns the arrays with labels among them."""
    return [found[0], _component(LABELS, labels), *found[1:]]


def spec_of(found):
    """Returns the dtype of the device, and the shape of a row, of each array by name."""
    return {name: (dict(_DTYPES.values())[dtype], tuple(shape[1:]))
            for name, dtype, shape, _ in found}

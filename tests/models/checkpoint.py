# SPDX-License-Identifier: Apache-2.0
"""Reads and writes checkpoints without our code, from docs/CHECKPOINTS.md."""
import ctypes
import json
import struct
import sys
import zlib

import numpy as np

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4",
          "U8": "|u1", "BOOL": "|b1", "BF16": "<u2"}
NAMES = {np.dtype(d): n for n, d in DTYPES.items() if n != "BF16"}


def read(path):
    """Returns the tensors, by name, and the metadata."""
    data = open(path, "rb").read()
    (size,) = struct.unpack("<Q", data[:8])
    assert size % 8 == 0
    header = json.loads(data[8:8 + size].decode())
    metadata = header.pop("__metadata__", {})
    tensors, end = {}, 0
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        assert first == end
        end = last
        raw = data[8 + size + first:8 + size + last]
        tensors[name] = np.frombuffer(raw, DTYPES[entry["dtype"]]).reshape(
            entry["shape"])
        # All lie at multiples of their size.
        assert (8 + size + first) % tensors[name].dtype.itemsize == 0
    assert 8 + size + end == len(data)
    if "crc32" in metadata:
        at = data.index(b'"crc32":"') + 9
        blank = data[:at] + b"0" * 8 + data[at + 8:]
        assert metadata["crc32"] == "%08x" % zlib.crc32(blank)
    return tensors, metadata


def write(path, tensors, metadata=None):
    """Writes a file; a checkpoint if metadata has a step."""
    header, blob = {}, b""
    metadata = dict(metadata or {})
    if "step" in metadata:
        metadata = {"crc32": "0" * 8, "checkpoint": "1", "final": "false",
                    "time": "1700000000.5", "state": "{}", **metadata}
    if metadata:
        header["__metadata__"] = metadata
    arrays = {n: np.asarray(v, order="C") for n, v in tensors.items()}
    for name in sorted(arrays, key=lambda n: -arrays[n].dtype.itemsize):
        value = arrays[name]
        raw = value.tobytes()
        header[name] = {"dtype": NAMES[value.dtype], "shape": value.shape,
                        "data_offsets": [len(blob), len(blob) + len(raw)]}
        blob += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    data = struct.pack("<Q", len(text)) + text + blob
    if "step" in metadata:
        crc = b"%08x" % zlib.crc32(data)
        data = data.replace(b"0" * 8, crc, 1)
    open(path, "wb").write(data)


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int32),
                ("ndim", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("data", ctypes.c_void_p)]


class Info(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("final", ctypes.c_int32),
                ("step", ctypes.c_int64), ("time", ctypes.c_double),
                ("metric", ctypes.c_double), ("bytes", ctypes.c_int64),
                ("json", ctypes.c_char_p)]


HVD = {np.dtype("<f4"): 7, np.dtype("<f8"): 8, np.dtype("<i8"): 5,
       np.dtype("bool"): 9}


def save(folder, step, tensors, text="{}", metric=None):
    """Has libhvd-train save a checkpoint."""
    library = ctypes.CDLL("libhvd-train.so")
    writer, info = ctypes.c_void_p(), Info()
    held = [np.asarray(t, order="C") for t in tensors.values()]
    shapes = [(ctypes.c_int64 * max(1, t.ndim))(*t.shape) for t in held]
    array = (Tensor * len(held))(*[
        Tensor(name.encode(), HVD[t.dtype], t.ndim, shape, t.ctypes.data)
        for name, t, shape in zip(tensors, held, shapes)])
    assert library.hvd_checkpoint_writer_open(
        folder.encode(), None, ctypes.byref(writer)) == 0
    library.hvd_checkpoint_info_init(ctypes.byref(info),
                                     ctypes.c_size_t(ctypes.sizeof(info)))
    info.step, info.json = step, text.encode()
    if metric is not None:
        info.metric = metric
    assert library.hvd_checkpoint_save(writer, ctypes.byref(info), array,
                                       len(held)) == 0
    assert library.hvd_checkpoint_writer_close(writer) == 0


def example(scale=1.0):
    return {"a/kernel": (np.arange(6, dtype="<f4").reshape(2, 3) / 7 * scale)
            .astype("<f4"),
            "flag": np.array([True, False, True]),
            "optimizer/m": np.linspace(-1, 1, 5) * scale,
            "optimizer/count": np.int64(12)}


def same(left, right):
    assert set(left) == set(right), (set(left), set(right))
    for name in left:
        assert np.array_equal(left[name], right[name]), name
        assert left[name].shape == right[name].shape, name


if __name__ == "__main__":
    exec(sys.stdin.read())

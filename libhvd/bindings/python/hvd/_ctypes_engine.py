# SPDX-License-Identifier: Apache-2.0
"""
What the module hvd._hvd does, by ctypes: for places where that module could not
be built. Names, results and errors are the same; a call takes some 20 µs more.
"""
import ctypes as C

from ._constants import DTYPES, KINDS, MAX_DIMS
from ._errors import integer, real, text
from ._library import Request, Tensor, check, lib

_SLICE_NS = 50_000_000  # between two looks at signals
_BROADCAST = KINDS["broadcast"]
_TYPES = {number: name for name, number in DTYPES.items()}
_SIZES = {number: lib.hvd_dtype_size(number) for number in _TYPES}
_LETTERS = {"?": "bool", "e": "float16", "f": "float32", "d": "float64", "B": "uint8",
            "H": "uint16"}
_SIGNED = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}

error_class = abandoned = None


def bind(library, error, kept):
    """Is told what hvd._hvd is told."""
    global error_class, abandoned
    error_class, abandoned = error, kept


class View:
    """Memory with a dtype and a shape; owner keeps it alive."""
    __slots__ = ("address", "dtype", "shape", "_owner", "_memory", "_dims")

    def __init__(self, address, dtype, shape, owner):
        self._memory = None
        self.address, self.dtype = address, integer(dtype, "dtype")
        if self.dtype not in _TYPES:
            raise ValueError(f"there is no dtype {self.dtype}")
        self.shape = tuple(integer(extent, "an extent", 64) for extent in shape)
        if len(self.shape) > MAX_DIMS:
            raise ValueError(f"{len(self.shape)} dimensions are more than {MAX_DIMS}")
        self._owner, self._dims = owner, None

    def __del__(self):
        if getattr(self, "_memory", None):
            lib.hvd_free(self._memory)

    @property
    def __array_interface__(self):
        import numpy as np
        name = _TYPES[self.dtype]
        return {"version": 3, "shape": self.shape, "data": (self.address or 0, False),
                "typestr": np.dtype("uint16" if name == "bfloat16" else name).str}

    def dims(self):
        """Returns the shape for the library, which must not outlive this view."""
        if self._dims is None:
            self._dims = (C.c_int64 * max(len(self.shape), 1))(*self.shape)
        return C.cast(self._dims, C.POINTER(C.c_int64))


def _own(memory, dtype, shape):
    view = View(memory, dtype, shape, None)
    view._memory = memory
    return view


class _Buffer(C.Structure):  # Py_buffer
    _fields_ = [("buf", C.c_void_p), ("obj", C.c_void_p), ("len", C.c_ssize_t),
                ("itemsize", C.c_ssize_t), ("readonly", C.c_int), ("ndim", C.c_int),
                ("format", C.c_char_p), ("shape", C.c_void_p), ("strides", C.c_void_p),
                ("suboffsets", C.c_void_p), ("internal", C.c_void_p)]


class _Exported:
    """Holds a buffer that an object exports."""

    def __init__(self):
        self.buffer = _Buffer()

    def __del__(self):
        if self.buffer.obj:
            C.pythonapi.PyBuffer_Release(C.byref(self.buffer))


_ANY = 0x0020 | 0x0018  # PyBUF_C_CONTIGUOUS without PyBUF_WRITABLE
_FORMAT, _WRITABLE = 0x0004, 0x0001
C.pythonapi.PyObject_GetBuffer.argtypes = [C.py_object, C.POINTER(_Buffer), C.c_int]


def _dtype_of(letters, size):
    letters = letters.lstrip("@=<") if letters[:1] in ("@", "=", "<") else letters
    name = _SIGNED.get(size) if letters in tuple("bhilqn") else _LETTERS.get(letters)
    return DTYPES[name] if name and _SIZES[DTYPES[name]] == size else None


def view(obj, written):
    """Returns a View of a contiguous buffer of a dtype that the library has; None if
    obj exports no such buffer."""
    held = _Exported()
    try:
        C.pythonapi.PyObject_GetBuffer(obj, C.byref(held.buffer),
                                       _ANY | _FORMAT | (_WRITABLE if written is True else 0))
    except (BufferError, TypeError, ValueError):
        return None
    b = held.buffer
    dtype = _dtype_of((b.format or b"B").decode(), b.itemsize)
    if dtype is None or b.ndim > MAX_DIMS:
        return None
    return View(b.buf, dtype, (C.c_ssize_t * b.ndim).from_address(b.shape) if b.ndim else (),
                held)


def allocate(dtype, shape):
    """Returns a View of new memory of hvd_malloc."""
    found = View(None, dtype, shape, None)
    size = _SIZES[found.dtype]
    for extent in found.shape:
        size = -1 if extent < 0 or size < 0 else size * extent
    if not 0 <= size < 1 << 63:
        raise ValueError(f"there is no array of the shape {shape!r}")
    memory = lib.hvd_malloc(size)
    if not memory:
        check(-7)
    return _own(memory, found.dtype, found.shape)


def _fill(kind, op, root, input, output, name, prescale, postscale, process_set, priority,
          flags, compression, capacity, splits, counts):
    r = Request()
    lib.hvd_request_init(C.byref(r), C.sizeof(r))
    r.kind, r.op, r.root = integer(kind, "kind"), integer(op, "op"), integer(root, "root")
    like = input if input is not None else output if r.kind == _BROADCAST else None
    if like is not None:
        r.dtype, r.ndim, r.shape = like.dtype, len(like.shape), like.dims()
    r.input = input.address if input is not None else None
    r.output = output.address if output is not None else None
    r.name = text(name, "the name") if name is not None else None
    r.prescale, r.postscale = real(prescale, "prescale"), real(postscale, "postscale")
    r.process_set = integer(process_set, "process_set")
    r.priority, r.flags = integer(priority, "priority"), integer(flags, "flags")
    r.compression = integer(compression, "compression")
    r.capacity = integer(capacity, "capacity", 64)
    for field, rows in ("splits", splits), ("counts", counts):
        if rows is not None:
            setattr(r, field, C.cast(rows.address, C.POINTER(C.c_int64)))
    return r


def _pass(function, fields):
    request, handle = _fill(*fields), C.c_int64()
    check(function(C.byref(request), C.byref(handle)))
    return handle.value


def submit(*fields):
    """Submits a request and returns its handle."""
    return _pass(lib.hvd_submit, fields)


def submit_group(name, members):
    """Submits requests as a group and returns their handles."""
    requests = [_fill(*fields) for fields in members]
    pointers = (C.POINTER(Request) * len(requests))(*map(C.pointer, requests))
    handles = (C.c_int64 * len(requests))()
    check(lib.hvd_submit_group(text(name, "the name") if name is not None else None,
                               pointers, len(requests), handles))
    return list(handles)


def wait(handle, wanted):
    """Waits for a request. Returns a View of its output if the library has made it."""
    while check(lib.hvd_wait_for(handle, _SLICE_NS)) == 0:
        pass  # here Python calls the handlers of signals
    if not wanted:
        check(lib.hvd_wait(handle))
        return None
    tensor = Tensor(size=C.sizeof(Tensor))
    check(lib.hvd_wait_output(handle, C.byref(tensor)))
    return _own(tensor.data, tensor.dtype, tensor.shape[:tensor.ndim]) if tensor.data else None


def run(*fields):
    """Submits a request and waits for it."""
    handle, output = _pass(lib.hvd_run, fields), fields[4]
    try:
        return wait(handle, output is None) if handle else None
    except error_class:
        raise
    except BaseException:
        abandoned.extend((fields[3], output, fields[14]))
        raise


def poll(handle):
    """Returns whether a request is done."""
    return bool(check(lib.hvd_poll(handle)))


_under_way = set()  # what Repeated requests use


class Repeated:
    """A request that is made again in each step: see extension/repeated.c."""
    __slots__ = ("parameter", "fields", "address", "finish", "passes", "delay", "_begin",
                 "_begun", "_complaint", "_gradient", "_handle")

    def __init__(self, parameter, begin, begun, complaint):
        self.parameter, self._begin, self._begun = parameter, begin, begun
        self._complaint, self.finish, self.passes, self.delay = complaint, None, 0, 0
        self.forget()

    @property
    def is_begun(self):
        """Whether it is under way."""
        return self._handle is not None or self.finish is not None

    def __call__(self, *_):
        if self.is_begun or self.delay <= 0:
            raise AssertionError(self._complaint)
        self.delay -= 1
        if self.delay == 0:
            self.start()

    def start(self):
        """Begins the request now."""
        gradient = self.parameter.grad
        if self.fields is not None and gradient is self._gradient \
                and gradient.data_ptr() == self.address:
            try:
                self._submit()
                return
            except error_class as error:
                self._begin(self, error)
                return
        self._begin(self)

    def keep(self, fields, gradient, address):
        """Keeps a request, and submits it."""
        self.fields, self._gradient, self.address = fields, gradient, address
        self._submit()

    def _submit(self):
        self._handle = submit(*self.fields)
        _under_way.add(self)
        self._begun.append(self)

    def forget(self):
        """Keeps nothing any more. What is under way goes on."""
        self._handle = self.fields = self._gradient = self.address = None

    def end(self):
        """Waits for the request."""
        handle = self._handle
        while check(lib.hvd_wait_for(handle, _SLICE_NS)) == 0:
            pass
        self._handle, self.delay = None, self.passes
        _under_way.discard(self)
        check(lib.hvd_wait(handle))


def wait_repeated(begun):
    """Waits for the requests at the beginning of the list, up to one that is not under
    way here, and removes them. If one fails, it is the first of the list afterwards."""
    done = 0
    try:
        while done < len(begun) and begun[done]._handle is not None:
            begun[done].end()
            done += 1
    finally:
        del begun[:done]

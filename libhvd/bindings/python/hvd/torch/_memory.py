# SPDX-License-Identifier: Apache-2.0
"""
Has malloc keep the memory that a training frees.

PyTorch takes the memory of each tensor from malloc. glibc maps large blocks anew, unmaps
those that are freed, and gives back the end of its heap. A training allocates the same
tensors in each step, so the kernel would find and clear the same pages in each step,
which takes a quarter of the step of a small convolutional network. Once a training
begins, free memory stays with the process instead.

Nothing is changed by an import or by init(): a program may read and drop large data
before it trains, or not train at all.
"""
import ctypes
import os

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3  # of glibc's malloc.h
# Larger blocks are mapped and unmapped: their sum would be too much to keep, and clearing
# pages is little beside the work on so many values.
_MAPPED_FROM = 2**30
_NEVER, _GROWTH = -1, 2**26

# The settings of users that say how much memory malloc is to keep.
_VARIABLES = ("MALLOC_MMAP_MAX_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_",
              "MALLOC_TRIM_THRESHOLD_")
_TUNABLES = ("glibc.malloc.mmap_max", "glibc.malloc.mmap_threshold", "glibc.malloc.top_pad",
             "glibc.malloc.trim_threshold")
_WORDS = {"": True, "1": True, "on": True, "true": True, "yes": True,
          "0": False, "off": False, "false": False, "no": False}

_kept = None  # whether malloc keeps memory; None: nobody has asked for it yet


def _is_wanted():
    word = os.environ.get("HVD_TORCH_KEEP_MEMORY", "")
    if word.lower() not in _WORDS:
        raise ValueError(f"HVD_TORCH_KEEP_MEMORY is '{word}', neither yes (1, on, true, yes) nor "
                         "no (0, off, false, no)")
    tunables = {each.partition("=")[0]
                for each in os.environ.get("GLIBC_TUNABLES", "").split(":")}
    return (_WORDS[word.lower()] and not any(name in os.environ for name in _VARIABLES)
            and tunables.isdisjoint(_TUNABLES))


class _Counts(ctypes.Structure):
    """The counts that mallinfo returns: sizes modulo 2 ** 32."""
    _fields_ = [(name, ctypes.c_uint) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost")]


def _glibc():
    """Returns glibc, if malloc is glibc's; None if the process has another C library, or
    another malloc, which was preloaded or linked to Python. glibc's own count of what is
    allocated says so: where the address of malloc is that of a stub of Python's, all look
    alike."""
    try:
        glibc = ctypes.CDLL("libc.so.6")
        glibc.gnu_get_libc_version
        glibc.mallinfo.restype = _Counts
    except (AttributeError, OSError):
        return None

    def allocated():
        counts = glibc.mallinfo()
        return counts.uordblks + counts.hblkhd

    program, before = ctypes.CDLL(None), allocated()
    program.malloc.restype, program.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    program.free.restype, program.free.argtypes = None, [ctypes.c_void_p]
    block = program.malloc(_GROWTH)
    grown = (allocated() - before) % 2**32
    program.free(block)
    return glibc if _GROWTH <= grown < 2**31 else None


def keep():
    """Has glibc's malloc keep freed memory from now on, unless the user has decided
    otherwise. Returns whether it does."""
    global _kept
    if _kept is None:
        glibc = _glibc() if _is_wanted() else None
        _kept = glibc is not None and all(
            glibc.mallopt(*setting) for setting in ((_M_MMAP_THRESHOLD, _MAPPED_FROM),
                                                    (_M_TRIM_THRESHOLD, _NEVER),
                                                    (_M_TOP_PAD, _GROWTH)))
    return _kept

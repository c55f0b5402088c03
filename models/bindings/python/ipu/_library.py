# SPDX-License-Identifier: Apache-2.0
"""
Opens libhvd, libipu and libhvd-train, and imports the module ipu._ipu, which needs
them.

libhvd is that of the package hvd, so that both packages work in one world. The others
are in one of the folders of PLACES, or where the system finds them.
"""
import ctypes
import os

from hvd import Error as HvdError
from hvd._library import PLACES, lib as libhvd

from ._errors import Error


def _load(name):
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.join(here, *where, name) for where in PLACES]
    if os.environ.get("HVD_LIBRARY"):
        places.insert(0, os.path.join(os.path.dirname(os.environ["HVD_LIBRARY"]), name))
    for place in places:
        if os.path.exists(place):
            return ctypes.CDLL(place)
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise ImportError(f"{name} is neither in {', '.join(places)} nor where the system "
                          f"looks: {error}") from None


# The libraries stay open as long as the process lives.
_opened = [libhvd, _load("libipu.so.0"), _load("libhvd-train.so.0")]

from . import _ipu as engine  # noqa: E402 it needs the libraries

engine.bind(Error, HvdError)

# SPDX-License-Identifier: Apache-2.0
"""Descriptions of clusters (hvd_cluster.h)."""
import ctypes as C
import json

from ._errors import Error, integer, text as _bytes
from ._library import check, lib, written


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
            status = lib.hvd_cluster_load(_bytes(path, "the path"), 1, C.byref(self._cluster))
        elif text is not None:
            data = _bytes(json.dumps(text) if isinstance(text, dict) else text, "the cluster")
            status = lib.hvd_cluster_parse(data, len(data), 1, C.byref(self._cluster))
        else:
            status = lib.hvd_cluster_from_environment(C.byref(self._cluster))
        if check(status) == 0 and text is path is None:
            raise ValueError("TF_CONFIG is not set")

    def __del__(self):
        lib.hvd_cluster_free(self._cluster)

    def size(self):
        return check(lib.hvd_cluster_size(self._cluster))

    def rank(self):
        return check(lib.hvd_cluster_rank(self._cluster))

    def is_chief(self):
        return bool(check(lib.hvd_cluster_is_chief(self._cluster)))

    def address(self, role, index):
        address = lib.hvd_cluster_address(self._cluster, _role(role), integer(index, "an index"))
        if address is None:
            raise Error(-1, lib.hvd_last_error().decode(errors="replace"))
        return address.decode()

    def rank_servers(self):
        return check(lib.hvd_cluster_rank_servers(self._cluster))

    def check_allreduce(self):
        check(lib.hvd_cluster_check_allreduce(self._cluster))

    def text(self):
        """Returns the text that all tasks share, without a task."""
        return written(lib.hvd_cluster_text, self._cluster)

    def tf_config(self, role, index):
        """Returns the TF_CONFIG of a task."""
        return written(lib.hvd_cluster_tf_config, self._cluster, _role(role),
                        integer(index, "an index"))


def _role(name):
    return check(lib.hvd_role_from_name(_bytes(name, "a role")))

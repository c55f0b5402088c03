# SPDX-License-Identifier: Apache-2.0
"""What programs reach through _basics, an object in the modules of a framework."""
import hvd
from hvd.torch import _basics as functions


class HorovodBasics:
    """The functions of hvd.torch that have nothing to do with tensors, as methods."""

    def __getattr__(self, name):
        if name not in functions.__all__:
            raise AttributeError(f"{type(self).__name__} has no {name}")
        return getattr(functions, name)

    def _get_process_set_ids_and_ranks(self):
        """Returns the ranks of each process set by its id."""
        return {each.id: each.ranks() for each in hvd.process_sets()}


_basics = HorovodBasics()

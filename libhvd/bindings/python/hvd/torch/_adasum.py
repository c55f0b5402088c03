# SPDX-License-Identifier: Apache-2.0
"""
What DistributedOptimizer does differently with Adasum. Not gradients are combined, but
the changes that the wrapped optimizer would make on each rank alone: so its momentum and
its other state are this rank's own. A change is computed when the gradient of its
parameter is there, in a step for that parameter alone; the parameter gets back its
values of before, so that the program sees no half step, and step() adds what the ranks'
changes have become together.
"""
import torch

from hvd._engine import engine

from ._requests import DTYPES, tensor_of
from .mpi_ops import Adasum, allreduce_async_, synchronize


class DeltaMethods:
    """The methods of _DistributedOptimizer that these replace have the same names."""

    def _begin(self, slot):
        parameter = slot.parameter
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        delta = self._change(slot)
        small, context = self._compression.compress(delta)
        handle = allreduce_async_(small, name=slot.name, op=Adasum,
                                  process_set=self.process_set)

        def finish():
            synchronize(handle)
            with torch.no_grad():
                parameter.add_(self._compression.decompress(small, context))
        slot.finish = finish
        self._begun.append(slot)

    def _change(self, slot):
        """Returns what a step of the wrapped optimizer changes in a parameter."""
        parameter = slot.parameter
        if slot.change is None:
            slot.change = tensor_of(engine.allocate(DTYPES[parameter.dtype],
                                                    parameter.shape))
        delta, before = slot.change, parameter.detach().clone()
        every = self.param_groups
        own = next(g for g in every if any(parameter is p for p in g["params"]))
        members = own["params"]
        own["params"], self.param_groups = [parameter], [own]
        try:
            super(self.__class__, self).step()
        finally:
            own["params"], self.param_groups = members, every
        with torch.no_grad():
            delta.copy_(parameter).sub_(before)
            parameter.copy_(before)
        return delta

    def synchronize(self):
        """Does nothing: there are no reduced gradients to wait for."""

    def skip_synchronize(self):
        """Is refused, for a step that takes the ranks' changes together must wait."""
        raise AssertionError("Skipping synchronization is not supported when using Adasum "
                             "optimizer.")

    def step(self, closure=None):
        """Begins what is not under way, and adds the changes. A closure runs before, so
        that its gradients count."""
        if not self._takes_part:
            return super(self.__class__, self).step(closure)
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for slot in self._slots:
            if slot.finish is None:
                self._begin(slot)
        self._wait_for_all()
        self.set_backward_passes_per_step(self.backward_passes_per_step)
        return loss


def methods():
    """Returns the replacements, by name."""
    return {name: value for name, value in vars(DeltaMethods).items()
            if name not in ("__module__", "__dict__", "__weakref__", "__doc__")}

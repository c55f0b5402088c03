# SPDX-License-Identifier: Apache-2.0
"""The state of a training in PyTorch."""
import copy

import torch

from ..functions import broadcast_object, broadcast_optimizer_state, broadcast_parameters
from ._loop import ObjectState
from .sampler import ElasticSampler


class StateHandler:
    """Keeps a copy of the state_dict of an object. A class for other objects overrides
    sync."""

    def __init__(self, value):
        self.set_value(value)

    def set_value(self, value):
        """Takes another object, and a copy of it."""
        self.value = value
        self.save()

    def save(self):
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self):
        self.value.load_state_dict(self._saved)

    def sync(self):
        """Gives all ranks what rank 0 has."""
        raise NotImplementedError


class ModelStateHandler(StateHandler):
    """For torch.nn.Module."""

    def sync(self):
        broadcast_parameters(self.value.state_dict(), root_rank=0)


class OptimizerStateHandler(StateHandler):
    """For torch.optim.Optimizer."""

    def restore(self):
        super().restore()
        # Gradients may be those of a step that has failed.
        for group in self.value.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    def sync(self):
        broadcast_optimizer_state(self.value, root_rank=0)


class SamplerStateHandler(StateHandler):
    """For ElasticSampler."""

    def sync(self):
        self.value.load_state_dict(broadcast_object(self.value.state_dict()))


_registry = [(torch.nn.Module, ModelStateHandler),
             (torch.optim.Optimizer, OptimizerStateHandler),
             (ElasticSampler, SamplerStateHandler)]


def get_handler_registry():
    """Returns the pairs of a class and the StateHandler of its objects."""
    return _registry


def set_handler_registry(registry):
    """Replaces these pairs."""
    global _registry
    _registry = registry


class TorchState(ObjectState):
    """
    A model, an optimizer, and what else is given by name: each is an attribute. Modules,
    optimizers and ElasticSamplers are saved and sent by their state_dict, other objects
    by pickle. save() and commit() make copies in memory; restore() goes back to them;
    sync() gives all ranks what rank 0 has, and leaves the copies as they are.
    """

    def __init__(self, model=None, optimizer=None, **kwargs):
        kwargs.update(model=model, optimizer=optimizer)
        self._handlers, objects = {}, {}
        for name, value in kwargs.items():
            handler = next((make for kind, make in _registry if isinstance(value, kind)), None)
            if handler:
                self._handlers[name] = handler(value)
                super().__setattr__(name, value)
            else:
                objects[name] = value
        super().__init__(**objects)

    def __setattr__(self, name, value):
        if name in self.__dict__.get("_handlers", ()):
            self._handlers[name].set_value(value)
        super().__setattr__(name, value)

    def save(self):
        for handler in self._handlers.values():
            handler.save()
        super().save()

    def restore(self):
        for handler in self._handlers.values():
            handler.restore()
        super().restore()

    def sync(self):
        for handler in self._handlers.values():
            handler.sync()
        super().sync()

    def reset(self):
        for handler in self._handlers.values():
            if isinstance(handler.value, ElasticSampler):
                handler.value.reset()

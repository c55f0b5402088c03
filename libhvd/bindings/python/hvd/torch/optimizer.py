# SPDX-License-Identifier: Apache-2.0
"""
An optimizer that reduces gradients over all ranks while backward still computes.

A hook on the node that accumulates the gradient of a parameter runs when that gradient
is written. After backward_passes_per_step passes it begins an allreduce in place;
synchronize(), which step() calls, waits for all of them. The first time, the hook moves
the gradient into memory of hvd_malloc, which all ranks of a host share: there it is
reduced without a copy. It stays there as long as the program zeroes gradients, which is
what zero_grad() of PyTorch 1.13 does by default.
"""
import atexit
import contextlib
import warnings
import weakref

import torch

from hvd._engine import engine
from hvd._errors import Error
from hvd._requests import keep_if_lost

from . import _adasum, _memory
from ._basics import global_process_set, may_be_several
from ._requests import DTYPES, request, tensor_of, view_of
from .compression import Compression
from .exceptions import translate
from .mpi_ops import (Adasum, Average, allreduce_async_, grouped_allreduce_async_,
                      sparse_allreduce_async, synchronize)

#: Smaller gradients travel inside of the messages anyway.
_SHARED_BYTES = 4096


# Parameters whose gradients are in shared memory, by their id.
_sharing = {}


def _share(parameter):
    """Moves the gradient of a parameter into memory that the ranks share."""
    gradient = parameter.grad
    with torch.no_grad():
        copy = tensor_of(engine.allocate(DTYPES[gradient.dtype], gradient.shape))
        parameter.grad = copy.copy_(gradient)
    number = id(parameter)
    _sharing[number] = weakref.ref(parameter, lambda _: _sharing.pop(number, None))
    return parameter.grad


@atexit.register
def _let_go():
    """Frees the gradients in shared memory. PyTorch frees parameters of some programs
    when the interpreter has ended; an array of numpy below them would then wait for the
    interpreter's lock for ever."""
    for reference in list(_sharing.values()):
        parameter = reference()
        if parameter is not None:
            parameter.grad = None


def _named(named_parameters, groups):
    """Returns the name of each parameter; all must have one, and no two the same."""
    everything = [p for group in groups for p in group["params"]]
    if named_parameters is None:
        return {p: f"allreduce.noname.{i}.{j}" for i, group in enumerate(groups)
                for j, p in enumerate(group["params"])}
    pairs = list(named_parameters)
    if any(not isinstance(pair, tuple) for pair in pairs):
        raise ValueError("named_parameters should be a sequence of tuples (name, parameter), "
                         "usually produced by model.named_parameters().")
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError("Parameter names in named_parameters must be unique. Found "
                         f"duplicates: {', '.join(twice)}")
    found = {parameter: name for name, parameter in pairs}
    if any(p not in found for p in everything):
        raise ValueError("named_parameters was specified, but one or more model parameters "
                         "were not named.")
    return found


def _divided(groups, parameters):
    """Returns the groups that the user asks for, as lists of parameters."""
    if groups is None:
        return []
    if isinstance(groups, int):
        if groups <= 0:
            return []
        n = min(groups, len(parameters))
        edges = [i * len(parameters) // n for i in range(n + 1)] if n else []
        return [parameters[a:b] for a, b in zip(edges, edges[1:])]
    if not isinstance(groups, list) or not all(isinstance(each, list) for each in groups):
        raise ValueError("groups should be a non-negative integer or a list of lists of "
                         "parameters.")
    known = {id(p) for p in parameters}
    members = [id(p) for group in groups for p in group]
    if len(set(members)) != len(members):
        raise ValueError("A parameter can only appear once in groups.")
    return [[p for p in group if id(p) in known] for group in groups]


_TOO_MANY = ("Gradients were computed more than backward_passes_per_step times before "
             "call to step(). Increase backward_passes_per_step to accumulate gradients "
             "locally.")


class _Slot(engine.Repeated):
    """
    What the optimizer knows of a parameter. A gradient that stays where it is, and is
    reduced as it is, has the same request in each step. That is kept, because to describe
    a request takes several times as long as to submit it. The slot is also the hook.
    """
    __slots__ = ("name", "group", "shared", "change",
                 "__weakref__")

    def __init__(self, parameter, name, begin, begun):
        super().__init__(parameter, begin, begun, _TOO_MANY)
        self.name, self.group = name, None
        self.shared = None  # the address of the gradient, if ranks share its memory
        self.change = None  # with Adasum: of the parameter, in such memory

    def forget(self):
        """Forgets where the gradient is: in another world, other memory is shared."""
        self.shared = self.change = None
        super().forget()

    def is_sparse(self):
        return self.parameter.grad is not None and self.parameter.grad.is_sparse


class _DistributedOptimizer(torch.optim.Optimizer):
    def __init__(self, params, named_parameters, compression, backward_passes_per_step, op,
                 gradient_predivide_factor, groups, sparse_as_dense, process_set):
        super(self.__class__, self).__init__(params)
        self._compression, self._op, self.process_set = compression, op, process_set
        self._factor, self._sparse_as_dense = gradient_predivide_factor, sparse_as_dense
        self._parameter_names = _named(named_parameters, self.param_groups)
        required = [p for group in self.param_groups for p in group["params"]
                    if p.requires_grad]
        self._begun = []  # slots whose reductions are under way
        self._slots = [_Slot(p, self._parameter_names[p], self._begin, self._begun)
                       for p in required]
        self._form_groups(_divided(groups, required))
        self._nodes, self._ready = [], {}
        self._synchronized, self._should_synchronize = False, True
        self._takes_part = process_set.included() and may_be_several()
        if self._takes_part:
            self._register_hooks()
        self.set_backward_passes_per_step(backward_passes_per_step)

    def _form_groups(self, groups):
        slots = {id(slot.parameter): slot for slot in self._slots}
        for group in groups:
            members = [slots[id(p)] for p in group]
            for slot in members:
                slot.group = members

    # ---------------------------------------------------------------- gradients

    def _register_hooks(self):
        for slot in self._slots:
            # Its node lives as long as somebody holds it.
            node = slot.parameter.expand_as(slot.parameter).grad_fn.next_functions[0][0]
            node.register_hook(slot)
            self._nodes.append(node)

    def _begin(self, slot, error=None):
        """Begins the reduction of a gradient, or of its group if it was the last; raises
        the error if the request that was kept has been refused."""
        if error:
            raise translate(error) from None
        group = slot.group
        if group is None or (slot.is_sparse() and not self._sparse_as_dense):
            self._begin_now(slot)
            return
        ready = self._ready.get(id(group), 0) + 1
        self._ready[id(group)] = ready
        if ready == len(group):
            finish = self._reduce(group)
            for member in group:
                member.finish = finish
            self._begun.extend(group)

    def _begin_now(self, slot):
        """Begins the reduction of one gradient, whose request is not kept."""
        finish = self._reduce([slot])
        if finish:
            slot.finish = finish
            self._begun.append(slot)

    def _scales(self):
        if self._op != Average or self._factor == 1.0:
            return {}
        return {"prescale_factor": 1.0 / self._factor, "postscale_factor": self._factor}

    def _dense(self, slot):
        """Returns the gradient of a parameter, made if it has none, contiguous, and in
        shared memory if it is dense."""
        parameter = slot.parameter
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        gradient = parameter.grad
        if gradient.is_sparse:
            return gradient.to_dense()
        if slot.shared == gradient.data_ptr():
            return gradient.detach()
        if gradient.numel() * gradient.element_size() >= _SHARED_BYTES \
                or not gradient.is_contiguous():
            slot.shared = _share(parameter).data_ptr()
        return parameter.grad.detach()

    def _prepare(self, slot, gradient):
        """Keeps the request that reduces a gradient, where it is, in each step, and
        begins it."""
        scales = self._scales()
        view = view_of(gradient)
        fields = request("allreduce", view, view, slot.name, int(self._op), 0,
                         scales.get("prescale_factor", 1.0),
                         scales.get("postscale_factor", 1.0),
                         self.process_set.__index__())
        try:
            slot.keep(fields, slot.parameter.grad, gradient.data_ptr())
        except Error as error:
            raise translate(error) from None

    def _reduce(self, slots):
        """Begins the reduction of gradients. Returns a function that waits for it and
        writes the results, or None if the slot does that itself."""
        first = slots[0]
        if len(slots) == 1 and first.is_sparse() and not self._sparse_as_dense:
            result = sparse_allreduce_async(first.parameter.grad, first.name, self._op,
                                            self.process_set)
            return _once(lambda: _set_sparse(first.parameter, result()))
        dense = [self._dense(slot) for slot in slots]
        if len(slots) == 1 and first.group is None \
                and self._compression is Compression.none and not first.is_sparse():
            self._prepare(first, dense[0])
            return None
        small, contexts = zip(*map(self._compression.compress, dense))
        options = dict(op=self._op, process_set=self.process_set, name=first.name,
                       **self._scales())
        if len(small) == 1:
            handle = allreduce_async_(small[0], **options)
        else:
            handle = grouped_allreduce_async_(list(small), **options)

        def finish():
            synchronize(handle)
            for slot, reduced, context in zip(slots, small, contexts):
                _set_dense(slot.parameter, self._compression.decompress(reduced, context))
        return _once(finish)

    def _begin_rest(self):
        """Begins what no backward pass has begun."""
        for slot in self._slots:
            if slot.is_begun:
                continue
            if slot.group is None:
                slot.start()
            else:
                self._begin_now(slot)

    def _wait_for_all(self):
        """Waits for what is under way. If some of it has failed, it raises the first
        failure when the rest is done; a signal's exception ends the wait at once, and
        the rest can be waited for later."""
        failure = None
        while self._begun:
            try:
                engine.wait_repeated(self._begun)
                if self._begun:
                    self._begun[0].finish()
            except Error as error:
                keep_if_lost(error, self._begun[0].fields)
                failure = failure or translate(error)
            except (RuntimeError, ValueError) as error:
                failure = failure or error
            if self._begun:
                slot = self._begun.pop(0)
                slot.finish, slot.delay = None, slot.passes
        self._ready.clear()
        if failure:
            raise failure

    # -------------------------------------------------------------------- public

    def synchronize(self):
        """Waits until all gradients are those of all ranks. It begins those that are not
        under way; a parameter without a gradient gives zeros."""
        if self._takes_part:
            if len(self._begun) < len(self._slots):
                self._begin_rest()
            self._wait_for_all()
        self._synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self):
        """Has step() not reduce gradients: after a synchronize() of the program's own."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def set_backward_passes_per_step(self, passes):
        """Sets after how many backward passes a gradient is reduced."""
        self.backward_passes_per_step = passes
        for slot in self._slots:
            slot.passes = slot.delay = passes

    def load_state_dict(self, *args, **kwargs):
        self._begun.clear()
        self._ready.clear()
        for slot in self._slots:
            slot.finish = None
            slot.forget()
        self._synchronized = False
        self.set_backward_passes_per_step(self.backward_passes_per_step)
        super(self.__class__, self).load_state_dict(*args, **kwargs)

    def step(self, closure=None):
        """Waits for the gradients, and makes a step."""
        if self._should_synchronize:
            if self._synchronized:
                warnings.warn(
                    "optimizer.step() called without optimizer.skip_synchronize() context "
                    "after optimizer.synchronize(). This can cause training slowdown. You may "
                    "want to consider using optimizer.skip_synchronize() context if you use "
                    "optimizer.synchronize() in your code.")
            self.synchronize()
        self._synchronized = False
        return super(self.__class__, self).step(closure)

    def zero_grad(self, *args, **kwargs):
        if self._begun:
            raise AssertionError("optimizer.zero_grad() was called after loss.backward() but "
                                 "before optimizer.step() or optimizer.synchronize(). This is "
                                 "prohibited as it can cause a race condition.")
        super(self.__class__, self).zero_grad(*args, **kwargs)
        if self._slots and self._slots[0].parameter.grad is None:
            for slot in self._slots:  # set_to_none: frees the gradients
                slot.forget()


def _once(function):
    """Returns a function that does its work the first time it is called: members of a
    group share one."""
    done = []

    def call():
        if not done:
            done.append(True)
            function()
    return call


def _set_sparse(parameter, reduced):
    with torch.no_grad():
        parameter.grad.zero_().add_(reduced)


def _set_dense(parameter, reduced):
    """Makes a reduced tensor the gradient of a parameter, unless it is already."""
    if parameter.grad.is_sparse:
        parameter.grad = reduced.to_sparse(parameter.grad.sparse_dim())
    elif reduced.data_ptr() != parameter.grad.data_ptr():
        parameter.grad.copy_(reduced)


def DistributedOptimizer(optimizer, named_parameters=None, compression=Compression.none,
                         backward_passes_per_step=1, op=Average,
                         gradient_predivide_factor=1.0, num_groups=0, groups=None,
                         sparse_as_dense=False, process_set=global_process_set):
    """
    Returns an optimizer of the same class that reduces gradients over the ranks before
    each step, while backward still computes.

    named_parameters: model.named_parameters(): the names of the requests.
    compression: how gradients travel, of the class Compression.
    backward_passes_per_step: gradients are reduced after so many backward passes.
    op: Average, Sum, ... or Adasum, which combines what the wrapped optimizer would
        change on each rank. groups and sparse_as_dense have no meaning then, and step()
        cannot skip synchronize().
    gradient_predivide_factor: with Average, gradients are divided by it before the sum,
        and by size / factor after it.
    groups: a number of groups of nearly equally many parameters, or lists of parameters:
        the gradients of a group are reduced together. num_groups is an older name.
    sparse_as_dense: reduce sparse gradients as dense ones.
    process_set: the ranks that take part.

    From the first one on, malloc keeps freed memory for the next step; unless
    HVD_TORCH_KEEP_MEMORY is 0.
    """
    _memory.keep()
    if backward_passes_per_step <= 0:
        raise ValueError("backward_passes_per_step must be > 0")
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")
    if num_groups != 0:
        warnings.warn("Parameter `num_groups` has been replaced by `groups`",
                      DeprecationWarning, stacklevel=2)
        groups = num_groups if groups is None else groups
    methods = dict(_DistributedOptimizer.__dict__)
    if op == Adasum and may_be_several():
        if isinstance(optimizer, torch.optim.LBFGS):
            raise ValueError("Adasum needs an optimizer that can step without a closure, "
                             "which LBFGS cannot")
        methods.update(_adasum.methods())
    kind = type(optimizer.__class__.__name__, (optimizer.__class__,), methods)
    return kind(optimizer.param_groups, named_parameters, compression,
                backward_passes_per_step, op, gradient_predivide_factor, groups,
                sparse_as_dense, process_set)

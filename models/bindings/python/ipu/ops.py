# SPDX-License-Identifier: Apache-2.0
"""
The ops of the device, on tensors. ipu_layers.h and ipu_ops.h say more of each. An
argument that is a number or an array where a tensor may stand becomes a constant.
"""
import inspect

from ._graph import OPS, Tensor, dtype_number, extents

_DEFAULTS = {"axes": None, "keepdims": False, "axis": -1, "transpose_a": False,
             "transpose_b": False, "alpha": 1.0, "slope": 0.01, "delta": 1.0,
             "smoothing": 0.0, "offset": 0.0}
_TENSORS = {"x", "a", "b", "w", "bias", "table", "indices", "logits", "labels", "targets",
            "target", "condition"}
_INTEGERS = {"indices", "labels", "condition"}


def _argument(name, value, like):
    """Returns an argument as the module takes it. Numbers and arrays become constants of
    the graph and the dtype of the tensor like."""
    if name in _TENSORS:
        return like.graph.tensor(value, "int32" if name in _INTEGERS else like.dtype)
    if name == "axes":
        if value is None:
            return range(len(like.shape))
        return extents(value)
    if name == "shape":
        return extents(value)
    if name == "dtype":
        return dtype_number(value)
    if isinstance(value, bool):
        return int(value)
    return value


def _function(op, parameters, text):
    """Returns the function that adds an op."""
    names = parameters.split(", ")
    signature = inspect.Signature([
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                          default=_DEFAULTS.get(name, inspect.Parameter.empty))
        for name in names])

    def function(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        tensors = [(name in _INTEGERS, value) for name, value in bound.arguments.items()
                   if isinstance(value, Tensor)]
        if not tensors:
            raise TypeError(f"{op}: no argument is a Tensor of a graph")
        # No indices, if there is another. (min is an op here.)
        like = sorted(tensors, key=lambda pair: pair[0])[0][1]
        return like.graph.op(op, *[_argument(name, value, like)
                                   for name, value in bound.arguments.items()])

    function.__name__ = function.__qualname__ = op
    function.__module__, function.__doc__ = __name__, text
    function.__signature__ = signature
    return function


__all__ = sorted(OPS)
globals().update({name: _function(name, *OPS[name][1:]) for name in OPS})

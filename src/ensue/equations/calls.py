"""The functions that an author calls in `step`: on tensors, on symbols and on plain numbers."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ensue.equations.author import blame
from ensue.equations.functions import FUNCTIONS, call
from ensue.equations.symbol import Symbol, stranger


def _unary(name: str, at: float, value: float) -> Callable[[Any], Any]:
    """A function of one argument. at, value: the argument and result shown in its docstring."""

    def function(v: Any) -> Any:
        if isinstance(v, Symbol):
            return v.apply(name)
        if isinstance(v, Tensor):
            return FUNCTIONS[name].evaluate(v)
        if not isinstance(v, numbers.Real):
            raise stranger(v, name)
        return float(FUNCTIONS[name].evaluate(torch.tensor(float(v), dtype=torch.float64)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{name} of each feature; for tensors, symbols and numbers.\n\n>>> {name}({at})\n{value}"
    )
    return function


sigmoid = _unary("sigmoid", 0.0, 0.5)
tanh = _unary("tanh", 0.0, 0.0)
relu = _unary("relu", -2.0, 0.0)
exp = _unary("exp", 0.0, 1.0)
log = _unary("log", 1.0, 0.0)
sqrt = _unary("sqrt", 4.0, 2.0)
softplus = _unary("softplus", 0.0, 0.6931471805599453)  # log 2


def maximum(a: Any, b: Any) -> Any:
    """The larger of two, feature by feature; at a tie only a gets the derivative.

    >>> maximum(1.0, 3.0)
    3.0
    """
    if isinstance(a, Symbol):
        return a.apply("maximum", b)
    if isinstance(b, Symbol):
        return Symbol(call("maximum", b._other(a), b.node))
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return FUNCTIONS["maximum"].evaluate(a, b)
    for v in (a, b):
        if not isinstance(v, numbers.Real):
            raise stranger(v, "maximum or minimum")
    return max(a, b)


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two, feature by feature; at a tie only a gets the derivative.

    >>> minimum(torch.tensor([1.0, 5.0]), torch.tensor([2.0, 4.0]))
    tensor([1., 4.])
    """
    return -maximum(-a, -b)


def prelu(v: Any, slope: Any) -> Any:
    """v where v > 0, else slope·v; the derivative at 0 is the slope.

    >>> prelu(-2.0, 0.25), prelu(2.0, 0.25)
    (-0.5, 2.0)
    """
    return relu(v) + slope * minimum(v, 0.0)


def _over_features(v: Any, method: str) -> Any:
    if isinstance(v, numbers.Real):
        raise blame(
            f"total({v}): a number does not say over how many features",
            "write total of x, of the state or of a value made from them",
        )
    if not isinstance(v, (Symbol, Tensor)):
        raise stranger(v, "mean" if method == "mean" else "total")
    return getattr(v, method)(-1, keepdim=True)


def mean(v: Any) -> Any:
    """The mean over the features: one number per row, which combines with vectors of any size.

    >>> mean(torch.tensor([[1.0, 3.0]]))
    tensor([[2.]])
    """
    if isinstance(v, numbers.Real):
        return v
    return _over_features(v, "mean")


def total(v: Any) -> Any:
    """The sum over the features: one number per row, which combines with vectors of any size.

    >>> total(torch.tensor([[1.0, 3.0]]))
    tensor([[4.]])
    """
    return _over_features(v, "sum")


def linear(v: Any) -> Any:
    """The identity, v.

    >>> linear(-2.0)
    -2.0
    """
    return v

"""What `step` sees when it is traced: symbols that record what is done with them."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import Tensor

from ensue.equations.blame import UntraceableAttribute, blame
from ensue.equations.functions import FUNCTIONS, call
from ensue.equations.node import ONE, MatrixRef, Node
from ensue.equations.text import short

USABLE = (
    "+ - * / @, sigmoid, tanh, relu, prelu, maximum, minimum, exp, log, softplus, sqrt, mean, total"
)


def _features(node: Node) -> str:
    return "1 number" if node.size == ONE else f"{node.width} features"


class Symbol:
    """A value of the step, not yet a number. Arithmetic on it makes nodes of the graph."""

    __slots__ = ("node",)
    __array_ufunc__ = None
    __hash__ = object.__hash__

    def __init__(self, node: Node) -> None:
        self.node = node

    def _other(self, value: Any) -> Node:
        """The other operand as a node whose width fits."""
        if isinstance(value, numbers.Real):
            return self.node.graph.constant(float(value))
        if isinstance(value, Tensor):
            raise blame(
                f"a tensor of shape {tuple(value.shape)} meets the symbol {short(self.node)}",
                "declare it as a Matrix, Vector or Mask of the cell, or use a plain number",
            )
        if isinstance(value, MatrixSymbol):
            raise blame(
                f"the matrix {value.label} is used elementwise",
                f"write a product, such as {value.label} @ h",
            )
        if not isinstance(value, Symbol):
            if hasattr(value, "_whole"):
                value._whole()
            raise blame(
                f"{type(value).__name__} {value!r:.40} meets the symbol {short(self.node)}",
                "use symbols and plain numbers",
            )
        other = value.node
        widths = {n.width for n in (self.node, other) if n.size != ONE}
        if len(widths) > 1:
            raise blame(
                f"the shapes do not fit: {short(self.node)} has {_features(self.node)}, "
                f"{short(other)} has {_features(other)}",
                "bring one to the other's size with a product, such as V @ v",
            )
        return other

    def __add__(self, other: Any) -> Symbol:
        return Symbol(self.node + self._other(other))

    def __sub__(self, other: Any) -> Symbol:
        return Symbol(self.node - self._other(other))

    def __rsub__(self, other: Any) -> Symbol:
        return Symbol(self._other(other) - self.node)

    def __mul__(self, other: Any) -> Symbol:
        return Symbol(self.node * self._other(other))

    def __truediv__(self, other: Any) -> Symbol:
        return Symbol(self.node / self._other(other))

    def __rtruediv__(self, other: Any) -> Symbol:
        return Symbol(self._other(other) / self.node)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Symbol:
        return Symbol(-self.node)

    def __pow__(self, power: Any) -> Symbol:
        if power == 0.5:
            return self.apply("sqrt")
        if power not in (1, 2, 3, 4):
            raise blame(
                f"{short(self.node)} ** {power!r}", "use the powers 1, 2, 3, 4, 0.5, or exp and log"
            )
        result = self
        for _ in range(int(power) - 1):
            result = result * self
        return result

    def apply(self, name: str, *others: Any) -> Symbol:
        return Symbol(call(name, self.node, *map(self._other, others)))

    def mean(self, dim: Any = None, keepdim: bool = False) -> Symbol:
        self._over_features("mean", dim, keepdim)
        return Symbol(self.node.graph.mean(self.node))

    def sum(self, dim: Any = None, keepdim: bool = False) -> Symbol:
        self._over_features("total", dim, keepdim)
        return Symbol(self.node.graph.sum(self.node))

    def _over_features(self, name: str, dim: Any, keepdim: bool) -> None:
        if dim != -1 or not keepdim:
            raise blame(
                f"a reduction of {short(self.node)} over other axes than the features, kept",
                f"write {name}(v) of ensue.equations: on tensors it is over the last axis",
            )

    def maximum(self, other: Any) -> Symbol:
        return self.apply("maximum", other)

    def __getattr__(self, name: str) -> Callable[..., Symbol]:
        if name in FUNCTIONS and len(FUNCTIONS[name].chain) == 1:
            return lambda: self.apply(name)
        if name.startswith("__"):
            raise AttributeError(name)
        raise blame(
            f".{name} of {short(self.node)} cannot be traced", f"use {USABLE}", UntraceableAttribute
        )

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """torch.tanh(symbol) and its like mean what the method means."""
        name = getattr(function, "__name__", str(function))
        operator = {"add": "__add__", "sub": "__sub__", "mul": "__mul__", "div": "__truediv__"}
        known = {"sigmoid", "tanh", "relu", "exp", "log", "sqrt", "mean", "sum", *operator}
        if name not in known:
            raise blame(f"torch.{name} of a symbol cannot be traced", f"use {USABLE}")
        if name in operator and not isinstance(args[0], Symbol):
            raise blame(f"torch.{name} of a tensor and a symbol", "declare the tensor in the cell")
        return getattr(args[0], operator.get(name, name))(*args[1:])

    def _refuse(problem: str, instead: str) -> Any:  # type: ignore[misc]
        def refuse(self: Symbol, *_: Any) -> NoReturn:
            raise blame(problem.format(short(self.node)), instead)

        return refuse

    _compare = _refuse(
        "a comparison of {}, whose value is not known while tracing",
        "write maximum(a, b), relu(v), or a mask; one step must do the same for every value",
    )
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compare
    __bool__ = _refuse(
        "a Python `if`, `and`, `or` or `while` on {}, whose value is not known while tracing",
        "write maximum(a, b), relu(v), or a mask; one step must do the same for every value",
    )
    __float__ = __int__ = __index__ = _refuse(
        "{} is turned into a Python number (math.exp and its like do this)",
        f"use {USABLE} of ensue.equations",
    )
    __len__ = __iter__ = _refuse(
        "{} is taken apart", "declare gates, such as Matrix('x', 'ifgo'), and use W.i, W.f, …"
    )
    __getitem__ = __setitem__ = _refuse(
        "{} is indexed", "declare gates, such as Matrix('x', 'ifgo'), and use W.i, W.f, …"
    )
    __abs__ = _refuse("abs of {}", "write maximum(v, -v)")
    __matmul__ = _refuse("{} @ …: a product starts with a parameter matrix", "write W @ v")
    __mod__ = __floordiv__ = __rpow__ = _refuse("this operator on {}", f"use {USABLE}")


class MatrixSymbol:
    """One gate of a parameter matrix while tracing: `W.i @ v` is a product node."""

    def __init__(self, ref: MatrixRef) -> None:
        self.ref = ref
        self.label = f"{ref.name}.{ref.gate}" if ref.gate else ref.name

    def __matmul__(self, v: Any) -> Symbol:
        if not isinstance(v, Symbol):
            raise blame(
                f"{self.label} @ {type(v).__name__}", "the operand must come from x or the state"
            )
        graph = v.node.graph
        if v.node.size == ONE or v.node.width != graph.width(self.ref.columns):
            raise blame(
                f"the shapes do not fit: {self.label} takes {graph.width(self.ref.columns)} "
                f"features ({self.ref.columns}), {short(v.node)} has {_features(v.node)}",
                f"declare {self.ref.name} for this operand: Matrix(of) names what it multiplies",
            )
        return Symbol(graph.product(self.ref, v.node))

    def _elementwise(self, *_: Any) -> NoReturn:
        raise blame(
            f"the matrix {self.label} is used elementwise",
            f"write a product, such as {self.label} @ h",
        )

    __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __rsub__ = __truediv__ = _elementwise
    __rmatmul__ = _elementwise


# ------------------------------------------------------------ functions for tensors and symbols
def _unary(name: str) -> Callable[[Any], Any]:
    def function(v: Any) -> Any:
        if isinstance(v, Symbol):
            return v.apply(name)
        if isinstance(v, Tensor):
            return FUNCTIONS[name].evaluate(v)
        return float(FUNCTIONS[name].evaluate(torch.tensor(float(v), dtype=torch.float64)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} of each feature; for tensors, symbols and numbers."
    return function


sigmoid, tanh, relu = _unary("sigmoid"), _unary("tanh"), _unary("relu")
exp, log, softplus, sqrt = _unary("exp"), _unary("log"), _unary("softplus"), _unary("sqrt")


def maximum(a: Any, b: Any) -> Any:
    """The larger of two, feature by feature; at a tie a alone gets the derivative."""
    if isinstance(a, Symbol):
        return a.apply("maximum", b)
    if isinstance(b, Symbol):
        return Symbol(call("maximum", b._other(a), b.node))
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return FUNCTIONS["maximum"].evaluate(a, b)
    return max(a, b)


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two, feature by feature; at a tie a alone gets the derivative."""
    return -maximum(-a, -b)


def prelu(v: Any, slope: Any) -> Any:
    """v where v > 0, else slope·v; the derivative at 0 is the slope."""
    return relu(v) + slope * minimum(v, 0.0)


def mean(v: Any) -> Any:
    """The mean over the features, one number for each row; it meets vectors of any size."""
    return v.mean(-1, keepdim=True)


def total(v: Any) -> Any:
    """The sum over the features, one number for each row; it meets vectors of any size."""
    return v.sum(-1, keepdim=True)


def linear(v: Any) -> Any:
    """v itself: the activation that does nothing."""
    return v

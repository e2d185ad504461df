"""Symbols: the arguments of a traced `step`, which record all operations on themselves."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from torch import Tensor

from ensue.equations.author import (
    USABLE,
    UntraceableAttribute,
    advice,
    author_frames,
    blame,
    notice,
)
from ensue.equations.declare import Gates
from ensue.equations.functions import FUNCTIONS, call
from ensue.equations.node import ONE, MatrixRef, Node, features
from ensue.equations.text import short
from ensue.errors import EnsueError, EquationError

# torch's and numpy's names for what Python's operators do
OPERATORS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("add",), operator.add),
    **dict.fromkeys(("sub", "subtract"), operator.sub),
    **dict.fromkeys(("mul", "multiply"), operator.mul),
    **dict.fromkeys(("div", "divide", "true_divide"), operator.truediv),
    **dict.fromkeys(("neg", "negative"), operator.neg),
}
# the functions that a tensor has as methods, and torch under the same name
METHODS = ("sigmoid", "tanh", "relu", "exp", "log", "sqrt")


def called(node: Node) -> str:
    """The author's name of a value, or its expression if it has no name."""
    for frame in author_frames():
        for name, value in frame.f_locals.items():
            if isinstance(value, Symbol) and value.node is node:
                return name
    return short(node)


def stranger(value: Any, meets: str) -> EnsueError:
    """The error for an operand that is neither a symbol nor a plain number."""
    if isinstance(value, MatrixSymbol):
        return value.alone()
    if isinstance(value, Gates):
        return value.whole()
    if hasattr(value, "shape"):
        kind = "a tensor" if isinstance(value, Tensor) else "an array"
        return blame(
            f"{kind} of shape {tuple(value.shape)} meets {meets}",
            "declare it as a Matrix, Vector or Mask of the cell, or use a plain number",
        )
    what = "None" if value is None else f"the {type(value).__name__} {value!r:.40}"
    return blame(
        f"{what} meets {meets}", "use x, the state, the declared parameters and plain numbers"
    )


def _declaration(of: Node, size: str) -> str:
    """How to declare a matrix that maps a value to a size."""
    rows = "" if size == "hidden" else f", size={size!r}"
    return f"V = Matrix({'x' if of.size == 'input' else of.size!r}{rows})"


def _first_symbol(args: Iterable[Any]) -> str:
    """The author's name of the first symbol among the arguments of a function."""
    for value in args:
        for v in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(v, Symbol):
                return called(v.node)
    return "a symbol"


class Symbol:
    """A value of the step without a number yet. Arithmetic on it makes nodes of the graph."""

    __slots__ = ("node",)
    __hash__ = object.__hash__

    def __init__(self, node: Node) -> None:
        self.node = node
        notice()

    def __repr__(self) -> str:
        return f"<{short(self.node)}: {features(self.node)}>"

    def _other(self, value: Any) -> Node:
        """The other operand as a node; raises an error if its width does not match."""
        if isinstance(value, numbers.Real):
            return self.node.graph.constant(float(value))
        if not isinstance(value, Symbol):
            raise stranger(value, f"the symbol {called(self.node)}")
        other = value.node
        widths = {n.width for n in (self.node, other) if n.size != ONE}
        if len(widths) > 1:
            product = f"V @ {called(other)}, with {_declaration(other, self.node.size)}"
            raise blame(
                f"the shapes do not fit: {called(self.node)} has {features(self.node)}, "
                f"{called(other)} has {features(other)}",
                f"bring one to the size of the other with a product: {product}",
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
        if not isinstance(power, numbers.Real) or power not in (1, 2, 3, 4, 0.5):
            exponent = called(power.node) if isinstance(power, Symbol) else f"{power!r:.20}"
            raise blame(
                f"{called(self.node)} ** {exponent}: this power cannot be traced",
                "use the powers 1, 2, 3, 4 and 0.5, a division, or exp(p * log(v))",
            )
        if power == 0.5:
            return self.apply("sqrt")
        result = self
        for _ in range(int(float(power)) - 1):
            result = result * self
        return result

    def apply(self, name: str, *others: Any) -> Symbol:
        return Symbol(call(name, self.node, *map(self._other, others)))

    def mean(self, dim: Any = None, keepdim: bool = False) -> Symbol:
        self._over_features("mean", "mean", dim, keepdim)
        return Symbol(self.node.graph.mean(self.node))

    def sum(self, dim: Any = None, keepdim: bool = False) -> Symbol:
        self._over_features("sum", "total", dim, keepdim)
        return Symbol(self.node.graph.sum(self.node))

    def _over_features(self, method: str, function: str, dim: Any, keepdim: bool) -> None:
        if dim != -1 or not keepdim:
            name = called(self.node)
            raise blame(
                f"{method} of {name} with dim={dim}, keepdim={keepdim}: a step reduces "
                "the features of each row alone, and keeps their axis",
                f"write {function}({name}), or .{method}(-1, keepdim=True)",
            )

    def __getattr__(self, name: str) -> Callable[..., Symbol]:
        if name in METHODS:
            return lambda: self.apply(name)
        if name.startswith("__"):
            raise AttributeError(name)
        problem, instead = f"{called(self.node)}.{name} cannot be traced", advice(name)
        if self.node.op == "vector" and not self.node.attr.gate:
            vector = self.node.attr.name
            problem = f"{vector} has no gate {name}: it is declared without gates"
            instead = f"write {vector}, or declare gates, such as {vector} = Vector('ifgo')"
        raise blame(problem, instead, UntraceableAttribute)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Maps torch.tanh(symbol) and similar functions to the method or operator."""
        name = getattr(function, "__name__", str(function))
        kwargs = {k: v for k, v in (kwargs or {}).items() if v is not None and v is not False}
        tensors = [a for a in args if isinstance(a, Tensor)]
        if tensors:
            raise stranger(tensors[0], f"the symbol {_first_symbol(args)}")
        if name in ("mean", "sum") and args:
            return getattr(args[0], name)(*args[1:], **kwargs)
        if name in (*METHODS, *OPERATORS) and args and not kwargs:
            return OPERATORS[name](*args) if name in OPERATORS else args[0].apply(name)
        options = ", ".join(f"{k}={v!r:.20}" for k, v in kwargs.items())
        what = f"{_first_symbol(args)}{' with ' if options else ''}{options}"
        raise blame(f"torch's {name} of {what} cannot be traced", advice(name))

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **_: Any) -> Any:
        """A numpy number is an operand like a plain number; numpy's functions are refused."""
        plain = [a if isinstance(a, Symbol) else float(a) for a in args if not _many(a)]
        if ufunc.__name__ in OPERATORS and len(plain) == len(args):
            return OPERATORS[ufunc.__name__](*plain)
        arrays = [a for a in args if _many(a)]
        if arrays:
            raise stranger(arrays[0], f"the symbol {called(self.node)}")
        name = ufunc.__name__
        hint = f"write {name}(v) of ensue.equations" if name in FUNCTIONS else advice(name)
        raise blame(f"numpy's {name} of {called(self.node)} cannot be traced", hint)

    def __matmul__(self, other: Any) -> NoReturn:
        name = called(self.node)
        if isinstance(other, MatrixSymbol):
            right = f"write {other.label} @ {name}"
            raise blame(f"{name} @ {other.label}: the matrix stands first in a product", right)
        if isinstance(other, Symbol):
            last = called(other.node)
            raise blame(
                f"{name} @ {last}: a product starts with a parameter matrix",
                f"write W @ {last} with a declared Matrix, or total({name} * {last})",
            )
        raise stranger(other, f"the symbol {name}")

    def _refuse(problem: str, instead: str) -> Any:  # type: ignore[misc]
        def refuse(self: Symbol, *_: Any) -> NoReturn:
            name = called(self.node)
            raise blame(problem.format(name), instead.format(name))

        return refuse

    _compare = _refuse(
        "a comparison of {}, whose value is not known while tracing", advice("where")
    )
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compare
    __bool__ = _refuse(
        "a Python `if`, `and`, `or`, `not` or `while` on {}, whose value is not known while "
        "tracing",
        advice("where"),
    )
    __float__ = __int__ = __index__ = __complex__ = _refuse(
        "{} is turned into a Python number (math.exp and its like do this)",
        f"use {USABLE} of ensue.equations",
    )
    __len__ = __iter__ = _refuse("{} is taken apart", advice("chunk"))
    __getitem__ = __setitem__ = _refuse("{} is indexed", advice("chunk"))
    __abs__ = _refuse("abs({0}) cannot be traced", "write maximum({0}, -{0})")
    __rpow__ = _refuse(
        "a power with the exponent {0} cannot be traced", "write exp({0} * log(base))"
    )
    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = _refuse(
        "% or // on {} cannot be traced", f"use {USABLE}"
    )
    __iadd__ = _refuse("{0} += … would change a tensor in place", "write {0} = {0} + …")
    __isub__ = _refuse("{0} -= … would change a tensor in place", "write {0} = {0} - …")
    __imul__ = _refuse("{0} *= … would change a tensor in place", "write {0} = {0} * …")
    __itruediv__ = _refuse("{0} /= … would change a tensor in place", "write {0} = {0} / …")


def _many(value: Any) -> bool:
    """Whether a value is an array with axes, not a numpy number."""
    return bool(getattr(value, "shape", ()))


class MatrixSymbol:
    """One gate of a parameter matrix while tracing: `W.i @ v` is a product node."""

    def __init__(self, ref: MatrixRef) -> None:
        self.ref = ref
        self.label = f"{ref.name}.{ref.gate}" if ref.gate else ref.name

    def __matmul__(self, v: Any) -> Symbol:
        if isinstance(v, MatrixSymbol):
            raise blame(
                f"{self.label} @ {v.label}: a product of two parameter matrices",
                f"write {self.label} @ ({v.label} @ v)",
            )
        if isinstance(v, numbers.Real):
            raise blame(
                f"{self.label} @ {v!r}: a product takes features, not a number",
                f"write {self.label} @ v, with v made from x or the state",
            )
        if not isinstance(v, Symbol):
            raise stranger(v, f"{self.label} @ …")
        graph, columns = v.node.graph, self.ref.columns
        if (v.node.size == ONE) != (columns == ONE) or v.node.width != graph.width(columns):
            name = called(v.node)
            raise blame(
                f"the shapes do not fit: {self.label} takes {graph.width(columns)} "
                f"features ({columns}), {name} has {features(v.node)}",
                f"declare a matrix for it, {_declaration(v.node, self.ref.rows)}, and write "
                f"V @ {name}",
            )
        return Symbol(graph.product(self.ref, v.node))

    def alone(self, kind: type[EnsueError] = EquationError) -> EnsueError:
        """The error for a matrix anywhere except before @."""
        operand = "x" if self.ref.columns == "input" else "h"
        return blame(
            f"the matrix {self.label} is used outside a product",
            f"write {self.label} @ {operand}, in parentheses next to * or /; declare what is used "
            "elementwise as a Vector",
            kind,
        )

    def _refuse(self, *_: Any) -> NoReturn:
        raise self.alone()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("T", "t", "transpose", "mT"):
            problem = f"{self.label} is transposed, which a step cannot do"
            instead = "declare a second Matrix"
        elif self.ref.gate:
            raise self.alone(UntraceableAttribute)
        else:
            problem = f"{self.label} has no gate {name}: it is declared without gates"
            instead = f"write {self.label} @ v, or declare gates, such as Matrix('x', 'ifgo')"
        raise blame(problem, instead, UntraceableAttribute)

    __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __rsub__ = __truediv__ = _refuse
    __rtruediv__ = __rmatmul__ = __neg__ = __pow__ = __abs__ = __getitem__ = __call__ = _refuse

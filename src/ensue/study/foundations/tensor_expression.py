"""The graph of an expression of vectors and matrices: values and shapes forward, derivatives back.

    MatMul (W @ x)     of matrices and vectors; of two vectors their dot product
    + − * /, functions feature by feature; a single number meets any shape
    sum, mean, softmax of all features of a vector
    conv(x, f, stride) of matrices: the filter f at every place of x, not flipped
    pad(x, n), maxpool(x, n), meanpool(x, n): n zeros around a matrix; its patches of n×n

The result is one number. The derivative of the result by a node has the node's shape, and is the
sum of what its users send back.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, conv2d, max_pool2d, pad

from ensue.errors import EquationError, OptionError, ShapeError, unknown
from ensue.study.foundations.expression import (
    ARGUMENTS,
    CONSTANTS,
    MOST_NODES,
    SIGNS,
    Expression,
    TextSpan,
    parsed,
)

Given = float | Sequence[Any]  # a number, a list of numbers, or a list of such lists
MOST_NUMBERS = 100  # of one value
MOST_AROUND = 5  # zeros, and sizes of patches and steps


@dataclass(frozen=True)
class Operation:
    """value: from its arguments; back: what comes back to each, from what came to it (t), its value
    (y) and its arguments."""

    value: Callable[..., Tensor]
    back: Callable[..., tuple[Tensor, ...]]


def _matmul_back(t: Tensor, y: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    if a.dim() == 1 and b.dim() == 1:
        return t * b, t * a
    if b.dim() == 1:
        return torch.outer(t, b), a.t() @ t
    if a.dim() == 1:
        return b @ t, torch.outer(a, t)
    return t @ b.t(), a.t() @ t


def _elementwise(
    value: Callable[..., Tensor], slope: Callable[[Tensor, Tensor], Tensor]
) -> Operation:
    return Operation(value, lambda t, y, v: (t * slope(y, v),))


def _volume(x: Tensor) -> Tensor:
    return x[None, None]


def _conv(x: Tensor, f: Tensor, stride: Tensor) -> Tensor:
    return conv2d(_volume(x), _volume(f), stride=int(stride))[0, 0]


def _conv_back(
    t: Tensor, y: Tensor, x: Tensor, f: Tensor, stride: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """To x the filter turned back onto each place; to f the sum of the patches that it met."""
    to_x, to_f = torch.zeros_like(x), torch.zeros_like(f)
    step, (rows, columns) = int(stride), f.shape
    for i, j in product(range(t.shape[0]), range(t.shape[1])):
        patch = (slice(i * step, i * step + rows), slice(j * step, j * step + columns))
        to_x[patch] += t[i, j] * f
        to_f += t[i, j] * x[patch]
    return to_x, to_f, torch.zeros_like(stride)


def _pad_back(t: Tensor, y: Tensor, x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    around = int(n)
    inside = (slice(around, around + x.shape[0]), slice(around, around + x.shape[1]))
    return t[inside], torch.zeros_like(n)


def _max_back(t: Tensor, y: Tensor, x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    """Of equal numbers the first gets the derivative."""
    _, at = max_pool2d(_volume(x), int(n), return_indices=True)
    found = torch.zeros_like(x).flatten().scatter_add(0, at.flatten(), t.flatten())
    return found.view_as(x), torch.zeros_like(n)


def _mean_back(t: Tensor, y: Tensor, x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    size, found = int(n), torch.zeros_like(x)
    shared = t.repeat_interleave(size, 0).repeat_interleave(size, 1) / size**2
    found[: shared.shape[0], : shared.shape[1]] = shared
    return found, torch.zeros_like(n)


OPERATIONS: dict[str, Operation] = {
    "MatMul": Operation(torch.matmul, _matmul_back),
    "add": Operation(torch.add, lambda t, y, a, b: (t, t)),
    "multiply": Operation(torch.mul, lambda t, y, a, b: (t * b, t * a)),
    "divide": Operation(torch.true_divide, lambda t, y, a, b: (t / b, -t * y / b)),
    "negative": Operation(torch.neg, lambda t, y, v: (-t,)),
    "power": Operation(torch.pow, lambda t, y, v, n: (t * n * v ** (n - 1), torch.zeros_like(n))),
    "maximum": Operation(
        torch.maximum, lambda t, y, a, b: (t * (b <= a).double(), t * (b > a).double())
    ),
    "sum": Operation(torch.sum, lambda t, y, v: (t * torch.ones_like(v),)),
    "mean": Operation(torch.mean, lambda t, y, v: (t * torch.ones_like(v) / v.numel(),)),
    "conv": Operation(_conv, _conv_back),
    "pad": Operation(lambda x, n: pad(x, [int(n)] * 4), _pad_back),
    "maxpool": Operation(lambda x, n: max_pool2d(_volume(x), int(n))[0, 0], _max_back),
    "meanpool": Operation(lambda x, n: avg_pool2d(_volume(x), int(n))[0, 0], _mean_back),
    "softmax": Operation(lambda v: v.softmax(-1), lambda t, y, v: (y * (t - (t * y).sum(-1)),)),
    "sin": _elementwise(torch.sin, lambda y, v: v.cos()),
    "cos": _elementwise(torch.cos, lambda y, v: -v.sin()),
    "tanh": _elementwise(torch.tanh, lambda y, v: 1 - y * y),
    "sigmoid": _elementwise(torch.sigmoid, lambda y, v: y * (1 - y)),
    "exp": _elementwise(torch.exp, lambda y, v: y),
    "log": _elementwise(torch.log, lambda y, v: 1 / v),
    "sqrt": _elementwise(torch.sqrt, lambda y, v: 1 / (2 * y)),
    "relu": _elementwise(torch.relu, lambda y, v: (v > 0).double()),
    "softplus": _elementwise(
        lambda v: torch.logaddexp(v, torch.zeros_like(v)), lambda y, v: v.sigmoid()
    ),
}
OF_VECTORS = ("sum", "mean", "softmax", "conv", "pad", "maxpool", "meanpool")
OF_PATCHES = {"conv": 1, "pad": 0, "maxpool": 1, "meanpool": 1}  # the least their number may be
CALLS = (*ARGUMENTS, *OF_VECTORS)
TAKEN = {**dict.fromkeys(OF_VECTORS, 1), **ARGUMENTS, **dict.fromkeys(OF_PATCHES, 2), "conv": 3}
OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.MatMult: "MatMul",
}


@dataclass
class _Place:
    """label: what it does, a variable or a number."""

    op: str
    label: str
    inputs: tuple[int, ...]
    value: Tensor


@dataclass
class _Graph:
    """Equal nodes are one node."""

    values: Mapping[str, Tensor]
    places: list[_Place] = field(default_factory=list)
    known: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def add(self, op: str, label: str, inputs: tuple[int, ...], value: Tensor | None) -> int:
        key = (op, label, inputs)
        if key not in self.known:
            if value is None:
                value = self._computed(op, label, inputs)
            self.known[key] = len(self.places)
            self.places.append(_Place(op, label, inputs, value))
            if len(self.places) > MOST_NODES:
                raise EquationError(
                    f"expected a small expression, got more than {MOST_NODES} nodes"
                )
        return self.known[key]

    def _computed(self, op: str, label: str, inputs: tuple[int, ...]) -> Tensor:
        given = [self.places[k].value for k in inputs]
        _check_shapes(op, label, given)
        found = OPERATIONS[op].value(*given)
        if not bool(found.isfinite().all()):
            told = ", ".join(str(own.tolist()) for own in given)
            raise OptionError(f"{label} of {told} is not finite: choose other values with --at")
        return found

    # ---------------------------------------------------------------- from text
    def read(self, tree: ast.expr) -> int:
        match tree:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return self._number(float(value))
            case ast.Name(id=name) if name in CONSTANTS:
                return self._number(CONSTANTS[name])
            case ast.Name(id=name):
                return self.add("variable", name, (), self.values[name])
            case ast.UnaryOp(op=ast.USub(), operand=inside):
                return self.operation("negative", self.read(inside))
            case ast.UnaryOp(op=ast.UAdd(), operand=inside):
                return self.read(inside)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                first = self.read(left)
                return self.operation("add", first, self.operation("negative", self.read(right)))
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() | float())):
                return self.operation("power", self.read(left), self.read(tree.right))
            case ast.BinOp(left=left, op=own, right=right) if type(own) in OPERATORS:
                return self.operation(OPERATORS[type(own)], self.read(left), self.read(right))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self._call(name, [self.read(own) for own in args])
        raise EquationError(
            f"{ast.unparse(tree)!r}: expected numbers, variables, + − * / @ ** and "
            f"{', '.join(CALLS)}"
        )

    def _number(self, value: float) -> int:
        return self.add("constant", f"{value:g}", (), torch.tensor(value, dtype=torch.float64))

    def operation(self, op: str, *inputs: int) -> int:
        return self.add(op, SIGNS.get(op, op), inputs, None)

    def _call(self, name: str, inputs: list[int]) -> int:
        if name not in CALLS:
            raise unknown("function", name, CALLS)
        wanted = TAKEN[name]
        if name == "conv" and len(inputs) == wanted - 1:
            inputs = [*inputs, self._number(1.0)]  # the usual stride
        if len(inputs) != wanted:
            raise EquationError(
                f"{name}: expected {wanted} argument{'s' * (wanted > 1)}, got {len(inputs)}"
            )
        return self.operation(name, *inputs)


def shape_text(value: Tensor) -> str:
    return "×".join(map(str, value.shape)) if value.dim() else "1"


def _check_shapes(op: str, label: str, given: Sequence[Tensor]) -> None:
    shapes = " and ".join(map(shape_text, given))
    if op == "MatMul":
        if min(own.dim() for own in given) == 0:
            raise ShapeError(f"MatMul: expected vectors or matrices, got shapes {shapes}")
        if given[0].shape[-1] != given[1].shape[0]:
            raise ShapeError(f"MatMul: expected shapes that multiply, got {shapes}")
    elif op in OF_PATCHES:
        _check_patches(op, given, shapes)
    elif op == "softmax" and given[0].dim() != 1:
        raise ShapeError(f"softmax: expected a vector, got shape {shapes}")
    elif len({own.shape for own in given if own.dim()}) > 1:
        raise ShapeError(f"{label}: expected equal shapes, or a single number, got {shapes}")


def _check_patches(op: str, given: Sequence[Tensor], shapes: str) -> None:
    *matrices, last = given
    least = OF_PATCHES[op]
    if any(own.dim() != 2 for own in matrices):
        raise ShapeError(f"{op}: expected {len(matrices)} matrices and a number, got {shapes}")
    if last.dim() or float(last) != int(last) or not least <= int(last) <= MOST_AROUND:
        raise OptionError(
            f"{op}: expected a whole number from {least} to {MOST_AROUND}, got {last.tolist()}"
        )
    x = matrices[0]
    size = matrices[1].shape if op == "conv" else (int(last), int(last))
    if op != "pad" and (size[0] > x.shape[0] or size[1] > x.shape[1]):
        raise ShapeError(f"{op}: expected a patch that fits into the matrix, got {shapes}")


def as_tensor(name: str, given: Given) -> Tensor:
    """A number, a vector or a matrix."""
    try:
        found = torch.tensor(given, dtype=torch.float64)
    except (TypeError, ValueError):
        raise OptionError(
            f"{name}: expected a number, a list of numbers, or a list of rows of equal length, "
            f"such as [[1,2],[3,4]], got {given!r}"
        ) from None
    if found.dim() > 2 or not 0 < found.numel() <= MOST_NUMBERS:
        raise OptionError(
            f"{name}: expected a number, a vector or a matrix of at most {MOST_NUMBERS} numbers, "
            f"got shape {shape_text(found)}"
        )
    if not bool(found.isfinite().all()):
        raise OptionError(f"{name}: expected finite numbers, got {given}")
    return found


def examine_tensors(text: str, values: Mapping[str, Given]) -> Expression:
    """The graph of an expression at given values of its variables."""
    tree = parsed(text)
    called = {own.func for own in ast.walk(tree) if isinstance(own, ast.Call)}
    nodes = [own for own in ast.walk(tree) if isinstance(own, ast.Name) and own not in called]
    names = [own.id for own in nodes if own.id not in CONSTANTS]
    if missing := [own for own in dict.fromkeys(names) if own not in values]:
        wanted = ",".join(f"{name}=…" for name in missing)
        raise OptionError(f"expected a value of {', '.join(missing)}: --at {wanted}")
    for name in values:
        if name not in names:
            raise unknown("variable", name, names)
    graph = _Graph({name: as_tensor(name, own) for name, own in values.items()})
    last = graph.read(tree)
    result = graph.places[last].value
    if result.dim():
        raise ShapeError(
            f"{text}: expected a result that is one number, got shape {shape_text(result)}; write "
            f"such as sum({text})"
        )
    back = _derivatives(graph.places[: last + 1])
    places = tuple(
        TextSpan(number, own.label, own.inputs, own.value.tolist(), back[number].tolist())
        for number, own in enumerate(graph.places[: last + 1])
    )
    return Expression(text, places, {})


def _derivatives(places: Sequence[_Place]) -> list[Tensor]:
    """∂result/∂node of each, in its shape."""
    found = [torch.zeros_like(own.value) for own in places]
    found[-1] = torch.ones_like(places[-1].value)
    for number in range(len(places) - 1, -1, -1):
        own = places[number]
        if not own.inputs:
            continue
        given = [places[k].value for k in own.inputs]
        sent = OPERATIONS[own.op].back(found[number], own.value, *given)
        for k, value in zip(own.inputs, sent, strict=True):
            like = found[k]
            found[k] = like + (value.sum() if like.dim() == 0 else value)
    return found

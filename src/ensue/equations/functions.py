"""The functions a step may use: on tensors, on symbols, and the derivative of each.

A rule `chain(t, y, *args)` is the contribution of a change t to the result y, for one argument: t ·
∂y/∂argument, elementwise. It is linear in t, so the same rule carries adjoints backward and
tangents forward; None means the derivative is zero everywhere.

At kinks one side gets the derivative, always the same: relu'(0) = 0, and at a tie `maximum(a, b)`
passes it to a.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ensue.equations.node import Node


@dataclass(frozen=True)
class Spelling:
    """The spelling of functions in a language. calls: the name of each function of `functions.py`
    that is called.

    >>> Spelling({"tanh": "tanhf"}).expression("tanh", ["v1"])
    'tanhf(v1)'
    """

    calls: Mapping[str, str]

    def expression(self, op: str, args: Sequence[str]) -> str:
        """An operation on arguments that are names, numbers or elements of arrays."""
        match op:
            case "add":
                return " + ".join(args)
            case "multiply":
                return f"{args[0]} * {args[1]}"
            case "divide":
                return f"{args[0]} / {args[1]}"
            case "negative":
                return f"-{args[0]}"
            case "copy" | "spread":
                return args[0]
        return f"{self.calls[op]}({', '.join(args)})"


Rule = Callable[..., Node | None]


@dataclass(frozen=True)
class Function:
    """One elementwise operation: its value on tensors, one chain rule for each argument."""

    evaluate: Callable[..., Tensor]
    chain: tuple[Rule, ...]


def _maximum(a: Any, b: Any) -> Tensor:
    """The larger; NaN if either is NaN; at a tie a, with all of its derivative."""
    a, b = _tensors(a, b)
    return torch.where((b > a) | b.isnan(), b, a)


def _greater(a: Any, b: Any) -> Tensor:
    """1 where a > b (or a is NaN), else 0."""
    a, b = _tensors(a, b)
    above: Tensor = (a > b) | a.isnan()
    return above.to(torch.result_type(a, b))


def _tensors(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Both as tensors, of the type of the argument that already is one; a number is not rounded in
    between."""
    like = a if isinstance(a, Tensor) else b
    first, second = (torch.as_tensor(v, dtype=like.dtype, device=like.device) for v in (a, b))
    return first, second


def _softplus(v: Tensor) -> Tensor:
    """log(1 + eᵛ) for every v; torch's version is linear above 20, which is visible in float64."""
    return torch.logaddexp(v, torch.zeros_like(v))


def call(name: str, *args: Node) -> Node:
    return args[0].graph.elementwise(name, args)


def _positive(v: Node) -> Node:
    return call("greater", v, v.graph.constant(0.0))


FUNCTIONS: dict[str, Function] = {
    "negative": Function(torch.neg, (lambda t, y, v: -t,)),
    "multiply": Function(torch.mul, (lambda t, y, a, b: t * b, lambda t, y, a, b: t * a)),
    "divide": Function(
        torch.true_divide, (lambda t, y, a, b: t / b, lambda t, y, a, b: -(t * (y / b)))
    ),
    "sigmoid": Function(torch.sigmoid, (lambda t, y, v: t * (y * (1 - y)),)),
    "tanh": Function(torch.tanh, (lambda t, y, v: t * (1 - y * y),)),
    "relu": Function(torch.relu, (lambda t, y, v: t * _positive(v),)),
    "exp": Function(torch.exp, (lambda t, y, v: t * y,)),
    "log": Function(torch.log, (lambda t, y, v: t / v,)),
    "softplus": Function(_softplus, (lambda t, y, v: t * call("sigmoid", v),)),
    "sqrt": Function(torch.sqrt, (lambda t, y, v: t / (2 * y),)),
    "maximum": Function(
        _maximum,
        (
            lambda t, y, a, b: t * (1 - call("greater", b, a)),
            lambda t, y, a, b: t * call("greater", b, a),
        ),
    ),
    "greater": Function(_greater, (lambda t, y, a, b: None, lambda t, y, a, b: None)),
}

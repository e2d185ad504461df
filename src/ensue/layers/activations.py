"""Activations of units by name, and groups of units with different activations. z is a unit's
input.

    logistic    σ(z) = 1/(1 + e⁻ᶻ)
    tanh        tanh z
    relu        max(z, 0); the derivative at 0 is 0
    prelu       z where z > 0, else s·z with a learned s for each unit; the derivative at 0 is s
    maxout(k)   the largest of k numbers; at a tie the first of them gets the derivative
    linear      z
    binary      0 or 1, drawn with probability σ(z) of 1; straight-through gradients

The activation of a layer is one name for all units, or groups: "tanh*3 + relu" means three tanh
units, and relu for the rest. It can also be your own function of tensors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.autograd import Function as AutogradFunction
from torch.nn.functional import binary_cross_entropy_with_logits

from ensue.equations import linear, maximum, prelu, relu, sigmoid, tanh
from ensue.errors import OptionError, ShapeError, unknown

# -------------------------------------------------------------------------------------------------
# Stochastic binary units: b = 1 with probability p = σ(z), else 0.
#
# A draw has no derivative. Two estimates of ∂E[C(b)]/∂z are offered:
#
#     straight-through   ∂C/∂b, as if b were p (times σ'(z)) or z itself; one backward pass,
#                        exact if C is linear in b, otherwise biased
#     score function     (C(b) − baseline)·∂ log p(b)/∂z = (C − baseline)·(b − p); needs only C,
#                        unbiased for every C and every baseline independent of b, but noisy
#
# `expected` sums over all values of b, and has the exact derivative, for up to 16 units.

THROUGH = ("sigmoid", "identity")
MOST_UNITS = 16


class _StraightThrough(AutogradFunction):
    @staticmethod
    def forward(ctx: Any, z: Tensor, sample: Tensor, sigmoid: bool) -> Tensor:
        ctx.sigmoid = sigmoid
        ctx.save_for_backward(z)
        return sample.clone()

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None, None]:
        (z,) = ctx.saved_tensors
        p = z.sigmoid()
        return (slopes[0] * p * (1 - p) if ctx.sigmoid else slopes[0]), None, None


class _ScoreFunction(AutogradFunction):
    @staticmethod
    def forward(ctx: Any, cost: Tensor, z: Tensor, sample: Tensor, baseline: Tensor) -> Tensor:
        ctx.save_for_backward(cost, z, sample, baseline)
        return cost.clone()

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, Tensor, None, None]:
        cost, z, sample, baseline = ctx.saved_tensors
        weight = slopes[0] * (cost - baseline)
        return slopes[0], weight[..., None] * (sample - z.sigmoid()), None, None


def draw(z: Tensor, generator: Generator | None = None) -> Tensor:
    """b (…, units) of zeros and ones, with no gradient."""
    return torch.bernoulli(z.detach().sigmoid(), generator=generator)


def straight_through(
    z: Tensor, generator: Generator | None = None, *, through: str = "sigmoid"
) -> Tensor:
    """A draw with a straight-through gradient for z: through σ ("sigmoid"), or unchanged
    ("identity")."""
    if through not in THROUGH:
        raise unknown("way through a draw", through, THROUGH)
    sample: Tensor = _StraightThrough.apply(z, draw(z, generator), through == "sigmoid")  # type: ignore[no-untyped-call]
    return sample


def score_function(
    cost: Tensor, z: Tensor, sample: Tensor, baseline: Tensor | float = 0.0
) -> Tensor:
    """Returns the cost unchanged; z gets the score-function estimate of its derivative.

    cost (…) of the sample, z and sample (…, units). baseline: a number or (…). The mean cost of
    other draws as baseline reduces the variance; a baseline that depends on this draw adds bias."""
    if sample.shape != z.shape or cost.shape != z.shape[:-1]:
        raise ShapeError(
            f"score_function: expected a sample {tuple(z.shape)} and a cost {tuple(z.shape[:-1])} "
            f"for each, got {tuple(sample.shape)} and {tuple(cost.shape)}"
        )
    fixed = torch.as_tensor(baseline, dtype=cost.dtype, device=cost.device).detach()
    surrogate: Tensor = _ScoreFunction.apply(cost, z, sample, fixed)  # type: ignore[no-untyped-call]
    return surrogate


def expected(cost: Callable[[Tensor], Tensor], z: Tensor) -> Tensor:
    """E[cost(b)] = Σ_b p(b)·cost(b) over all 2ⁿ values of n units, z (n,); differentiable.

    cost: (values, n) → (values,)."""
    units = z.shape[-1]
    if z.dim() != 1 or units > MOST_UNITS:
        raise OptionError(
            f"expected(cost, z): z must have the shape (n,) with n ≤ {MOST_UNITS}, because it sums "
            f"over all 2ⁿ values of n units; got {tuple(z.shape)}"
        )
    numbers = torch.arange(2**units)[:, None] >> torch.arange(units)
    values = (numbers & 1).to(z)  # (2ⁿ, n)
    log_p = -binary_cross_entropy_with_logits(z.expand_as(values), values, reduction="none").sum(-1)
    return (log_p.exp() * cost(values)).sum()


Function = Callable[[Tensor], Tensor]
Activated = str | Function

SLOPE = 0.25  # initial value of a PReLU's s
GROUP = re.compile(r"\s*([a-z]+)\s*(?:\(\s*(\d+)\s*\))?\s*(?:\*\s*(\d+))?\s*")


class Activation(nn.Module):
    """z (…, rank·units) → a (…, units)."""

    rank = 1  # numbers of z per unit

    def __init__(self, units: int) -> None:
        super().__init__()
        self.units = units


class Elementwise(Activation):
    """A function applied to each number: a named one, or the user's own."""

    def __init__(self, units: int, function: Function) -> None:
        super().__init__(units)
        self.function = function

    def forward(self, z: Tensor) -> Tensor:
        y = self.function(z)
        if not isinstance(y, Tensor) or y.shape != z.shape:
            got = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
            name = getattr(self.function, "__name__", "the activation")
            raise ShapeError(f"{name}: expected a tensor of shape {tuple(z.shape)}, got {got}")
        return y

    def extra_repr(self) -> str:
        return f"{self.units}, {getattr(self.function, '__name__', self.function)}"


class PReLU(Activation):
    """max(z, 0) + s·min(z, 0), with a learned s for each unit."""

    def __init__(self, units: int) -> None:
        super().__init__(units)
        self.slope = nn.Parameter(torch.full((units,), SLOPE))

    def forward(self, z: Tensor) -> Tensor:
        y: Tensor = prelu(z, self.slope)
        return y


class Maxout(Activation):
    """max(z_1, …, z_k) of each unit. z holds z_1 of all units, then z_2 of all units, …"""

    def __init__(self, units: int, rank: int = 2) -> None:
        super().__init__(units)
        self.rank = rank

    def forward(self, z: Tensor) -> Tensor:
        y: Tensor = reduce(maximum, z.chunk(self.rank, -1))
        return y

    def extra_repr(self) -> str:
        return f"{self.units}, rank {self.rank}"


class Groups(Activation):
    """Groups of units, each with its own activation. z has the numbers of the first group, then of
    the second, and so on."""

    def __init__(self, parts: Sequence[Activation]) -> None:
        super().__init__(sum(part.units for part in parts))
        self.parts = nn.ModuleList(parts)
        self.widths = [part.rank * part.units for part in parts]

    def forward(self, z: Tensor) -> Tensor:
        pieces = zip(self.parts, torch.split(z, self.widths, -1), strict=True)
        return torch.cat([part(piece) for part, piece in pieces], -1)


ACTIVATIONS: dict[str, Callable[[int], Activation]] = {
    "logistic": partial(Elementwise, function=sigmoid),
    "tanh": partial(Elementwise, function=tanh),
    "relu": partial(Elementwise, function=relu),
    "prelu": PReLU,
    "maxout": Maxout,
    "linear": partial(Elementwise, function=linear),
    "binary": partial(Elementwise, function=straight_through),
}


def width_of(activation: Activation) -> int:
    """The size of z for this activation."""
    if isinstance(activation, Groups):
        return sum(activation.widths)
    return activation.rank * activation.units


def activation(activated: Activated, units: int) -> Activation:
    """The module of an activation. activated: a name, groups such as "tanh*3 + maxout(2)*4 + relu",
    or a function."""
    if not isinstance(activated, str):
        return Elementwise(units, activated)
    named = [_group(name, activated) for name in activated.split("+")]
    open_ones = [k for k, (_, _, count) in enumerate(named) if count is None]
    count_taken = sum(count for _, _, count in named if count is not None)
    if (
        len(open_ones) > 1
        or (not open_ones and count_taken != units)
        or count_taken > units - len(open_ones)
    ):
        raise OptionError(
            f"activation {activated!r}: expected groups that make {units} units, one of them at "
            "most "
            f"without a number, got {count_taken} and {len(open_ones)} without a number"
        )
    parts = [
        _made(name, rank, units - count_taken if count is None else count)
        for name, rank, count in named
    ]
    return parts[0] if len(parts) == 1 else Groups(parts)


def _group(text: str, whole: str) -> tuple[str, int | None, int | None]:
    """Name, rank and number of units of one group."""
    match = GROUP.fullmatch(text)
    if not match:
        raise OptionError(
            f"activation {whole!r}: expected a name, or groups such as 'tanh*3 + relu', "
            f"got {text.strip()!r}"
        )
    name, rank, count = match.groups()
    if name not in ACTIVATIONS:
        raise unknown("activation", name, ACTIVATIONS)
    if rank is not None and (name != "maxout" or int(rank) < 1):
        raise OptionError(
            f"activation {whole!r}: expected a rank ≥ 1 in brackets after maxout alone, "
            f"got {text.strip()!r}"
        )
    return name, None if rank is None else int(rank), None if count is None else int(count)


def _made(name: str, rank: int | None, units: int) -> Activation:
    return Maxout(units, rank) if rank is not None else ACTIVATIONS[name](units)

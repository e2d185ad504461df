"""Stochastic binary units: b = 1 with probability p = σ(z), else 0.

A draw has no derivative. Two estimates of ∂E[C(b)]/∂z are offered:

    straight-through   ∂C/∂b, as if b were p (times σ'(z)) or z itself; one backward pass,
                       exact where C is linear in b, biased elsewhere
    score function     (C(b) − baseline)·∂ log p(b)/∂z = (C − baseline)·(b − p); needs C alone,
                       unbiased for every C and every baseline that b does not decide, and noisy

`expected` sums over all values of b, and has the exact derivative, for up to 16 units.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor
from torch.autograd import Function
from torch.nn.functional import binary_cross_entropy_with_logits

from ensue.errors import OptionError, ShapeError, unknown

THROUGH = ("sigmoid", "identity")
MOST_UNITS = 16


class _StraightThrough(Function):
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


class _ScoreFunction(Function):
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
    """A draw whose gradient goes back to z through σ ("sigmoid"), or as it is ("identity")."""
    if through not in THROUGH:
        raise unknown("way through a draw", through, THROUGH)
    found: Tensor = _StraightThrough.apply(z, draw(z, generator), through == "sigmoid")  # type: ignore[no-untyped-call]
    return found


def score_function(
    cost: Tensor, z: Tensor, sample: Tensor, baseline: Tensor | float = 0.0
) -> Tensor:
    """The cost as it is; z gets the score-function estimate of its derivative.

    cost (…) of the sample, z and sample (…, units). The baseline may be a number or (…): the mean
    cost of other draws makes the estimate calmer; one that looks at this draw makes it biased."""
    if sample.shape != z.shape or cost.shape != z.shape[:-1]:
        raise ShapeError(
            f"score_function: expected a sample {tuple(z.shape)} and a cost {tuple(z.shape[:-1])} "
            f"for each, got {tuple(sample.shape)} and {tuple(cost.shape)}"
        )
    fixed = torch.as_tensor(baseline, dtype=cost.dtype, device=cost.device).detach()
    found: Tensor = _ScoreFunction.apply(cost, z, sample, fixed)  # type: ignore[no-untyped-call]
    return found


def expected(cost: Callable[[Tensor], Tensor], z: Tensor) -> Tensor:
    """E[cost(b)] = Σ_b p(b)·cost(b) over all 2ⁿ values of n units, z (n,); differentiable.

    cost: (values, n) → (values,)."""
    units = z.shape[-1]
    if z.dim() != 1 or units > MOST_UNITS:
        raise OptionError(
            f"expected: expected z of shape (n,) with n ≤ {MOST_UNITS}, whose 2ⁿ values can be "
            f"listed, got {tuple(z.shape)}"
        )
    numbers = torch.arange(2**units)[:, None] >> torch.arange(units)
    values = (numbers & 1).to(z)  # (2ⁿ, n)
    log_p = -binary_cross_entropy_with_logits(z.expand_as(values), values, reduction="none").sum(-1)
    return (log_p.exp() * cost(values)).sum()

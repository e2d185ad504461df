"""How much of an output each step of an input counts for.

f maps sides, tensors x (time, rows, width) of the embedded steps of one input or of two, to
outputs (rows, n). For each output f_k and each step t:

    gradient × input       x_t · ∂f_k/∂x_t
    integrated gradients   (x_t − x̄_t) · ∫₀¹ ∂f_k/∂x_t (x̄ + a·(x − x̄)) da

The second (Sundararajan et al. 2017) sum up to f_k(x) − f_k(x̄), x̄ a baseline, but for the error
of the integral.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

Sides = tuple[Tensor, ...]
Outputs = Callable[[Sides], Tensor]

POINTS, MOST_POINTS = 32, 256  # of the integral: first, and at most
ENOUGH = 1e-3  # error of the sum, relative to f(x) − f(x̄), at which no more points are taken
AT_ONCE = 16_000  # steps of the points that are computed together


class Shares(NamedTuple):
    """scores (outputs, steps), those of all sides behind one another; output f(x) (outputs,)."""

    scores: Tensor
    output: Tensor


class IntegratedShares(NamedTuple):
    """reference: f(x̄) (outputs,); error: |Σ scores − (f(x) − f(x̄))| (outputs,); points: of the
    integral."""

    scores: Tensor
    output: Tensor
    reference: Tensor
    error: Tensor
    points: int


def gradient_times_input(f: Outputs, x: Sides) -> Shares:
    """x: sides of one row."""
    own = tuple(side.detach().requires_grad_() for side in x)
    with torch.enable_grad():
        output = f(own)[0]
        slopes = _slopes(output, own)
    scores = [_over_steps(side.detach() * slope) for side, slope in zip(own, slopes, strict=True)]
    return Shares(torch.cat(scores, 1), output.detach())


def integrated_gradients(f: Outputs, x: Sides, baseline: Sides) -> IntegratedShares:
    """x, baseline: sides of one row. The integral is that of Gauss and Legendre, with twice as many
    points until the sum is right to a thousandth."""
    with torch.no_grad():
        output, reference = f(x)[0], f(baseline)[0]
    points = POINTS
    while True:
        scores = _integral(f, x, baseline, points)
        error = (scores.sum(1) - (output - reference)).abs()
        small = ENOUGH * (output - reference).abs().clamp(min=ENOUGH)
        if points >= MOST_POINTS or bool((error <= small).all()):
            return IntegratedShares(scores, output, reference, error, points)
        points *= 2


def _integral(f: Outputs, x: Sides, baseline: Sides, points: int) -> Tensor:
    """(outputs, steps)."""
    found: list[Tensor] | None = None
    time = max(1, sum(len(side) for side in x))
    for places, weights in _nodes(points, max(1, AT_ONCE // time), x[0]):
        own = tuple(
            (before + places[:, None] * (side - before)).requires_grad_()
            for side, before in zip(x, baseline, strict=True)
        )
        with torch.enable_grad():
            slopes = _slopes((weights[:, None] * f(own)).sum(0), own)
        sums = [slope.sum(2, keepdim=True) for slope in slopes]
        found = sums if found is None else [a + b for a, b in zip(found, sums, strict=True)]
    assert found is not None
    pairs = zip(x, baseline, found, strict=True)
    return torch.cat([_over_steps((side - before) * mean) for side, before, mean in pairs], 1)


def _nodes(points: int, at_once: int, like: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Places in 0 … 1 and their weights, some at a time."""
    places, weights = np.polynomial.legendre.leggauss(points)
    both = torch.from_numpy(np.stack([(places + 1) / 2, weights / 2])).to(like)
    for first in range(0, points, at_once):
        yield both[0, first : first + at_once], both[1, first : first + at_once]


def _slopes(outputs: Tensor, sides: Sides) -> list[Tensor]:
    """∂f_k/∂x of outputs (n,): for each side (n, time, rows, width)."""
    by_output = [
        torch.autograd.grad(
            own, sides, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        for own in outputs
    ]
    return [torch.stack(own) for own in zip(*by_output, strict=True)]


def _over_steps(products: Tensor) -> Tensor:
    """(outputs, time, 1, width) → (outputs, time)."""
    return products.sum(-1)[..., 0]

"""Methods of attribution: the contribution of each step of an input to an output.

f maps sides, tensors x (time, rows, width) of the embedded steps of one input or of two, to outputs
(rows, n). For each output f_k and each step t:

    gradient × input       x_t · ∂f_k/∂x_t
    integrated gradients   (x_t − x̄_t) · ∫₀¹ ∂f_k/∂x_t (x̄ + a·(x − x̄)) da

Integrated gradients (Sundararajan et al. 2017) sum to f_k(x) − f_k(x̄), x̄ a baseline, except for
the error of the integral.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.ragged import Ragged
from ensue.errors import OptionError, unknown
from ensue.tasks.rows.part import Part

if TYPE_CHECKING:
    from ensue.tasks.rows.inputs import Scale

# A character of no language, which occurs in no vocabulary and no n-gram.
NEVER_SEEN = "\ue000"
LEFT_OUT, UNKNOWN, PADDING, MEAN, ZERO = "left-out", "unknown", "padding", "mean", "zero"

Steps = NDArray[Any]


class Baseline(NamedTuple):
    """A baseline. told: descriptions, for one occluded step and for all steps together; "" if not
    possible. step: the replacement of a step, a token's index or a vector; None: the step is
    removed, or its embedding is zero."""

    occluded: str
    together: str
    step: Callable[[Part, Scale | None], Any] | None = None


def _never_seen(part: Part, scale: Scale | None) -> int:
    return part.numbers.tokens[NEVER_SEEN]


def _mean(part: Part, scale: Scale | None) -> Any:
    assert scale is not None
    return scale.mean


def _zero(part: Part, scale: Scale | None) -> Any:
    assert scale is not None
    return np.zeros_like(scale.mean)


OF_TOKENS = {
    LEFT_OUT: Baseline("each token left out", ""),
    UNKNOWN: Baseline(
        "each token replaced by one that training never saw",
        "as many tokens that training never saw",
        _never_seen,
    ),
    PADDING: Baseline("", "the zero vectors of padding"),
}
OF_VECTORS = {
    LEFT_OUT: Baseline("each step left out", ""),
    MEAN: Baseline(
        "each step replaced by the mean vector of training",
        "the mean vector of training at every step",
        _mean,
    ),
    ZERO: Baseline("each step replaced by zeros", "zeros at every step", _zero),
}


def baseline_of(name: str, part: Part, way: str) -> Baseline:
    """The baseline of this name. way: the field that tells whether the method supports it,
    "occluded" or "together"."""
    every = OF_TOKENS if part.texts else OF_VECTORS
    known = [key for key, baseline in every.items() if getattr(baseline, way)]
    if name not in known:
        if name in {**OF_TOKENS, **OF_VECTORS}:
            kind = "texts" if part.texts else "vectors"
            raise OptionError(
                f"--baseline: expected {' or '.join(known)} with this method of {kind}, got {name}"
            )
        raise unknown("baseline", name, known)
    return every[name]


# --- parts ---------------------------------------------------------------------------------------


def sides_of(part: Part) -> list[Steps]:
    """The steps of the only row; for a pair, of both sides."""
    rows = [part.inputs] if part.second is None else [part.inputs, part.second]
    return [row.row(0) for row in rows]


def occluded(part: Part, step: Any) -> Part:
    """A row for each step, in which the step is removed or replaced; steps of the second side come
    after steps of the first."""
    sides = sides_of(part)
    rows: list[list[Steps]] = []
    for k, side in enumerate(sides):
        for at in range(len(side)):
            changed = list(sides)
            changed[k] = np.delete(side, at, 0) if step is None else side.copy()
            if step is not None:
                changed[k][at] = step
            rows.append(changed)
    return with_rows(part, rows)


def all_replaced(part: Part, step: Any) -> Part:
    """The row with every step replaced."""
    changed = [side.copy() for side in sides_of(part)]
    for steps in changed:
        steps[:] = step
    return with_rows(part, [changed])


def with_rows(part: Part, rows: Sequence[Sequence[Steps]]) -> Part:
    """The part with these rows instead of its only one, under the same name."""
    values = part.inputs.values
    sides = [Ragged.of(side, values.dtype, values.shape[1:]) for side in zip(*rows, strict=True)]
    second = sides[1] if len(sides) > 1 else None
    again = part.take(np.zeros(len(rows), np.int64))  # other columns stay
    return replace(again, inputs=sides[0], second=second, labels=None)


Sides = tuple[Tensor, ...]
Outputs = Callable[[Sides], Tensor]

POINTS, MOST_POINTS = 32, 256  # points of the integral: initial and maximum number
ENOUGH = 1e-3  # sufficient error of the sum, relative to f(x) − f(x̄)
AT_ONCE = 16_000  # maximum steps of points that are computed together


class Shares(NamedTuple):
    """scores (outputs, steps), one side after another; output f(x) (outputs,)."""

    scores: Tensor
    output: Tensor


class IntegratedShares(NamedTuple):
    """The result of integrated gradients. reference: f(x̄) (outputs,); error: |Σ scores − (f(x) −
    f(x̄))| (outputs,); points: number of points of the integral."""

    scores: Tensor
    output: Tensor
    reference: Tensor
    error: Tensor
    points: int


def gradient_times_input(f: Outputs, x: Sides) -> Shares:
    """Gradient × input of f. x: sides of one row."""
    leaves = tuple(side.detach().requires_grad_() for side in x)
    with torch.enable_grad():
        output = f(leaves)[0]
        slopes = _slopes(output, leaves)
    scores = [
        _over_steps(side.detach() * slope) for side, slope in zip(leaves, slopes, strict=True)
    ]
    return Shares(torch.cat(scores, 1), output.detach())


def integrated_gradients(f: Outputs, x: Sides, baseline: Sides) -> IntegratedShares:
    """Integrated gradients of f. x, baseline: sides of one row. The integral uses Gauss–Legendre
    quadrature, doubling the points until the sum is right to a thousandth."""
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
    """The integral of the gradients along the path from the baseline to x (outputs, steps)."""
    none: list[Tensor] | None = None
    time = max(1, sum(len(side) for side in x))
    for places, weights in _nodes(points, max(1, AT_ONCE // time), x[0]):
        totals = tuple(
            (before + places[:, None] * (side - before)).requires_grad_()
            for side, before in zip(x, baseline, strict=True)
        )
        with torch.enable_grad():
            slopes = _slopes((weights[:, None] * f(totals)).sum(0), totals)
        sums = [slope.sum(2, keepdim=True) for slope in slopes]
        none = sums if none is None else [a + b for a, b in zip(none, sums, strict=True)]
    assert none is not None
    pairs = zip(x, baseline, none, strict=True)
    return torch.cat([_over_steps((side - before) * mean) for side, before, mean in pairs], 1)


def _nodes(points: int, at_once: int, like: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields nodes in [0, 1] and their weights, some at a time."""
    places, weights = np.polynomial.legendre.leggauss(points)
    both = torch.from_numpy(np.stack([(places + 1) / 2, weights / 2])).to(like)
    for first in range(0, points, at_once):
        yield both[0, first : first + at_once], both[1, first : first + at_once]


def _slopes(outputs: Tensor, sides: Sides) -> list[Tensor]:
    """∂f_k/∂x of outputs (n,): for each side (n, time, rows, width)."""
    by_output = [
        torch.autograd.grad(
            output, sides, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        for output in outputs
    ]
    return [torch.stack(slopes) for slopes in zip(*by_output, strict=True)]


def _over_steps(products: Tensor) -> Tensor:
    """(outputs, time, 1, width) → (outputs, time)."""
    return products.sum(-1)[..., 0]


def against_others(
    labels: int, classes: Sequence[int], several: bool = False
) -> NDArray[np.float64]:
    """A matrix that maps scores (…, labels) to a label's score minus the mean of
    the others; for multi-label answers, to the score; shape (labels, wanted)."""
    others = np.zeros((labels, len(classes)))
    if not several and labels > 1:
        others -= 1 / (labels - 1)
    others[list(classes), range(len(classes))] = 1
    return others

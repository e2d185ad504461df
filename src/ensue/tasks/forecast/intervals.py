"""Intervals that hold what they promise, by the errors made on held-out steps (split conformal).

The score of a held-out number y is how far it lies outside of its interval,
max(low − y, y − high), negative inside; intervals are widened by the quantile of these scores
(narrowed, where it is negative). Where a network says one number, that is its interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ENOUGH = 20  # held-out errors of a step ahead; with fewer, all steps are taken together


class Levels(NamedTuple):
    """(horizon, windows, targets) each; where no paths can be drawn, the bounds are the point.
    quantiles (levels, horizon, windows, targets): those that were asked for."""

    point: Array
    low: Array
    high: Array
    quantiles: Array

    @classmethod
    def of_point(cls, point: Array, levels: int) -> Levels:
        return cls(point, point, point, np.broadcast_to(point, (levels, *point.shape)))

    @classmethod
    def joined(cls, every: Sequence[Levels]) -> Levels:
        """Some windows after others."""
        return cls(*(np.concatenate(parts, -2) for parts in zip(*every, strict=True)))


def widening(truth: Array, low: Array, high: Array, share: float) -> Array:
    """(horizon, targets) of levels (horizon, windows, targets); NaN in truth is not counted."""
    scores = np.maximum(low - truth, truth - high)
    horizon, _, targets = scores.shape
    counts = np.isfinite(scores).sum(1)
    widths = np.empty((horizon, targets))
    for k in range(targets):
        target = scores[..., k]
        if counts[:, k].min() >= ENOUGH:
            widths[:, k] = [_quantile(step, share) for step in target]
        else:
            widths[:, k] = _quantile(target.ravel(), share)
    return widths


def _quantile(scores: Array, share: float) -> float:
    """The smallest score that is not exceeded with this probability by the next one."""
    ranked = np.sort(scores[np.isfinite(scores)])
    if not len(ranked):
        return 0.0
    return float(ranked[min(len(ranked), math.ceil((len(ranked) + 1) * share)) - 1])


def widened(low: Array, high: Array, every: Array) -> tuple[Array, Array]:
    """every (horizon, windows or 1, targets); an interval that would turn inside out is its
    middle."""
    middle = (low + high) / 2
    return np.minimum(low - every, middle), np.maximum(high + every, middle)


# --- quantiles -------------------------------------------------------------------------------


def quantile_shifts(truth: Array, quantiles: Array, levels: Sequence[float]) -> Array:
    """(levels, horizon, targets): what is added to each quantile (levels, horizon, windows,
    targets), so that it holds its share of the truth; NaN in truth is not counted."""
    horizon, _, targets = truth.shape
    shifts = np.empty((len(levels), horizon, targets))
    for at, level in enumerate(levels):
        off = truth - quantiles[at]
        counts = np.isfinite(off).sum(1)
        for k in range(targets):
            if counts[:, k].min() >= ENOUGH:
                shifts[at, :, k] = [_ranked(step, level) for step in off[..., k]]
            else:
                shifts[at, :, k] = _ranked(off[..., k].ravel(), level)
    return shifts


def _ranked(off: Array, level: float) -> float:
    """The number that the next one is not above with this probability, on the safe side."""
    ranked = np.sort(off[np.isfinite(off)])
    if not len(ranked):
        return 0.0
    place = (len(ranked) + 1) * level
    at = math.ceil(place) if level >= 0.5 else math.floor(place)
    return float(ranked[min(max(at, 1), len(ranked)) - 1])

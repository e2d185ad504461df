"""Calibration of intervals on held-out steps (split conformal prediction).

The score of a held-out number y is its distance outside of its interval, max(low − y, y − high),
negative inside. Intervals are widened by the quantile of these scores (or narrowed, if it is
negative). For a network that predicts one number, the interval is initially that number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ENOUGH = 20  # minimum held-out errors of a step ahead; with fewer, all steps are pooled


class Levels(NamedTuple):
    """Forecasts before calibration, (horizon, windows, targets) each; if no paths can be drawn, the
    bounds equal the point. quantiles (levels, horizon, windows, targets): of the requested
    levels."""

    point: Array
    low: Array
    high: Array
    quantiles: Array

    @classmethod
    def of_point(cls, point: Array, levels: int) -> Levels:
        return cls(point, point, point, np.broadcast_to(point, (levels, *point.shape)))

    @classmethod
    def joined(cls, every: Sequence[Levels]) -> Levels:
        """Concatenates groups of windows."""
        return cls(*(np.concatenate(parts, -2) for parts in zip(*every, strict=True)))


def widening(truth: Array, low: Array, high: Array, share: float) -> Array:
    """The widening (horizon, targets) from levels (horizon, windows, targets); NaN in truth is
    ignored."""
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
    """The smallest score that the next one does not exceed with this probability."""
    ranked = np.sort(scores[np.isfinite(scores)])
    if not len(ranked):
        return 0.0
    return float(ranked[min(len(ranked), math.ceil((len(ranked) + 1) * share)) - 1])


def widened(low: Array, high: Array, every: Array) -> tuple[Array, Array]:
    """Widens intervals by `every` (horizon, windows or 1, targets). An interval that would become
    negative shrinks to its middle."""
    middle = (low + high) / 2
    return np.minimum(low - every, middle), np.maximum(high + every, middle)


# --- quantiles -------------------------------------------------------------------------------


def quantile_shifts(truth: Array, quantiles: Array, levels: Sequence[float]) -> Array:
    """Shifts of the quantiles (levels, horizon, windows, targets) that
    give them their nominal coverage; NaN in truth is ignored; shape (levels, horizon, targets)."""
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
    """The number that the next one does not exceed with at least this probability."""
    ranked = np.sort(off[np.isfinite(off)])
    if not len(ranked):
        return 0.0
    place = (len(ranked) + 1) * level
    at = math.ceil(place) if level >= 0.5 else math.floor(place)
    return float(ranked[min(max(at, 1), len(ranked)) - 1])

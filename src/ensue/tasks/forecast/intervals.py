"""Intervals that hold what they promise, by the errors made on held-out steps (split conformal).

The score of a held-out number y is how far it lies outside of its interval,
max(low − y, y − high), negative inside; intervals are widened by the quantile of these scores
(narrowed, where it is negative). Where a network says one number, that is its interval.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ENOUGH = 20  # held-out errors of a step ahead; with fewer, all steps are taken together


def widening(truth: Array, low: Array, high: Array, share: float) -> Array:
    """(horizon, targets) of levels (horizon, windows, targets); NaN in truth is not counted."""
    scores = np.maximum(low - truth, truth - high)
    horizon, _, targets = scores.shape
    counts = np.isfinite(scores).sum(1)
    found = np.empty((horizon, targets))
    for k in range(targets):
        target = scores[..., k]
        if counts[:, k].min() >= ENOUGH:
            found[:, k] = [_quantile(step, share) for step in target]
        else:
            found[:, k] = _quantile(target.ravel(), share)
    return found


def _quantile(scores: Array, share: float) -> float:
    """The smallest score that is not exceeded with this probability by the next one."""
    ranked = np.sort(scores[np.isfinite(scores)])
    if not len(ranked):
        return 0.0
    return float(ranked[min(len(ranked), math.ceil((len(ranked) + 1) * share)) - 1])


def widened(low: Array, high: Array, by: Array) -> tuple[Array, Array]:
    """by (horizon, targets); an interval that would turn inside out is its middle."""
    middle = (low + high) / 2
    every = by[:, None]
    return np.minimum(low - every, middle), np.maximum(high + every, middle)

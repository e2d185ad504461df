"""Intervals that hold what they promise, by the errors made on held-out steps (split conformal).

The score of a held-out number y is how far it lies outside of its interval,
max(low − y, y − high), negative inside; intervals are widened by the quantile of these scores
(narrowed, where it is negative), step by step, or, where these are few, by one of all steps in
units of their mean errors. Where a network says one number, that is its interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ENOUGH = 100  # held-out errors of a step ahead; with fewer, all steps are taken together


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
    return _by_step(scores, partial(_quantile, share=share))


def _by_step(off: Array, quantile: Callable[[Array], float]) -> Array:
    """(horizon, targets): a quantile of each step's numbers off (horizon, windows, targets); where
    these are few, one of all, in units of a size that does not fall from step to step."""
    horizon, _, targets = off.shape
    counts = np.isfinite(off).sum(1)
    found = np.empty((horizon, targets))
    for k in range(targets):
        steps = off[..., k]
        if counts[:, k].min() >= ENOUGH:
            found[:, k] = [quantile(step) for step in steps]
        else:
            size = _rising(np.nansum(np.abs(steps), 1), counts[:, k])
            found[:, k] = size * quantile((steps / size[:, None]).ravel())
    return found


def _rising(sums: Array, counts: NDArray[np.int64]) -> Array:
    """The means nearest to these that do not fall, by pooling neighbours; above 0.

    >>> _rising(np.array([2.0, 8.0, 4.0]), np.array([2, 2, 2])).tolist()
    [1.0, 3.0, 3.0]
    """
    pools: list[tuple[float, int, int]] = []  # sum, count, steps
    for total, count in zip(sums.tolist(), counts.tolist(), strict=True):
        pools.append((total, count, 1))
        while len(pools) > 1 and pools[-2][0] * pools[-1][1] >= pools[-1][0] * pools[-2][1]:
            last, before = pools.pop(), pools.pop()
            pools.append((last[0] + before[0], last[1] + before[1], last[2] + before[2]))
    means = [np.full(steps, total / max(count, 1)) for total, count, steps in pools]
    return np.asarray(np.maximum(np.concatenate(means), np.finfo(np.float64).tiny))


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
    every = [
        _by_step(truth - own, partial(_ranked, level=level))
        for own, level in zip(quantiles, levels, strict=True)
    ]
    return np.stack(every) if every else np.empty((0, truth.shape[0], truth.shape[2]))


def _ranked(off: Array, level: float) -> float:
    """The number that the next one is not above with this probability, on the safe side."""
    ranked = np.sort(off[np.isfinite(off)])
    if not len(ranked):
        return 0.0
    place = (len(ranked) + 1) * level
    at = math.ceil(place) if level >= 0.5 else math.floor(place)
    return float(ranked[min(max(at, 1), len(ranked)) - 1])

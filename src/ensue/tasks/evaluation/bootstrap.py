"""How far a score would move with another sample of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.errors import DataError, OptionError

_BLOCK = 4_000_000  # numbers held at once


class Interval(NamedTuple):
    """A score, and where the middle `level` of its resamples lies."""

    value: float
    low: float
    high: float


def bootstrap(
    sums: NDArray[Any],
    statistic: Callable[[NDArray[Any]], Any],
    *,
    seed: int,
    draws: int = 1000,
    level: float = 0.95,
) -> Interval:
    """The percentile interval of a score that is a function of sums over rows.

    sums (rows, …): what each row adds, such as `row_counts`, `span_counts`, or (right, steps)
    of a sentence; statistic takes sums (draws, …) to scores (draws,). Rows are drawn with
    replacement, as many as there are; the same seed draws the same."""
    if not len(sums):
        raise DataError("bootstrap: expected rows to draw from, got none")
    if draws < 1 or not 0 < level < 1:
        raise OptionError(f"expected draws ≥ 1 and 0 < level < 1, got {draws} and {level}")
    rows = len(sums)
    flat = np.asarray(sums, np.float64).reshape(rows, -1)
    endless = np.isposinf(flat)
    bounded = np.where(endless, 0.0, flat)  # a row that is not drawn adds nothing: 0·∞ is no number
    random = np.random.default_rng(seed)
    block = max(1, _BLOCK // rows)
    found = []
    for first in range(0, draws, block):
        size = min(block, draws - first)
        drawn = random.integers(0, rows, (size, rows)) + rows * np.arange(size)[:, None]
        times = np.bincount(drawn.ravel(), minlength=size * rows).reshape(size, rows)
        weights = times.astype(np.float64)
        drawn_sums = weights @ bounded
        if endless.any():
            drawn_sums[weights @ endless > 0] = np.inf
        found.append(statistic(drawn_sums.reshape(size, *sums.shape[1:])))
    outside, scores = (1 - level) / 2, np.concatenate(found)
    levels = [outside, 1 - outside]
    if np.isfinite(scores).all():
        low, high = np.quantile(scores, levels)
    else:  # ∞ − ∞ is no number either
        low, high = np.quantile(scores, levels, method="nearest")
    value = statistic(flat.sum(0).reshape(1, *sums.shape[1:]))[0]
    return Interval(float(value), float(low), float(high))

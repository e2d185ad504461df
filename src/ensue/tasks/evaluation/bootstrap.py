"""Bootstrap intervals of scores and of differences of scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.errors import DataError, OptionError, unknown
from ensue.metrics import classes
from ensue.metrics.bleu import ORDER, bleu_of

# -------------------------------------------------------------------------------------------------
# Scores that are functions of sums over rows, by name.
#
# Such a score needs the contributions of rows only, which can be stored and summed over any draw.
# To add one, add a row: a function of sums (…, …) with any number of draws in front.

Statistic = Callable[[NDArray[Any]], Any]


def root_ratio(sums: NDArray[Any]) -> Any:
    """√(sums[…, 0]/sums[…, 1]), such as the root of the mean squared error."""
    return np.sqrt(classes.ratio(sums))


def exp_ratio(sums: NDArray[Any]) -> Any:
    """exp(sums[…, 0]/sums[…, 1]): the perplexity of costs and tokens."""
    return np.exp(classes.ratio(sums))


STATISTICS: Mapping[str, Statistic] = {
    "ratio": classes.ratio,
    "root_ratio": root_ratio,
    "exp_ratio": exp_ratio,
    "macro_f1": classes.macro_f1,
    "span_f1": classes.span_f1,
    "bleu": bleu_of,
}
# What a row adds: the sizes of the axes after the rows; None for any.
WIDTHS: Mapping[str, tuple[int | None, ...]] = {
    "ratio": (2,),
    "root_ratio": (2,),
    "exp_ratio": (2,),
    "macro_f1": (3, None),
    "span_f1": (3,),
    "bleu": (2 + 2 * ORDER,),
}


_BLOCK = 500_000  # numbers in memory at once
DRAWS = 1000
PAIRED_SEED = 1  # seed of comparisons, which belong to no model
LEVEL = 0.95
SHARES = ("accuracy", "exact", "macro_f1", "span_f1")  # scores from 0 (all wrong) to 1 (all right)


class Interval(NamedTuple):
    """A score, with the central interval of its resamples at `level`."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class RowSums:
    """Each row's contribution to the sums behind a score. statistic: the function from sums to the
    score, by its name in STATISTICS; values (rows, …)."""

    statistic: str
    values: NDArray[Any]

    def __post_init__(self) -> None:
        if self.statistic not in STATISTICS:
            raise unknown("statistic", self.statistic, STATISTICS)

    @property
    def function(self) -> Statistic:
        return STATISTICS[self.statistic]

    def score(self) -> float:
        return float(self.function(np.asarray(self.values, np.float64).sum(0)[None])[0])


def intervals(sums: Mapping[str, RowSums], seed: int) -> dict[str, Interval]:
    """Scores by name, each with its interval."""
    by_name = {
        name: bootstrap(row_sums.values, row_sums.function, seed=seed)
        for name, row_sums in sums.items()
    }
    shares = {name: len(row_sums.values) for name, row_sums in sums.items() if name in SHARES}
    return {**by_name, **{name: _not_sure(by_name[name], rows) for name, rows in shares.items()}}


def _not_sure(share: Interval, rows: int) -> Interval:
    """The interval if all rows are right, or all wrong: resampling would give no width. It ends at
    the share s under which this happens with probability (1 − level)/2: s^rows = (1 − level)/2."""
    far = ((1 - LEVEL) / 2) ** (1 / rows)
    if share.low == share.high == 1:
        return share._replace(low=far)
    return share._replace(high=1 - far) if share.low == share.high == 0 else share


def bootstrap(
    sums: NDArray[Any],
    statistic: Statistic,
    *,
    seed: int,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Interval:
    """The percentile interval of a score that is a function of sums over rows.

    sums (rows, …): contributions of each row, such as `row_counts`, `span_counts`, or (right,
    steps) of a sentence. statistic maps sums (draws, …) to scores (draws,). Rows are drawn with
    replacement, as many as there are; the same seed gives the same draws."""
    flat = _flat(sums)

    def score(drawn: NDArray[Any]) -> Any:
        return statistic(drawn.reshape(len(drawn), *sums.shape[1:]))

    return _interval(flat, score, seed, draws, level)


def paired_bootstrap(
    one: RowSums,
    other: RowSums,
    *,
    seed: int = PAIRED_SEED,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Interval:
    """The difference other − one of the scores of two models on the same rows, with its percentile
    interval: each draw of rows scores both models, so that rows hard for both cancel out. An
    interval without 0 is a difference beyond chance. With an infinite score there is no interval:
    its ends are NaN."""
    flat = [_flat(row_sums.values) for row_sums in (one, other)]
    if len(flat[0]) != len(flat[1]):
        raise DataError(
            f"paired bootstrap: expected the same rows, got {len(flat[0]):,} and {len(flat[1]):,}"
        )
    width = flat[0].shape[1]

    def difference(drawn: NDArray[Any]) -> Any:
        first = drawn[:, :width].reshape(len(drawn), *one.values.shape[1:])
        second = drawn[:, width:].reshape(len(drawn), *other.values.shape[1:])
        with np.errstate(invalid="ignore"):  # ∞ − ∞
            return other.function(second) - one.function(first)

    return _interval(np.concatenate(flat, 1), difference, seed, draws, level)


def _flat(sums: NDArray[Any]) -> NDArray[np.float64]:
    if not len(sums):
        raise DataError("bootstrap: expected rows to draw from, got none")
    return np.asarray(sums, np.float64).reshape(len(sums), -1)


def _interval(
    flat: NDArray[np.float64],
    score: Callable[[NDArray[Any]], Any],
    seed: int,
    draws: int,
    level: float,
) -> Interval:
    """The percentile interval of a score. score: maps sums (draws, columns of flat) to scores."""
    if draws < 1 or not 0 < level < 1:
        raise OptionError(f"expected draws ≥ 1 and 0 < level < 1, got {draws} and {level}")
    outside = (1 - level) / 2
    scores = np.concatenate([score(drawn) for drawn in _drawn(flat, seed, draws)])
    levels = [outside, 1 - outside]
    if np.isfinite(scores).all():
        low, high = np.quantile(scores, levels)
    else:  # ∞ − ∞ is NaN
        low, high = np.quantile(scores, levels, method="nearest")
    return Interval(float(score(flat.sum(0)[None])[0]), float(low), float(high))


def _drawn(flat: NDArray[np.float64], seed: int, draws: int) -> Iterator[NDArray[np.float64]]:
    """Yields sums (some draws, columns) over rows drawn with replacement."""
    rows = len(flat)
    endless = np.isposinf(flat)
    bounded = np.where(endless, 0.0, flat)  # a row that is not drawn must add 0, but 0·∞ is NaN
    random = np.random.default_rng(seed)
    block = max(1, _BLOCK // rows)
    for first in range(0, draws, block):
        size = min(block, draws - first)
        drawn = random.integers(0, rows, (size, rows)) + rows * np.arange(size)[:, None]
        times = np.bincount(drawn.ravel(), minlength=size * rows).reshape(size, rows)
        weights = times.astype(np.float64)
        sums = weights @ bounded
        if endless.any():
            sums[weights @ endless > 0] = np.inf
        yield sums

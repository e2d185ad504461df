"""Errors of forecasts, over arrays (horizon, windows, targets). A truth that is missing, NaN,
counts nowhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.tasks.declarations import Axis, Range, Shape
from ensue.tasks.forecast.settings import ForecastSettings

Array = NDArray[np.float64]


class Units(NamedTuple):
    """What errors are counted in, for each target: the spread of the training part, and the mean
    error of its seasonal naive forecast. In a panel with a row for each series, or each window."""

    spread: Annotated[Array, Shape(Axis("scale.ids"), "settings.targets"), Range(above=0)]
    season: Annotated[Array, Shape(Axis("scale.ids"), "settings.targets"), Range(above=0)]

    def of_windows(self, rows: NDArray[np.int64]) -> Units:
        """With a row for each window. rows: the series of each, −1 for one that training did not
        have, which is counted in units that are typical."""
        found = []
        for own in self:
            if own.ndim == 1:
                found.append(own)
                continue
            typical = np.concatenate([own, np.median(own, 0, keepdims=True)])
            found.append(typical[rows])
        return Units(*found)


def mean_of(values: Array, axis: int | tuple[int, ...] | None = None) -> Array:
    """Of the numbers that are there; NaN where there are none."""
    there = np.isfinite(values)
    if there.all():
        return np.asarray(values.mean(axis))
    count = there.sum(axis)
    total = np.where(there, values, 0.0).sum(axis)
    return np.asarray(np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0))


def errors(truth: Array, point: Array, units: Units) -> dict[str, float]:
    """mae, rmse: in the units of the data; mape, smape in percent (mape only where no truth is 0);
    mase: mae of each target over that of the seasonal naive forecast of its training part;
    scaled: with every target divided by its spread in the training part."""
    off = point - truth
    found = {"mae": float(mean_of(np.abs(off))), "rmse": math.sqrt(float(mean_of(off**2)))}
    size = np.abs(truth)
    if np.nanmin(size) > 0:
        found["mape"] = 100 * float(mean_of(np.abs(off) / size))
    both = size + np.abs(point)
    share = np.divide(2 * np.abs(off), both, out=np.zeros_like(off), where=both > 0)
    found["smape"] = 100 * float(mean_of(np.where(np.isfinite(off), share, np.nan)))
    if units.season.min() > 0:
        found["mase"] = float(mean_of(np.abs(off) / units.season))
    scaled = off / units.spread
    found["scaled mae"] = float(mean_of(np.abs(scaled)))
    found["scaled mse"] = float(mean_of(scaled**2))
    return found


def inside(truth: Array, low: Array, high: Array) -> Array:
    """1 where an interval holds what came, else 0; NaN where nothing is known."""
    held = ((low <= truth) & (truth <= high)).astype(np.float64)
    return np.where(np.isfinite(truth), held, np.nan)


class Ahead(NamedTuple):
    """One step ahead, over all windows: scaled by the spread of each target where there are
    several."""

    step: int
    mae: float
    rmse: float
    coverage: float


def by_step(truth: Array, point: Array, low: Array, high: Array, unit: Array) -> list[Ahead]:
    off = (point - truth) / unit
    mae, rmse = mean_of(np.abs(off), (1, 2)), np.sqrt(mean_of(off**2, (1, 2)))
    held = mean_of(inside(truth, low, high), (1, 2))
    return [Ahead(k + 1, float(mae[k]), float(rmse[k]), float(held[k])) for k in range(len(truth))]


class SeriesRow(NamedTuple):
    """One series of a panel: its id, how many windows, its error (scaled where there are several
    targets), that of the best baseline, and the share of its numbers that intervals held."""

    id: str
    windows: int
    mae: float
    baseline: float
    coverage: float


# --- distributions -------------------------------------------------------------------------

LEVELS = tuple(round(0.05 * k, 2) for k in range(1, 20))  # of the quantiles that CRPS is taken over


def levels_asked(settings: ForecastSettings) -> tuple[float, ...]:
    """Quantiles that a model is calibrated for: those of CRPS, and those that were named."""
    return tuple(dict.fromkeys([*LEVELS, *settings.quantiles]))


def pinball(truth: Array, quantile: Array, level: float) -> Array:
    """max(τ·(y − q), (τ − 1)·(y − q)): the cost of a quantile."""
    off = truth - quantile
    return np.maximum(level * off, (level - 1) * off)


class QuantileSums:
    """Costs of quantiles, gathered from some windows after others."""

    def __init__(self, levels: Sequence[float]) -> None:
        self.levels = tuple(levels)
        self._costs = np.zeros(len(self.levels))
        self._below = np.zeros(len(self.levels))
        self._count, self._size = 0.0, 0.0

    def add(self, truth: Array, quantiles: Array) -> None:
        """quantiles (levels, horizon, windows, targets)."""
        there = np.isfinite(truth)
        for k, level in enumerate(self.levels):
            self._costs[k] += pinball(truth, quantiles[k], level)[there].sum()
            self._below[k] += (truth <= quantiles[k])[there].sum()
        self._count += float(there.sum())
        self._size += float(np.abs(truth[there]).sum())

    def scores(self) -> dict[str, float]:
        """crps: in the units of the data, the mean of twice the costs over the levels; weighted
        quantile loss: their sum over that of |y|."""
        if not self._count:
            return {}
        total = 2 * float(self._costs.mean())
        found = {"crps": total / self._count}
        if self._size > 0:
            found["weighted quantile loss"] = total / self._size
        return found

    def rows(self, wanted: Sequence[float]) -> list[QuantileRow]:
        return [
            QuantileRow(level, 2 * self._costs[k] / self._count, self._below[k] / self._count)
            for level in wanted
            for k in [self.levels.index(level)]
        ]


class QuantileRow(NamedTuple):
    """A quantile of the forecasts: its cost, and the share of the numbers that were not above."""

    level: float
    cost: float
    share: float

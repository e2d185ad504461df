"""Exponential smoothing (Holt, Winters) with trend and season: additive in y or log y, or with a
multiplicative season.

    e_t = y_t − (l + φ·b + s_{t−m});  l ← l + φ·b + α·e;  b ← φ·b + α·β·e
    s_t = s_{t−m} + γ·(1 − α)·e
    e_t = y_t/s_{t−m} − (l + φ·b);  s_t = s_{t−m}·(1 + γ·(1 − α)·e/(l + φ·b))  where it multiplies

All series and all candidate parameters are smoothed in parallel, step by step. Missing values have
no error. The parameters of each series minimise the squared errors one step ahead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ensue.tasks.forecast.members.ground import Ground
from ensue.tasks.forecast.members.per_series import (
    LONGEST,
    by_steps,
    least,
    outward,
    parameters_of,
    side_by_side,
)
from ensue.tasks.forecast.members.sizes import Floor, Ids, Level, Parameters, SmoothedSeason
from ensue.tasks.forecast.seasons import repeated
from ensue.tasks.forecast.series import Series, Steps

Array = NDArray[np.float64]

LEVEL = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9)
TREND = ((0.0, 0.0), (0.02, 1.0), (0.1, 1.0), (0.3, 1.0), (0.02, 0.97), (0.1, 0.97), (0.3, 0.9))
SEASON = (0.02, 0.1, 0.25, 0.5)
FINER = ((0.6, 0.8, 1.0, 1.25, 1.6), (0.8, 0.9, 1.0, 1.1, 1.25), (0.93, 1.0, 1.07))
LEAST = 1e-9  # minimum of divisors
FACTORS = (0.05, 20.0)  # of a multiplicative season: lower ones make a level explode
LOWEST = 0.01  # of a level, relative to the mean of the first seasons
HIGHEST = 3.0  # of a forecast, relative to the highest value so far


@dataclass(frozen=True)
class SmoothingMember:
    """An exponential smoothing member. season: 1 for none; trend: whether there may be a trend;
    multiplies: the season multiplies the level; parameters (series, targets, 4): α, β, γ, φ; ids:
    the ids of the series; floor: replaces smaller numbers before a logarithm."""

    transform: Level
    season: SmoothedSeason
    trend: bool
    multiplies: bool
    floor: Floor
    parameters: Parameters
    ids: Ids = ()

    kind = "smoothing"

    @property
    def name(self) -> str:
        if self.multiplies:
            return "smoothing, season multiplied"
        return "smoothing" if self.transform == "none" else "smoothing of log"

    def fitted(
        self, ground: Ground, origins: Steps | None = None, horizon: int = 1
    ) -> SmoothingMember:
        y = side_by_side(ground, self.transform, self.floor, LONGEST)
        parameters = _fit(y, self.season, self.trend, self.multiplies)
        return replace(self, parameters=parameters, ids=ground.series.ids)

    def forecasts(self, ground: Ground, origins: Steps, horizon: int) -> Array:
        """(horizon, windows, targets) in the units of the data. A series with fewer than two
        seasons gets the last value or season repeated."""
        series = ground.series
        level, trend, seasonal, highest = ground.once(self, lambda: self._states(ground))
        last = origins - 1
        phi = self._of(series)[series.owner[last], :, 3]
        steps = np.cumsum(phi[None] ** np.arange(1, horizon + 1)[:, None, None], 0)
        predicted = level[last][None] + trend[last][None] * steps
        if self.season > 1:
            back = origins[None] - self.season + (np.arange(horizon) % self.season)[:, None]
            again = seasonal[np.maximum(back, 0)]
            if self.multiplies:
                predicted = np.minimum(predicted * again, HIGHEST * highest[last])
            else:
                predicted = predicted + again
        values = ground.level(self.transform, self.floor)[ground.at]
        starts = series.starts[last]
        plain = repeated(values, origins, horizon, self.season, starts)
        young = origins - starts < _needed(self.season)
        predicted = np.where(young[None, :, None], plain, predicted)
        return outward(predicted, self.transform)

    def _of(self, series: Series) -> Array:
        return parameters_of(self.parameters, self.ids, series)

    def _states(self, ground: Ground) -> tuple[Array, Array, Array, Array]:
        """Level, trend and season after each step, and the highest value so far, (steps, targets)
        each."""
        series = ground.series
        y = side_by_side(ground, self.transform, self.floor)
        chosen = self._of(series)[..., None, :]  # (series, targets, 1, 4)
        states = _smoothed(y, chosen, self.season, self.multiplies, keep=True)[1]
        level, trend, seasonal = (by_steps(series, state[..., 0]) for state in states)
        highest = np.maximum.accumulate(np.nan_to_num(y, nan=0.0), 0)
        return level, trend, seasonal, by_steps(series, highest)


def _needed(season: int) -> int:
    """The number of steps for initial states."""
    return 2 * season if season > 1 else 4


def _begun(y: Array, season: int, multiplies: bool) -> tuple[Array, Array, Array]:
    """Level, trend and season (season, series, targets) before the first step, from the first two
    seasons."""
    filled = _without_gaps(y[: _needed(season)])
    if season == 1:
        steps = max(len(filled) - 1, 1)
        trend = (filled[-1] - filled[0]) / steps
        return filled[0] - trend, trend, np.zeros((1, *y.shape[1:]))
    first = filled[:season].mean(0)
    second = filled[season:].mean(0) if len(filled) > season else first
    trend = (second - first) / season
    middle = (season - 1) / 2
    line = first + trend * (np.arange(len(filled)) - middle)[:, None, None]
    off = filled / np.maximum(line, LEAST) if multiplies else filled - line
    none = np.full_like(trend, float(multiplies))
    rounds = [off[k::season].mean(0) for k in range(min(season, len(off)))]
    seasonal = np.stack([*rounds, *[none] * (season - len(rounds))])
    middles = seasonal.mean(0)
    if multiplies:
        even = np.clip(seasonal / np.maximum(middles, LEAST), *FACTORS)
    else:
        even = seasonal - middles
    return first - trend * (middle + 1), trend, even


def _without_gaps(y: Array) -> Array:
    """Replaces missing values by the last value; at the beginning by the first one, or 0."""
    known = np.isfinite(y)
    steps = np.arange(len(y)).reshape(-1, 1, 1)
    last = np.maximum.accumulate(np.where(known, steps, -1), 0)
    first = np.where(known.any(0), known.argmax(0), 0)
    axis = np.take_along_axis(y, np.where(last < 0, first[None], last), 0)
    return np.nan_to_num(axis)


def _smoothed(
    y: Array, parameters: Array, season: int, multiplies: bool, keep: bool = False
) -> tuple[Array, tuple[Array, Array, Array]]:
    """The sums of squared errors (series, targets, tried), and with `keep` the states after each
    step. y (steps, series, targets); parameters (…, tried, 4)."""
    alpha, beta, gamma, phi = np.moveaxis(parameters, -1, 0)
    level, trend, begin = _begun(y, season, multiplies)
    shape = np.broadcast_shapes(alpha.shape, (*level.shape, 1))
    level, trend = (np.broadcast_to(state[..., None], shape).copy() for state in (level, trend))
    trend = np.where(beta > 0, trend, 0.0)
    ring = [np.broadcast_to(state[..., None], shape).copy() for state in begin]
    cost, states = np.zeros(shape), tuple(np.zeros((len(y), *shape)) for _ in range(3 * keep))
    known = np.isfinite(y)
    clean = np.nan_to_num(y)
    ab, gs = alpha * beta, gamma * (1 - alpha)
    size = np.abs(_without_gaps(y[: _needed(season)]).mean(0))
    low = np.maximum(LOWEST * size, LEAST)[..., None]
    for step in range(len(y)):
        damped = phi * trend
        base = level + damped
        at = step % season
        observed, here = clean[step][..., None], known[step][..., None]
        if multiplies:
            base = np.maximum(base, low)
            error = np.where(here, observed / ring[at] - base, 0.0)
            cost += (error * ring[at]) ** 2
            ring[at] = np.clip(ring[at] * (1 + gs * error / base), *FACTORS)
        else:
            error = np.where(here, observed - base - ring[at], 0.0)
            cost += error * error
            ring[at] = ring[at] + gs * error
        level = base + alpha * error
        trend = damped + ab * error
        if keep:
            for stored, value in zip(states, (level, trend, ring[at]), strict=True):
                stored[step] = value
    return cost, states  # type: ignore[return-value]


def _fit(y: Array, season: int, trend: bool, multiplies: bool) -> Array:
    """The best of a grid, then of ever finer grids around it; shape (series, targets, 4)."""
    trends = TREND if trend else TREND[:1]
    seasons = SEASON if season > 1 else (0.0,)
    grid = np.array([(a, b, g, phi) for a, (b, phi), g in product(LEVEL, trends, seasons)])
    tried = np.broadcast_to(grid, (*y.shape[1:], *grid.shape))

    def cost(y: Array, tried: Array) -> Array:
        return _smoothed(y, tried, season, multiplies)[0]

    best = least(y, tried, cost, season + 3)
    for finer in FINER:
        along = [finer if is_used else (1.0,) for is_used in (True, trend, season > 1)]
        near = [np.array([*shares, 1.0]) for shares in product(*along)]
        around = np.stack([best * factor for factor in near], -2)
        around[..., :3] = np.clip(around[..., :3], 0.0, 0.99)
        best = least(y, around, cost, season + 3)
    return best

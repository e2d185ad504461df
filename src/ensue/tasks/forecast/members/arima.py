"""Seasonal ARIMA with one term of each kind, of y or log y (Box & Jenkins).

    w_t = (1 − B)^d·(1 − B^m)·y_t − c
    w_t = φ·w_{t−1} + e_t + θ·e_{t−1} + Θ·e_{t−m} + θ·Θ·e_{t−m−1}

d is 1, with c = 0, or 0, with c the mean. φ = 0 and d = 1 is the airline model. The parameters of
each series minimise the squared errors one step ahead, over many candidates in parallel. Missing
values have no error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from ensue.tasks.declarations import Range
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
from ensue.tasks.forecast.series import Steps

Array = NDArray[np.float64]

AR = (0.0, 0.3, 0.6, 0.85)
MA = (-0.9, -0.7, -0.5, -0.3, 0.0, 0.3)
SEASON = (-0.9, -0.75, -0.6, -0.4, -0.2, 0.0)
FINER = (0.1, 0.04, 0.015)
LARGEST = np.array([0.98, 0.95, 0.95])  # of φ, θ, Θ
NO_SEASON = 1
LEAST = 1e-12  # of squared errors


@dataclass(frozen=True)
class ArimaMember:
    """A seasonal ARIMA member. season: 1 for none; difference: d; own: whether φ is fitted;
    parameters (series, targets, 4): φ, θ, Θ, c; ids: the ids of the series; floor: replaces smaller
    numbers before a logarithm."""

    transform: Level
    season: SmoothedSeason
    difference: Annotated[int, Range(low=0, high=1)]
    own_season: bool
    floor: Floor
    parameters: Parameters
    ids: Ids = ()

    kind = "arima"

    @property
    def name(self) -> str:
        of = "" if self.transform == "none" else " of log"
        seasonal = f"(0,1,1){self.season}" if self.season > NO_SEASON else ""
        return f"ARIMA({int(self.own_season)},{self.difference},1){seasonal}{of}"

    @property
    def needed(self) -> int:
        """Steps before the first error."""
        return self.difference + self.season * (self.season > NO_SEASON)

    @property
    def young(self) -> int:
        """The minimum steps of a series before it is forecast."""
        return 2 * self.needed

    def fitted(self, ground: Ground, origins: Steps | None = None, horizon: int = 1) -> ArimaMember:
        y = side_by_side(ground, self.transform, self.floor, LONGEST)
        w = _differenced(y, self.season, self.difference)
        centre = np.zeros(w.shape[1:])
        if not self.difference:
            known = np.isfinite(w)
            centre = np.where(known, w, 0.0).sum(0) / np.maximum(known.sum(0), 1)
        estimate = _fit((w - centre)[self.needed :], self.season, self.own_season)
        parameters = np.concatenate([estimate, centre[..., None]], -1)
        return replace(self, parameters=parameters, ids=ground.series.ids)

    def forecasts(self, ground: Ground, origins: Steps, horizon: int) -> Array:
        """(horizon, windows, targets) in the units of the data. A series with fewer than two
        seasons gets the last value or season repeated."""
        series, m = ground.series, self.season
        y = ground.level(self.transform, self.floor)
        place, last = ground.at_origin(origins), origins - 1
        starts = series.starts[last]
        errors, w = ground.once(self, lambda: self._states(ground))
        of = parameters_of(self.parameters, self.ids, series)[series.owner[last]]
        phi, theta, season, centre = np.moveaxis(of, -1, 0)  # (windows, targets)

        def error(back: int) -> Array:
            """The error `back` steps before the first step ahead; 0 before a series."""
            at = origins - back
            return np.where((at < starts)[:, None], 0.0, errors[np.maximum(at, 0)])

        before = w[last]
        predicted: list[Array] = []

        def level(h: int, back: int) -> Array:
            return predicted[h - back] if h >= back else y[np.maximum(place + h - back, 0)]

        for h in range(horizon):
            now = phi * before
            if h == 0:
                now = now + theta * error(1)
            if m > NO_SEASON and h < m:
                now = now + season * error(m - h)
            if m > NO_SEASON and h < m + 1:
                now = now + theta * season * error(m + 1 - h)
            before = now
            current = now + centre
            if m > NO_SEASON:
                current = current + level(h, m)
            if self.difference:
                current = current + level(h, 1)
                if m > NO_SEASON:
                    current = current - level(h, m + 1)
            predicted.append(current)
        young = origins - starts < self.young
        plain = repeated(y[ground.at], origins, horizon, m, starts)
        values = np.where(young[None, :, None], plain, np.stack(predicted))
        return outward(values, self.transform)

    def log_likelihood(self, ground: Ground) -> float:
        """The log-likelihood of y, for any transform: −n/2·log(mean e²) − Σ log |dy/dlevel|, summed
        over series and targets."""
        y = side_by_side(ground, self.transform, self.floor)
        of = parameters_of(self.parameters, self.ids, ground.series)
        w = (_differenced(y, self.season, self.difference) - of[..., 3])[self.needed :]
        count = np.isfinite(w).sum(0)
        cost = _errors(w, of[..., None, :3], self.season)[0][..., 0]
        likelihood = -0.5 * count * np.log(np.maximum(cost, LEAST) / np.maximum(count, 1))
        if self.transform != "none":
            likelihood -= np.where(np.isfinite(w), y[self.needed :], 0.0).sum(0)
        return float(likelihood.sum())

    def _states(self, ground: Ground) -> tuple[Array, Array]:
        """Errors and w (steps, targets); 0 if unknown."""
        series = ground.series
        y = side_by_side(ground, self.transform, self.floor)
        of = parameters_of(self.parameters, self.ids, series)
        w = _differenced(y, self.season, self.difference) - of[..., 3]
        errors = np.zeros_like(w)
        if len(w) > self.needed:
            some, head = w[self.needed :], self.young - self.needed
            residuals = _errors(some, of[..., None, :3], self.season, head, keep=True)[1]
            errors[self.needed :] = residuals[..., 0]
        return by_steps(series, errors), by_steps(series, np.nan_to_num(w))


def _differenced(y: Array, season: int, difference: int) -> Array:
    """w from y; NaN if a required value is missing."""
    differenced = y
    for lag in [season] * (season > NO_SEASON) + [1] * difference:
        less = np.full_like(differenced, np.nan)
        less[lag:] = differenced[lag:] - differenced[:-lag]
        differenced = less
    return differenced


class _Recursion:
    """The errors of w, step by step, for all candidates: (series, targets, tried)."""

    def __init__(self, parameters: Array, season: int, shape: tuple[int, ...]) -> None:
        self.phi, self.theta, self.seasonal = np.moveaxis(parameters, -1, 0)
        self.season, self.both = season, self.theta * self.seasonal
        self.ring = [np.zeros(shape) for _ in range(season + 1)]  # the last errors, by step
        self.before = np.zeros(shape)
        self.step = 0

    def expected(self) -> Array:
        """The expected w of the next step."""
        at, size = self.step, self.season + 1
        value: Array = self.phi * self.before + self.theta * self.ring[(at - 1) % size]
        if self.season > NO_SEASON:
            value = value + self.seasonal * self.ring[(at - self.season) % size]
            value = value + self.both * self.ring[at % size]  # from a season and a step before
        return value

    def take(self, w: Array, error: Array) -> None:
        self.ring[self.step % (self.season + 1)] = error
        self.before = w
        self.step += 1


def _errors(
    w: Array, parameters: Array, season: int, head: int | None = None, keep: bool = False
) -> tuple[Array, Array]:
    """The sums of squared errors (series, targets, tried), and with `keep` the errors (steps, …). w
    (steps, series, targets); parameters (…, tried, 3).

    Values before the first step are backcast (Box & Jenkins): the same parameters hold for the
    series reversed in time. head: number of steps used for this; forecasts from an origin must not
    read later steps."""
    shape = np.broadcast_shapes(parameters.shape[:-1], (*w.shape[1:], 1))
    observed, clean = np.isfinite(w)[..., None], np.nan_to_num(w)[..., None]
    back = _Recursion(parameters, season, shape)
    for step in reversed(range(len(w) if head is None else min(head, len(w)))):
        error = np.where(observed[step], clean[step] - back.expected(), 0.0)
        back.take(clean[step], error)
    earlier = []
    for _ in range(season + 1):
        expected = back.expected()
        back.take(expected, np.zeros(shape))
        earlier.append(expected)
    ahead = _Recursion(parameters, season, shape)
    cost, kept_errors = np.zeros(shape), np.zeros((len(w) * keep, *shape))
    for expected in reversed(earlier):
        error = expected - ahead.expected()
        cost += error * error
        ahead.take(expected, error)
    for step in range(len(w)):
        error = np.where(observed[step], clean[step] - ahead.expected(), 0.0)
        ahead.take(clean[step], error)
        cost += error * error
        if keep:
            kept_errors[step] = error
    return cost, kept_errors


def _fit(w: Array, season: int, own_season: bool) -> Array:
    """The best of a grid, then of ever finer grids around it; shape (series, targets, 3)."""
    seasons = SEASON if season > NO_SEASON else (0.0,)
    grid = np.array(list(product(AR if own_season else (0.0,), MA, seasons)))
    free = np.array([own_season, True, season > NO_SEASON])

    def cost(y: Array, tried: Array) -> Array:
        return _errors(y, tried, season)[0]

    tried = np.broadcast_to(grid, (*w.shape[1:], *grid.shape))
    best = least(w, tried, cost, season + 3)
    for finer in FINER:
        steps = np.array(list(product(*((-finer, 0.0, finer) if f else (0.0,) for f in free))))
        around = np.clip(best[..., None, :] + steps, -LARGEST, LARGEST)
        best = least(w, around, cost, season + 3)
    return best

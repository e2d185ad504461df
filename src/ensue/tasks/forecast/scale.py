"""The transform of a series' numbers before a network, and its inverse.

level_t = log y_t, log(1 + y_t) or y_t; u_t = level_t − level_{t−lag}; z_t = (u_t − μ)/σ

μ and σ come from the training part alone; in a panel, each series has separate values. Only targets
have levels and differences; other columns are only scaled, and calendar columns unchanged. Missing
values stay NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from ensue.data.time.dates import Moment
from ensue.errors import DataError
from ensue.tasks.declarations import DISTINCT, OMITTED, Axis, Derived, Length, Range, Shape
from ensue.tasks.forecast.series import Id, Series, Steps
from ensue.tasks.forecast.settings import ForecastSettings


def calendar(moments: Sequence[Moment], names: Sequence[str]) -> NDArray[np.float64]:
    """Sine and cosine of each phase, so that December is next to January; shape (steps,
    2·names)."""
    phases = np.array([[_phase(moment, name) for name in names] for moment in moments])
    turns = 2 * np.pi * phases.reshape(len(moments), len(names))
    return np.stack([np.sin(turns), np.cos(turns)], -1).reshape(len(moments), -1)


def _phase(moment: Moment, name: str) -> float:
    if isinstance(moment, float):
        raise DataError(f"calendar: {name} needs dates, got the number {moment:g}")
    if name == "month":
        return (moment.month - 1) / 12
    if name == "weekday":
        return moment.weekday() / 7
    hours = moment.hour + moment.minute / 60
    if name == "hour":
        return hours / 24
    return (moment.timetuple().tm_yday - 1 + hours / 24) / 365.25


Array = NDArray[np.float64]

ROUNDING = 1e-12
LOWEST = {"log": 0.0, "log1p": -1.0}  # minimum of numbers for levels


@dataclass(frozen=True)
class ForecastScale:
    """The scale of the numbers. mean, spread: mean and spread of each column's z; unit: the spread
    of each untransformed target, the unit of scaled errors. In a panel, each has a row for every
    series in `ids`. floor: replaces smaller targets before a logarithm; None: these are an
    error."""

    transform: Annotated[str, Derived("transform")]
    lag: Annotated[int, Derived("lag")]
    mean: Annotated[Array, Shape(Axis("ids"), "columns")]
    spread: Annotated[Array, Shape(Axis("ids"), "columns"), Range(above=0)]
    unit: Annotated[Array, Shape(Axis("ids"), "settings.targets"), Range(above=0)]
    ids: Annotated[tuple[Annotated[Id, Length("settings.ids")], ...], DISTINCT, OMITTED] = ()
    floor: Annotated[Array, Shape("settings.targets"), Range(above=0)] | None = None

    @classmethod
    def of(
        cls, train: Series, settings: ForecastSettings, floor: Array | None = None
    ) -> ForecastScale:
        targets = len(settings.targets)
        refuse_constants(train, settings)
        panel = bool(settings.ids)
        unit = np.atleast_2d(_by_series(train, train.values[:, :targets], panel)[1])
        empty = np.zeros(0)
        ids = train.ids if panel else ()
        rough = cls(settings.transform, settings.difference, empty, empty, unit, ids, floor)
        rough = rough if panel else replace(rough, unit=unit[0])
        u = rough.differences(rough.levels(train, settings), train)
        mean, spread = _by_series(train, u, panel, rough.lag)
        return replace(rough, mean=mean, spread=spread)

    @classmethod
    def plain(cls, series: Series, targets: int, panel: bool) -> ForecastScale:
        """The scale of untransformed targets."""
        mean, spread = _by_series(series, series.values[:, :targets], panel)
        return cls("none", 0, mean, spread, spread, series.ids if panel else ())

    @property
    def targets(self) -> int:
        return int(self.unit.shape[-1])

    def aligned(self, series: Series, history: int) -> ForecastScale:
        """The scale with a row for each of these series. A series that training did not have is
        scaled by its first `history` steps, which precede all its forecasts."""
        if not self.ids or self.ids == series.ids:
            return self
        known = {key: k for k, key in enumerate(self.ids)}
        rows = np.array([known.get(key, -1) for key in series.ids])
        mean, spread, unit = (values[rows].copy() for values in (self.mean, self.spread, self.unit))
        for k in np.flatnonzero(rows < 0):
            first = series.bounds[k]
            alone = series.values[first : min(first + history, series.bounds[k + 1])]
            levels = self._levels(alone)
            typical = np.median(self.spread, 0)
            moments = _moments(self._differenced(levels)[self.lag :], typical)
            mean[k], spread[k] = moments
            unit[k] = _moments(alone[:, : self.targets], np.median(self.unit, 0))[1]
        return replace(self, mean=mean, spread=spread, unit=unit, ids=series.ids)

    def levels(self, series: Series, settings: ForecastSettings) -> Array:
        """(steps, columns), with targets converted to levels."""
        least = LOWEST.get(self.transform)
        if least is not None and self.floor is None:
            targets = series.values[:, : self.targets]
            wrong = np.argwhere(targets <= least)
            if len(wrong):
                step, k = wrong[0]
                raise DataError(
                    f"{series.names[int(step)]}: column {settings.targets[k]!r}: expected a number "
                    f"> {least:g} for model.transform {self.transform}, got {targets[step, k]:g}"
                )
        return self._levels(series.values)

    def _levels(self, values: Array) -> Array:
        levels = values.copy()
        levels[:, : self.targets] = self.to_level(levels[:, : self.targets])
        return levels

    def to_level(self, y: Array) -> Array:
        if self.transform == "none":
            return y
        if self.floor is not None:
            y = np.maximum(y, self.floor)
        return np.asarray(np.log(y) if self.transform == "log" else np.log1p(y))

    def differences(self, levels: Array, series: Series) -> Array:
        """Differenced levels; NaN if there is no step `lag` back."""
        levels_differenced = self._differenced(levels)
        if self.lag:
            levels_differenced[
                np.arange(len(levels)) - series.starts < self.lag, : self.targets
            ] = np.nan
        return levels_differenced

    def _differenced(self, levels: Array) -> Array:
        if not self.lag:
            return levels
        differenced = levels.copy()
        differenced[:, : self.targets] = np.nan
        differenced[self.lag :, : self.targets] = (
            levels[self.lag :, : self.targets] - levels[: -self.lag, : self.targets]
        )
        return differenced

    def inward(self, levels: Array, series: Series, names: list[str]) -> NDArray[np.float32]:
        """z (steps, columns and calendar)."""
        mean, spread = self.mean, self.spread
        if self.ids:
            mean, spread = mean[series.owner], spread[series.owner]
        z = (self.differences(levels, series) - mean) / spread
        if names:
            z = np.concatenate([z, calendar(series.moments, names)], 1)
        return np.ascontiguousarray(z, np.float32)

    def of_windows(self, owner: Steps) -> tuple[Array, Array]:
        """Mean and spread of the targets, (windows, targets) in a panel. owner: the series of each
        window."""
        mean, spread = self.mean[..., : self.targets], self.spread[..., : self.targets]
        return (mean[owner], spread[owner]) if self.ids else (mean, spread)

    def to_levels(self, z: Array, before: Array, owner: Steps) -> Array:
        """Levels (…, horizon, windows, targets) of z of the same shape; before (lag, windows,
        targets): the levels before them; owner: the series of each window."""
        mean, spread = self.of_windows(owner)
        u = z * spread + mean
        for step in range(u.shape[-3] if self.lag else 0):
            back = before[step] if step < self.lag else u[..., step - self.lag, :, :]
            u[..., step, :, :] += back
        return u

    def from_levels(self, levels: Array) -> Array:
        """The inverse of `levels`: numbers in the units of the data."""
        if self.transform == "none":
            return levels
        return np.exp(levels) if self.transform == "log" else np.expm1(levels)


def refuse_constants(train: Series, settings: ForecastSettings) -> None:
    for k, name in enumerate(settings.targets):
        values = train.values[:, k]
        finite = values[np.isfinite(values)]
        if not len(finite):
            raise DataError(
                f"{name}: no value at any of the {len(train)} steps of the training part; choose "
                "another column, or give more rows"
            )
        if np.all(finite == finite[0]):
            raise DataError(
                f"{name}: the same number, {finite[0]:g}, at all {len(train)} steps of the "
                "training part: there is nothing to learn from a constant; choose another "
                "column, or give more rows"
            )


def _by_series(series: Series, values: Array, panel: bool, lag: int = 0) -> tuple[Array, Array]:
    """Mean and spread of each column; in a panel, with a row for each series. A constant series
    gets the spread of the others."""
    if not panel:
        return _moments(values[lag:])
    typical = _moments(values)[1]
    bounds = series.bounds
    each = [_moments(values[bounds[k] + lag : bounds[k + 1]], typical) for k in range(series.count)]
    return np.stack([mean for mean, _ in each]), np.stack([spread for _, spread in each])


def _moments(values: Array, typical: Array | None = None) -> tuple[Array, Array]:
    """Mean and spread of each column; a column that is constant except for rounding gets spread 1,
    or `typical`."""
    if np.isfinite(values).all() and len(values):
        mean, spread = values.mean(0), values.std(0)
    else:
        known = np.isfinite(values)
        count = np.maximum(known.sum(0), 1)
        filled = np.where(known, values, 0.0)
        mean = filled.sum(0) / count
        spread = np.sqrt((np.where(known, values - mean, 0.0) ** 2).sum(0) / count)
    flat = spread <= ROUNDING * np.maximum(np.abs(mean), 1)
    return mean, np.where(flat, 1.0 if typical is None else typical, spread)

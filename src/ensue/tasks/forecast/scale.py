"""What is done to the numbers of a series before a network sees them, and undone after it.

    level_t = log y_t, log(1 + y_t) or y_t;   u_t = level_t − level_{t−lag};   z_t = (u_t − μ)/σ

μ and σ come from the training part alone. Levels and differences are those of the targets; other
columns are scaled only, and the calendar's stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ensue.errors import DataError
from ensue.tasks.forecast.calendar import calendar
from ensue.tasks.forecast.series import Series
from ensue.tasks.forecast.settings import ForecastSettings

Array = NDArray[np.float64]

ROUNDING = 1e-12


@dataclass(frozen=True)
class ForecastScale:
    """mean, spread: of each column's z; unit: the spread of each target as it came, in which
    scaled errors are counted."""

    transform: str
    lag: int
    mean: Array
    spread: Array
    unit: Array

    @classmethod
    def of(cls, train: Series, settings: ForecastSettings) -> ForecastScale:
        targets, values = len(settings.targets), train.values
        for k, name in enumerate(settings.targets):
            if np.all(values[:, k] == values[0, k]):
                raise DataError(
                    f"{name}: the same number, {values[0, k]:g}, at all {len(train)} steps of the "
                    "training part: there is nothing to learn from a constant; choose another "
                    "column, or give more rows"
                )
        unit = values[:, :targets].std(0)
        rough = cls(settings.transform, settings.difference, np.zeros(0), np.zeros(0), unit)
        u = rough.differences(rough.levels(train, settings))
        return cls(rough.transform, rough.lag, *_moments(u[rough.lag :]), unit)

    @classmethod
    def plain(cls, values: Array) -> ForecastScale:
        """Of targets as they are, (steps, targets)."""
        return cls("none", 0, *_moments(values), values.std(0))

    @property
    def targets(self) -> int:
        return len(self.unit)

    def levels(self, series: Series, settings: ForecastSettings) -> Array:
        """(steps, columns), with the targets as levels."""
        values = series.values.copy()
        targets = values[:, : self.targets]
        if self.transform == "none":
            return values
        least = 0.0 if self.transform == "log" else -1.0
        wrong = np.argwhere(targets <= least)
        if len(wrong):
            step, k = wrong[0]
            raise DataError(
                f"{series.names[int(step)]}: column {settings.targets[k]!r}: expected a number "
                f"> {least:g} for model.transform {self.transform}, got {targets[step, k]:g}"
            )
        log = np.log if self.transform == "log" else np.log1p
        values[:, : self.targets] = log(targets)
        return values

    def differences(self, levels: Array) -> Array:
        """NaN where there is no step so far back."""
        if not self.lag:
            return levels
        found = levels.copy()
        found[:, : self.targets] = np.nan
        found[self.lag :, : self.targets] = (
            levels[self.lag :, : self.targets] - levels[: -self.lag, : self.targets]
        )
        return found

    def inward(self, levels: Array, series: Series, names: list[str]) -> NDArray[np.float32]:
        """z (steps, columns and calendar)."""
        z = (self.differences(levels) - self.mean) / self.spread
        if names:
            z = np.concatenate([z, calendar(series.moments, names)], 1)
        return np.ascontiguousarray(z, np.float32)

    def to_levels(self, z: Array, before: Array) -> Array:
        """Levels (…, horizon, windows, targets) of z of the same shape; before (lag, windows,
        targets): the levels before them."""
        u = z * self.spread[: self.targets] + self.mean[: self.targets]
        for step in range(u.shape[-3] if self.lag else 0):
            back = before[step] if step < self.lag else u[..., step - self.lag, :, :]
            u[..., step, :, :] += back
        return u

    def from_levels(self, levels: Array) -> Array:
        """In the units of the data."""
        if self.transform == "none":
            return levels
        return np.exp(levels) if self.transform == "log" else np.expm1(levels)

    def arrays(self) -> dict[str, Array]:
        return {"mean": self.mean, "spread": self.spread, "unit": self.unit}


def _moments(values: Array) -> tuple[Array, Array]:
    """Mean and spread of each column; one that changes by rounding alone has spread 1."""
    mean, spread = values.mean(0), values.std(0)
    flat = spread <= ROUNDING * np.maximum(np.abs(mean), 1)
    return mean, np.where(flat, 1.0, spread)

"""A series: steps in the order of time, evenly spaced, and what its columns give away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ensue.tasks.forecast.calendar import Moment, check_spacing, moment_of, shown, spacing_of
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.tasks.rows.part import Names

ALIKE = 0.999  # a correlation from which on a covariate is a copy


@dataclass(frozen=True)
class Series:
    """values (steps, columns) in the order of the settings; NaN where a target is still ahead.
    times: as written, and as moments; () where there are none. names: where each step comes
    from."""

    values: NDArray[np.float64]
    times: tuple[str, ...]
    moments: tuple[Moment, ...]
    names: Names

    @classmethod
    def of(
        cls, values: NDArray[np.float64], times: Sequence[str], names: Names, column: str
    ) -> Series:
        """An error names the step whose time is not evenly spaced. column: that of the times."""
        moments = tuple(moment_of(time, column, names[k]) for k, time in enumerate(times))
        check_spacing(times, moments, column, names)
        return cls(values, tuple(times), moments, names)

    def __len__(self) -> int:
        return len(self.values)

    def until(self, step: int) -> Series:
        """The steps before this one."""
        return Series(self.values[:step], self.times[:step], self.moments[:step], self.names)

    def lengthened(self, steps: int) -> Series:
        """With steps after the end of which nothing is known but their times."""
        empty = np.full((steps, self.values.shape[1]), np.nan)
        values, moments = np.concatenate([self.values, empty]), self.moments
        if not moments:
            return Series(values, (), (), self.names)
        spacing = spacing_of(moments[-2], moments[-1])
        moments = (*moments, *(spacing.after(moments[-1], k) for k in range(1, steps + 1)))
        return Series(values, (*self.times, *times_ahead(self, steps)), moments, self.names)


def times_ahead(series: Series, horizon: int) -> list[str]:
    """The times of the steps after the last, written as that one; +1, +2, … where there are
    none."""
    if len(series.moments) < 2:
        return [f"+{k}" for k in range(1, horizon + 1)]
    spacing = spacing_of(series.moments[-2], series.moments[-1])
    last, like = series.moments[-1], series.times[-1]
    return [shown(spacing.after(last, k), like) for k in range(1, horizon + 1)]


# --- leakage -------------------------------------------------------------------------------


def leaks(train: Series, settings: ForecastSettings) -> list[str]:
    """Warnings: what is said to be known ahead, but looks like a target, or like one of its next
    steps."""
    found = []
    targets = len(settings.targets)
    for at, name in enumerate(settings.known, len(settings.columns) - len(settings.known)):
        for k, target in enumerate(settings.targets):
            shift = _copied(train.values[:, at], train.values[:, k], settings.horizon)
            if shift is not None:
                when = "at the same step" if not shift else f"{abs(shift)} steps away"
                found.append(
                    f"{name} is said to be known ahead, and is nearly the target {target} itself "
                    f"({when}): the forecasts will be too good. Leave it out, unless you really "
                    "know it before"
                )
    for at, name in enumerate(settings.covariates, targets):
        for k, target in enumerate(settings.targets):
            shift = _copied(train.values[:, at], train.values[:, k], settings.horizon)
            if shift is not None and shift > 0:
                found.append(
                    f"{name} has {target} {shift} step{'s' * (shift > 1)} before it happens: a "
                    "column that was shifted? Leave it out"
                )
    return found


def _copied(covariate: NDArray[np.float64], target: NDArray[np.float64], most: int) -> int | None:
    """How many steps ahead of the target the covariate is, if it is a copy of it."""
    steps = len(target)
    for shift in sorted(range(-most, most + 1), key=abs):
        one = covariate[max(0, -shift) : steps - max(0, shift)]
        other = target[max(0, shift) : steps - max(0, -shift)]
        if len(one) < 3 or one.std() == 0 or other.std() == 0:
            continue
        if abs(np.corrcoef(one, other)[0, 1]) > ALIKE:
            return shift
    return None

"""Series for solved members: without gaps, with padding before each, and a common clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ensue.errors import DataError
from ensue.files.opening import NUMBERS
from ensue.tasks.forecast.seasons import seasonally_filled
from ensue.tasks.forecast.series import Series, Steps, carried_forward, ranges

Array = NDArray[np.float64]
T = TypeVar("T")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LEAST = 1e-9  # of a spread


@dataclass(frozen=True)
class Ground:
    """y (room and steps, targets): values without gaps, each series padded in front with its first
    value, `room` times; at (steps,): the index of each step in y; clock: steps since a fixed
    moment; known, beside: columns known ahead, and columns known up to now, at the same indices.
    results: cached results of members over all steps."""

    series: Series
    season: int
    room: int
    y: Array
    at: Steps
    clock: Array
    known: Array
    beside: Array
    results: dict[int, tuple[object, Any]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, series: Series, targets: int, known: int, season: int, room: int) -> Ground:
        """The ground of series. known: number of last columns that are known ahead."""
        bounds = series.bounds + room * np.arange(series.count + 1)
        if int(bounds[-1]) * series.values.shape[1] > NUMBERS:
            raise DataError(
                f"{series.count:,} series, each extended by {room:,} steps, need more than "
                f"{NUMBERS:,} numbers: forecast fewer series at a time"
            )
        at = ranges(bounds[:-1] + room, bounds[1:])
        filled = seasonally_filled(series, targets, season)
        others = carried_forward(series.values[:, targets:], series.starts)
        step = _clock(series)
        owner = np.repeat(np.arange(series.count), np.diff(bounds))
        back = np.arange(int(bounds[-1])) - bounds[:-1][owner] - room  # before 0: room
        source = np.clip(
            series.bounds[:-1][owner] + np.maximum(back, 0), 0, max(len(series) - 1, 0)
        )
        every = others.shape[1]
        return cls(
            series,
            season,
            room,
            filled[source],
            at,
            step[source] + np.minimum(back, 0),
            others[source][:, every - known :],
            others[source][:, : every - known],
        )

    def once(self, member: object, compute: Callable[[], T]) -> T:
        """The cached result of a member over all steps, computed at the first request."""
        if id(member) not in self.results:
            self.results[id(member)] = member, compute()
        value: T = self.results[id(member)][1]
        return value

    def spread(self, origins: Steps, length: int) -> Array:
        """The spread of the `length` steps before each origin, at least a
        hundredth of their size; shape (windows, targets)."""
        first, second = self._sums
        place = self.at_origin(origins)
        mean = (first[place] - first[place - length]) / length
        square = (second[place] - second[place - length]) / length
        sqrt = np.sqrt(np.maximum(square - mean**2, 0.0))
        return np.maximum(sqrt, 0.01 * np.abs(mean) + LEAST)

    @cached_property
    def _sums(self) -> tuple[Array, Array]:
        zero = np.zeros((1, self.y.shape[1]))
        return tuple(np.concatenate([zero, np.cumsum(values, 0)]) for values in (self.y, self.y**2))  # type: ignore[return-value]

    def at_origin(self, origins: Steps) -> Steps:
        """The index of the first step ahead, which may be one beyond the last index."""
        return np.asarray(self.at[origins - 1] + 1)

    def level(self, transform: str, floor: Array) -> Array:
        """y or its logarithm. floor (targets,): replaces smaller numbers."""
        return self.y if transform == "none" else np.log(np.maximum(self.y, floor))


def _clock(series: Series) -> Array:
    """Steps since a fixed moment, so that the same time has the same phase in every file."""
    spacing = series.spacing
    if spacing is None or not series.moments:
        return (np.arange(len(series)) - series.starts).astype(np.float64)
    first = series.moments[0]
    if isinstance(first, float):
        assert isinstance(spacing.span, float)
        return np.array(series.moments, np.float64) / spacing.span
    dates = [moment for moment in series.moments if isinstance(moment, datetime)]
    if spacing.months:
        return np.array([(12 * date.year + date.month - 1) / spacing.months for date in dates])
    seconds = np.array([(date - EPOCH).total_seconds() for date in dates])
    day = timedelta(days=1).total_seconds()
    if spacing.working:
        return seconds / day * 260.9 / 365.25
    assert isinstance(spacing.span, timedelta)
    return seconds / spacing.span.total_seconds()


def harmonics(clock: Array, periods: tuple[float, ...], pairs: int) -> Array:
    """Sine and cosine of each period / k, k = 1 … pairs; shape (steps, 2·pairs·periods)."""
    waves = []
    for period in periods:
        for k in range(1, pairs + 1):
            turns = 2 * np.pi * np.mod(clock * k / period, 1.0)
            waves += [np.sin(turns), np.cos(turns)]
    return np.stack(waves, 1) if waves else np.zeros((len(clock), 0))

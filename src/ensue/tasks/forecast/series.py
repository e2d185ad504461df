"""Series: steps in the order of time, one series after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ensue.data.time.axis import Axis, Spacing
from ensue.data.time.dates import ISO, Moment, Spelling
from ensue.tasks.rows.part import Names

Steps = NDArray[np.int64]
Id = tuple[str, ...]
ONE_SERIES: tuple[Id, ...] = ((),)


@dataclass(frozen=True)
class Series:
    """One series, or the many of a panel.

    values (steps, columns) in the order of the settings, all series one after another; NaN where a
    value is missing or still ahead. bounds (series + 1): where each series begins; ids: the ids of
    each series; static: the static columns of each series, in the order of the settings. times,
    moments: the times as written, and parsed; () without a time column. names: where each step
    comes from. spacing: None if rows count as steps."""

    values: NDArray[np.float64]
    names: Names
    bounds: Steps
    ids: tuple[Id, ...] = ONE_SERIES
    static: tuple[tuple[Any, ...], ...] = ((),)
    times: tuple[str, ...] = ()
    moments: tuple[Moment, ...] = ()
    spacing: Spacing | None = None
    spelling: Spelling = field(default=ISO, compare=False)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def count(self) -> int:
        """The number of series."""
        return len(self.ids)

    @property
    def lengths(self) -> Steps:
        return np.diff(self.bounds)

    @cached_property
    def owner(self) -> Steps:
        """The series of each step (steps,)."""
        return np.repeat(np.arange(self.count), self.lengths)

    @cached_property
    def starts(self) -> Steps:
        """The first step of each step's series (steps,)."""
        return np.repeat(self.bounds[:-1], self.lengths)

    def slices(self, firsts: Steps, ends: Steps) -> Series:
        """The steps from `firsts` to before `ends` of each series."""
        lengths = np.maximum(ends - firsts, 0)
        rows = ranges(firsts, firsts + lengths)
        bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        values, names = self.values[rows], self.names.take(rows)
        times = tuple(self.times[row] for row in rows) if self.times else ()
        moments = tuple(self.moments[row] for row in rows) if self.moments else ()
        return replace(
            self, values=values, names=names, bounds=bounds, times=times, moments=moments
        )

    def until(self, step: int) -> Series:
        """The steps of one series before this one."""
        assert self.count == 1
        return self.slices(self.bounds[:-1], np.array([step]))

    def only(self, k: int) -> Series:
        """One series of a panel."""
        return self.among([k])

    def among(self, rows: Sequence[int]) -> Series:
        """These series of a panel, in this order."""
        if list(rows) == list(range(self.count)):
            return self
        series = self.slices(self.bounds[:-1][rows], self.bounds[1:][rows])
        ids, static = ([values[k] for k in rows] for values in (self.ids, self.static))
        return replace(series, ids=tuple(ids), static=tuple(static))

    def lengthened(self, steps: int | Steps) -> Series:
        """The series with steps added after their ends; only the times of these steps are known."""
        many = np.broadcast_to(np.asarray(steps, np.int64), (self.count,))
        bounds = self.bounds + np.concatenate([[0], np.cumsum(many)])
        values = np.full((int(bounds[-1]), self.values.shape[1]), np.nan)
        rows = np.full(len(values), 0, np.int64)
        at = ranges(bounds[:-1], bounds[1:] - many)
        values[at] = self.values
        rows[at] = np.arange(len(self))
        for k in range(self.count):  # a step ahead has the name of the last known step
            rows[bounds[k + 1] - many[k] : bounds[k + 1]] = max(self.bounds[k + 1] - 1, 0)
        times, moments = list[str](), list[Moment]()
        for k in range(self.count if self.times else 0):
            first, end = self.bounds[k], self.bounds[k + 1]
            times += [*self.times[first:end], *self.times_after(k, int(many[k]))]
            moments += [*self.moments[first:end], *self._moments_after(k, int(many[k]))]
        names = self.names.take(rows)
        fields_of_series = {"values": values, "names": names, "bounds": bounds}
        return replace(self, **fields_of_series, times=tuple(times), moments=tuple(moments))

    def _moments_after(self, k: int, steps: int) -> list[Moment]:
        end = int(self.bounds[k + 1])
        if self.spacing is None:
            return [self.moments[end - 1]] * steps if end else []
        return [self.spacing.after(self.moments[end - 1], j) for j in range(1, steps + 1)]

    def times_after(self, k: int, steps: int) -> list[str]:
        """The times of the steps after the last of a series, written in the same format; +1, +2, …
        without times."""
        if not self.times or self.spacing is None:
            return [f"+{j}" for j in range(1, steps + 1)]
        like = self.times[int(self.bounds[k + 1]) - 1]
        return [self.spelling.write(moment, like) for moment in self._moments_after(k, steps)]


def ranges(firsts: Steps, ends: Steps) -> Steps:
    """The numbers from each first to before its end, one range after another.

    >>> ranges(np.array([0, 7]), np.array([2, 9])).tolist()
    [0, 1, 7, 8]
    """
    lengths = ends - firsts
    before = np.concatenate([[0], np.cumsum(lengths)])[:-1]
    return np.asarray(np.arange(lengths.sum()) + np.repeat(firsts - before, lengths), np.int64)


F = TypeVar("F", np.float32, np.float64)


def carried_forward(values: NDArray[F], starts: Steps | None = None) -> NDArray[F]:
    """Replaces each missing value by the last one before it, or 0; returns the same array if
    nothing is missing. starts: where the series of each step begins."""
    known = np.isfinite(values)
    if known.all():
        return values
    steps = np.arange(len(values))[:, None]
    last = np.maximum.accumulate(np.where(known, steps, -1), axis=0)
    first = 0 if starts is None else starts[:, None]
    filled = values[np.maximum(last, 0), np.arange(values.shape[1])]
    return np.ascontiguousarray(np.where(last >= first, filled, 0.0), values.dtype)


def series_of_axis(
    axis: Axis,
    values: NDArray[np.float64],
    names: Names,
    static: Sequence[tuple[Any, ...]],
    spelling: Spelling,
) -> Series:
    """The series of a time axis. values, names: values and name of each row of a table; static: the
    static columns of each series."""
    rows, present = axis.rows, axis.rows >= 0
    table = np.full((len(rows), values.shape[1]), np.nan)
    table[present] = values[rows[present]]
    # an inserted step has the name of the row after it, which always exists
    following = np.minimum.accumulate(np.where(present, np.arange(len(rows)), len(rows))[::-1])[
        ::-1
    ]
    places = names.take(rows[following]) if len(rows) else names
    return Series(
        table,
        places,
        axis.bounds,
        axis.ids,
        tuple(static),
        axis.times,
        axis.moments,
        axis.spacing,
        spelling,
    )

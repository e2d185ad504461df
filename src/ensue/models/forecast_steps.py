"""A series as rows: one step each, its numbers as the input, its time as the label.

So a series is collected, split and named (file and line) as the rows of every other task are;
here it is checked, and gets the features of its calendar.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.data.options import ReadOptions, require
from ensue.data.ragged import Ragged
from ensue.data.read import gather
from ensue.data.rows import Place, Row
from ensue.data.series import not_a_number, number_of
from ensue.errors import DataError, OptionError
from ensue.models.collect import Collected, Names, Numbers
from ensue.models.forecast_settings import ForecastSettings
from ensue.models.forecast_times import Moment, check_spacing, moment_of, shown, spacing_of

Table = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]]

MOST_SHOWN = 5  # problems of one message
ROUNDING = 1e-9
ALIKE = 0.999  # a correlation from which on a covariate is a copy


@dataclass(frozen=True)
class Series:
    """values (steps, columns) in the order of the settings; NaN where a target is still ahead.
    times: as written, and as moments; () where there are none. names: where each step stands."""

    values: NDArray[np.float64]
    times: tuple[str, ...]
    moments: tuple[Moment, ...]
    names: Names

    def __len__(self) -> int:
        return len(self.values)

    def begun(self, steps: int) -> Series:
        """The first steps."""
        return Series(self.values[:steps], self.times[:steps], self.moments[:steps], self.names)

    def lengthened(self, steps: int) -> Series:
        """With steps behind the end of which nothing is known but their times."""
        empty = np.full((steps, self.values.shape[1]), np.nan)
        values, moments = np.concatenate([self.values, empty]), self.moments
        if not moments:
            return Series(values, (), (), self.names)
        spacing = spacing_of(moments[-2], moments[-1])
        moments = (*moments, *(spacing.after(moments[-1], k) for k in range(1, steps + 1)))
        return Series(values, (*self.times, *times_ahead(self, steps)), moments, self.names)


# --- from tables ---------------------------------------------------------------------------


def steps_of(
    table: Table,
    settings: ForecastSettings,
    numbers: Numbers | None = None,
    *,
    file: str = "row",
    ahead: bool = False,
) -> tuple[Collected, Numbers]:
    """Columns by name, or a list of rows. numbers: of the parts that this one belongs to; ahead:
    rows of the time to come, without targets and covariates."""
    if not settings.targets:
        raise OptionError("model.targets: expected the columns to forecast, got none")
    columns = _columns(table)
    wanted = settings.known if ahead else settings.columns
    timed = [settings.time] if settings.time else []
    require([*wanted, *timed], list(columns), Place(file, 1))
    lengths = {name: len(columns[name]) for name in [*wanted, *timed]}
    if len(set(lengths.values())) > 1:
        raise DataError(f"{file}: expected columns of one length, got {lengths}")
    count = next(iter(lengths.values()), 0)
    names = Names((file,), np.zeros(count, np.int32), np.arange(1, count + 1))
    times = [str(own) for own in columns[settings.time]] if timed else []
    own = {name: columns[name] for name in wanted}
    numbers = Numbers() if numbers is None else numbers
    return _collected(own, times, settings, names, numbers), numbers


def steps_of_rows(
    rows: Sequence[Row], settings: ForecastSettings, numbers: Numbers, *, ahead: bool = False
) -> Collected:
    """Rows as a reader gives them, with their places."""
    files = {file: k for k, file in enumerate(dict.fromkeys(row.place.file for row in rows))}
    names = Names(
        tuple(files),
        np.array([files[row.place.file] for row in rows], np.int32),
        np.array([row.place.line for row in rows], np.int64),
    )
    wanted = settings.known if ahead else settings.columns
    columns = {name: [row.fields[name] for row in rows] for name in wanted}
    times = [str(row.fields[settings.time]) for row in rows] if settings.time else []
    return _collected(columns, times, settings, names, numbers)


def read_steps(
    paths: Sequence[Path | str],
    settings: ForecastSettings,
    numbers: Numbers,
    options: ReadOptions | None = None,
    *,
    ahead: bool = False,
) -> Collected:
    """The rows of files, behind one another. ahead: of the time to come, without targets."""
    wanted = settings.known if ahead else settings.columns
    how = replace(options or ReadOptions(), numbers=tuple(wanted), time=settings.time or None)
    return steps_of_rows(list(gather(paths, how)), settings, numbers, ahead=ahead)


def _columns(table: Table) -> dict[str, Sequence[Any]]:
    if isinstance(table, Mapping):
        return dict(table)
    rows = list(table)
    if not all(isinstance(row, Mapping) for row in rows):
        raise DataError("expected columns by name, or a list of rows that are dictionaries")
    return {name: [row.get(name) for row in rows] for name in (rows[0] if rows else {})}


def _collected(
    columns: Mapping[str, Sequence[Any]],
    times: Sequence[str],
    settings: ForecastSettings,
    names: Names,
    numbers: Numbers,
) -> Collected:
    count = len(names.line)
    values = np.full((count, len(settings.columns)), math.nan)
    faults = []
    for name, column in columns.items():
        found = [number_of(_plain(own)) for own in column]
        faults += [
            f"{names[k]}: {not_a_number(name, column[k])}"
            for k, own in enumerate(found)
            if own is None
        ]
        if not faults:
            values[:, settings.columns.index(name)] = found
    if faults:
        more = [f"and {len(faults) - MOST_SHOWN} more"] if len(faults) > MOST_SHOWN else []
        raise DataError("\n".join([*faults[:MOST_SHOWN], *more]))
    starts = np.arange(count + 1)
    labels = None
    if settings.time:
        labels = Ragged(np.array([numbers.labels[time] for time in times], np.int32), starts)
    return Collected(Ragged(values, starts), labels, names)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def joined(first: Collected, second: Collected) -> Collected:
    """One part behind the other, whose numbers they share."""
    files = (*first.names.files, *second.names.files)
    names = Names(
        files,
        np.concatenate([first.names.file, second.names.file + len(first.names.files)]),
        np.concatenate([first.names.line, second.names.line]),
    )
    starts = np.arange(len(first) + len(second) + 1)
    labels = None
    if first.labels is not None and second.labels is not None:
        labels = Ragged(np.concatenate([first.labels.values, second.labels.values]), starts)
    values = np.concatenate([first.inputs.values, second.inputs.values])
    return Collected(Ragged(values, starts), labels, names)


def cut(part: Collected, start: int, end: int) -> Collected:
    """Some steps of a series."""
    return part.taken(np.arange(start, end))


def divided(part: Collected, settings: ForecastSettings, history: int) -> dict[str, Collected]:
    """train, validation and test, in the order of time; the test part begins with `history` steps
    of the ones before, and so does "validated", the validation part as it is evaluated. Steps
    behind the numbers that are given belong to none."""
    count, split = len(part), settings.split
    shares = abs(sum(split) - 1) < ROUNDING
    ends = [round(count * own) if shares else int(own) for own in accumulate(split)]
    if ends[-1] > count:
        raise DataError(
            f"{part.names[count - 1]}: model.split names {ends[-1]} steps, and the series has "
            f"{count}"
        )
    train, validation, test = ends
    return {
        "train": cut(part, 0, train),
        "validation": cut(part, train, validation),
        "validated": cut(part, max(0, train - history), validation),
        "test": cut(part, max(0, validation - history), test),
    }


# --- checked -------------------------------------------------------------------------------


def series_of(part: Collected, numbers: Numbers, settings: ForecastSettings) -> Series:
    """The series of a part, its times evenly spaced."""
    values = np.asarray(part.inputs.values, np.float64)
    if values.ndim != 2 or values.shape[1] != len(settings.columns):
        raise DataError(
            f"{part.names[0] if len(part) else 'the series'}: expected steps of "
            f"{len(settings.columns)} numbers: {', '.join(settings.columns)}"
        )
    times: tuple[str, ...] = ()
    if settings.time and part.labels is not None:
        written = list(numbers.labels)
        times = tuple(written[k] for k in part.labels.values)
    moments = tuple(moment_of(time, settings.time, part.names[k]) for k, time in enumerate(times))
    check_spacing(times, moments, settings.time, part.names)
    return Series(values, times, moments, part.names)


def times_ahead(series: Series, horizon: int) -> list[str]:
    """The times of the steps behind the last, written as its own; +1, +2, … where there are
    none."""
    if len(series.moments) < 2:
        return [f"+{k}" for k in range(1, horizon + 1)]
    spacing = spacing_of(series.moments[-2], series.moments[-1])
    last, like = series.moments[-1], series.times[-1]
    return [shown(spacing.after(last, k), like) for k in range(1, horizon + 1)]


# --- leakage -------------------------------------------------------------------------------


def leaks(series: Series, settings: ForecastSettings, train: int) -> list[str]:
    """Warnings: what is said to be known ahead, but looks like a target, or like one of the next
    steps of it. Looked at in the training part alone."""
    found = []
    targets = len(settings.targets)
    for at, name in enumerate(settings.known, len(settings.columns) - len(settings.known)):
        for k, target in enumerate(settings.targets):
            shift = _copied(series.values[:train, at], series.values[:train, k], settings.horizon)
            if shift is not None:
                when = "at the same step" if not shift else f"{abs(shift)} steps away"
                found.append(
                    f"{name} is said to be known ahead, and is nearly the target {target} itself "
                    f"({when}): the forecasts will be too good. Leave it out, unless you really "
                    "know it before"
                )
    for at, name in enumerate(settings.covariates, targets):
        for k, target in enumerate(settings.targets):
            shift = _copied(series.values[:train, at], series.values[:train, k], settings.horizon)
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
        own = covariate[max(0, -shift) : steps - max(0, shift)]
        other = target[max(0, shift) : steps - max(0, -shift)]
        if len(own) < 3 or own.std() == 0 or other.std() == 0:
            continue
        if abs(np.corrcoef(own, other)[0, 1]) > ALIKE:
            return shift
    return None

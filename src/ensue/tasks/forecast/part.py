"""`SeriesPart`: steps of a series that belong together, and those before them that are read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ensue.data.frames.frame import Frame
from ensue.data.frames.origin import FILES, Origin
from ensue.data.options import ReadOptions, require
from ensue.data.read import Gathered
from ensue.data.rows import Place
from ensue.data.series import not_a_number, number_of
from ensue.errors import DataError, OptionError
from ensue.tasks.estimator import HasColumns
from ensue.tasks.forecast.series import Series
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.tasks.rows.part import Names

# Columns by name, rows by name, or a data frame.
SeriesTable = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]] | HasColumns

MOST_SHOWN = 5  # problems of one message


@dataclass(frozen=True)
class SeriesPart:
    """values (steps, columns) in the order of the settings, NaN where nothing is known yet;
    times: as written, () where there are none; places: where each step comes from. begin: the
    first step that belongs to the part; those before it are history, which its forecasts read.
    time: the name of the column of the time."""

    values: NDArray[np.float64]
    times: tuple[str, ...]
    places: Names
    begin: int = 0
    time: str = ""

    def __len__(self) -> int:
        """How many steps belong to it."""
        return len(self.values) - self.begin

    @property
    def names(self) -> Names:
        """Where the steps come from that belong to it."""
        return self.places.take(np.arange(self.begin, len(self.values)))

    @cached_property
    def series(self) -> Series:
        """All of its steps, history first; an error where times are not evenly spaced."""
        return Series.of(self.values, self.times, self.places, self.time)

    def until(self, step: int) -> SeriesPart:
        """The steps before this one, history counted."""
        places = self.places.take(np.arange(len(self.values[:step])))
        begin = min(self.begin, step)
        return SeriesPart(self.values[:step], self.times[:step], places, begin, self.time)

    def since(self, step: int) -> SeriesPart:
        """The steps from this one on, history counted; all before it are history."""
        return replace(self, begin=step)

    def take(self, rows: NDArray[np.int64]) -> SeriesPart:
        """The steps of these numbers, which follow one another; all before them are history."""
        assert len(rows)
        assert np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows)))
        first = self.begin + int(rows[0])
        return self.until(first + len(rows)).since(first)


def joined(first: SeriesPart, second: SeriesPart) -> SeriesPart:
    """The steps that belong to the second, after all of the first."""
    names = second.names
    places = Names(
        (*first.places.files, *names.files),
        np.concatenate([first.places.file, names.file + len(first.places.files)]),
        np.concatenate([first.places.line, names.line]),
    )
    values = np.concatenate([first.values, second.values[second.begin :]])
    times = (*first.times, *second.times[second.begin :])
    return SeriesPart(values, times, places, first.begin, first.time)


def following(before: SeriesPart, part: SeriesPart) -> SeriesPart:
    """The part with all steps of the one before it as history."""
    return joined(before, part).since(len(before.values))


def divided(whole: SeriesPart, settings: ForecastSettings) -> dict[str, SeriesPart]:
    """train, validation and test, in the order of time, each with the steps before it as history.
    Steps after the numbers that are given belong to none."""
    count, shares = len(whole), settings.split_in_shares
    ends = [round(count * end) if shares else int(end) for end in accumulate(settings.split)]
    if ends[-1] > count:
        raise DataError(
            f"{whole.names[count - 1]}: model.split names {ends[-1]} steps, and the series has "
            f"{count}"
        )
    train, validation, test = ends
    return {
        "train": whole.until(train),
        "validation": whole.until(validation).since(train),
        "test": whole.until(test).since(validation),
    }


# --- in memory -----------------------------------------------------------------------------


def _must_have_targets(settings: ForecastSettings) -> None:
    if not settings.targets:
        raise OptionError("model.targets: expected the columns to forecast, got none")


def part_of_table(
    table: SeriesTable, settings: ForecastSettings, *, file: str = "row", ahead: bool = False
) -> SeriesPart:
    """Columns by name, or a list of rows. file: what messages call them; ahead: rows of the steps
    to come, without targets and covariates."""
    _must_have_targets(settings)
    wanted = settings.known if ahead else settings.columns
    timed = [settings.time] if settings.time else []
    columns = _columns(table, [*wanted, *timed])
    require([*wanted, *timed], list(columns), Place(file, 1))
    lengths = {name: len(columns[name]) for name in [*wanted, *timed]}
    if len(set(lengths.values())) > 1:
        raise DataError(f"{file}: expected columns of one length, got {lengths}")
    count = next(iter(lengths.values()), 0)
    places = Names((file,), np.zeros(count, np.int32), np.arange(1, count + 1))
    times = [str(time) for time in columns[settings.time]] if timed else []
    return _part({name: columns[name] for name in wanted}, times, settings, places)


def _columns(table: SeriesTable, wanted: Sequence[str]) -> dict[str, Sequence[Any]]:
    if isinstance(table, Mapping):
        return dict(table)
    frame = Frame.of(table)
    if frame is not None:
        return {name: frame.column(name) for name in wanted}
    rows = list(cast(Iterable[Any], table))
    if not all(isinstance(row, Mapping) for row in rows):
        raise DataError("expected columns by name, or a list of rows that are dictionaries")
    return {name: [row.get(name) for row in rows] for name in (rows[0] if rows else {})}


def _part(
    columns: Mapping[str, Sequence[Any]],
    times: Sequence[str],
    settings: ForecastSettings,
    places: Names,
) -> SeriesPart:
    values = np.full((len(places.line), len(settings.columns)), math.nan)
    faults = []
    for name, column in columns.items():
        found = [number_of(_plain(value)) for value in column]
        faults += [
            f"{places[k]}: {not_a_number(name, column[k])}"
            for k, number in enumerate(found)
            if number is None
        ]
        if not faults:
            values[:, settings.columns.index(name)] = found
    if faults:
        more = [f"and {len(faults) - MOST_SHOWN} more"] if len(faults) > MOST_SHOWN else []
        raise DataError("\n".join([*faults[:MOST_SHOWN], *more]))
    return SeriesPart(values, tuple(times), places, time=settings.time)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


# --- from files ----------------------------------------------------------------------------


def part_of_files(
    paths: Sequence[Path | str],
    settings: ForecastSettings,
    options: ReadOptions | None = None,
    *,
    ahead: bool = False,
    origin: Origin = FILES,
) -> SeriesPart:
    """The rows of files, one file after another. ahead: of the steps to come, without targets and
    covariates; origin: what the rows are read from, if not files."""
    _must_have_targets(settings)
    wanted = settings.known if ahead else settings.columns
    how = replace(options or ReadOptions(), numbers=tuple(wanted), time=settings.time or None)
    sources = {str(path): partial(origin.read, str(path), how) for path in paths}
    rows = list(Gathered(sources, mend=origin.mend))
    files = {file: k for k, file in enumerate(dict.fromkeys(row.place.file for row in rows))}
    places = Names(
        tuple(files),
        np.array([files[row.place.file] for row in rows], np.int32),
        np.array([row.place.line for row in rows], np.int64),
    )
    columns = {name: [row.fields[name] for row in rows] for name in wanted}
    times = [str(row.fields[settings.time]) for row in rows] if settings.time else []
    return _part(columns, times, settings, places)

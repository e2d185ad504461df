"""Series from tables in files, data frames and memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from ensue.data.frames.frame import Frame
from ensue.data.frames.origin import FILES, Origin
from ensue.data.options import ReadOptions, require
from ensue.data.read import Gathered
from ensue.data.roles import columns_of
from ensue.data.rows import Place, Problem, ProblemCallback
from ensue.data.series import not_a_number, number_of
from ensue.data.time.axis import Axis, TimeColumn, arranged, is_missing, time_column
from ensue.data.time.dates import ISO
from ensue.errors import DataError, OptionError
from ensue.tasks.estimator import HasColumns
from ensue.tasks.forecast.part import SeriesPart
from ensue.tasks.forecast.series import series_of_axis
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.tasks.rows.part import Names

# Columns by name, rows by name, or a data frame.
SeriesTable = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]] | HasColumns
Columns = Mapping[str, Sequence[Any]]

MOST_SHOWN = 5  # problems of one message
PARTS = ("year", "month", "day", "hour", "minute", "second")  # parts of a time in several columns


def wanted_columns(settings: ForecastSettings, ahead: bool = False) -> list[str]:
    """The columns to read. ahead: the rows are future steps, without targets and covariates."""
    if not settings.targets:
        raise OptionError("model.targets: expected the columns to forecast, got none")
    numbers = settings.known if ahead else [*settings.columns, *settings.static]
    return list(dict.fromkeys([*settings.time_columns, *settings.ids, *numbers]))


# --- in memory -----------------------------------------------------------------------------


def part_of_table(
    table: SeriesTable, settings: ForecastSettings, *, file: str = "row", ahead: bool = False
) -> SeriesPart:
    """A part from columns by name, or a list of rows. file: their name in messages; ahead: rows of
    future steps, without targets and covariates."""
    names = wanted_columns(settings, ahead)
    columns = _columns(table, names)
    require(names, list(columns), Place(file, 1))
    lengths = {name: len(columns[name]) for name in names}
    if len(set(lengths.values())) > 1:
        raise DataError(f"{file}: expected columns of equal length, got {lengths}")
    count = next(iter(lengths.values()), 0)
    places = Names((file,), np.zeros(count, np.int32), np.arange(1, count + 1))
    values, faults = _numbers(columns, settings, ahead)
    _refuse(faults, places)
    return _part(columns, values, settings, places, ahead)


def _columns(table: SeriesTable, columns: Sequence[str]) -> dict[str, Sequence[Any]]:
    if isinstance(table, Mapping):
        return dict(table)
    frame = Frame.of(table)
    if frame is not None:
        return {name: frame.column(name) for name in columns}
    rows = list(cast(Iterable[Any], table))
    if not all(isinstance(row, Mapping) for row in rows):
        raise DataError("expected columns by name, or a list of rows that are dictionaries")
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


# --- from files ----------------------------------------------------------------------------


def part_of_files(
    paths: Sequence[Path | str],
    settings: ForecastSettings,
    options: ReadOptions | None = None,
    *,
    ahead: bool = False,
    origin: Origin = FILES,
    skip_bad: bool = False,
    on_bad_row: ProblemCallback | None = None,
) -> SeriesPart:
    """A part from the rows of files, one file after another. ahead: the rows are future steps,
    without targets and covariates; origin: what the rows are read from, if not files; skip_bad:
    invalid numbers count as missing values, and unreadable lines as missing steps."""
    names = wanted_columns(settings, ahead)
    must, may = (tuple(names), ()) if not origin.files else ((), tuple(names))
    how = replace(options or ReadOptions(), columns=must, used=may, numbers=(), others=True)
    sources = {str(path): partial(origin.read, str(path), how) for path in paths}
    gathered = Gathered(sources, skip_bad, on_bad_row, mend=origin.mend)
    rows = list(gathered)
    require(names, columns_of(rows), rows[0].place)
    files = {file: k for k, file in enumerate(dict.fromkeys(row.place.file for row in rows))}
    places = Names(
        tuple(files),
        np.array([files[row.place.file] for row in rows], np.int32),
        np.array([row.place.line for row in rows], np.int64),
    )
    columns = {name: [row.fields.get(name) for row in rows] for name in names}
    values, faults = _numbers(columns, settings, ahead)
    if skip_bad:
        for row, message in faults:
            if on_bad_row is not None:
                on_bad_row(Problem(rows[row].place, f"{message}: read as missing", rejects=0))
    elif faults:
        raise _problems(faults, places, sources, origin.mend)
    return _part(columns, values, settings, places, ahead)


# --- numbers -------------------------------------------------------------------------------

Fault = tuple[int, str]  # a row, and its fault


def _numbers(
    columns: Columns, settings: ForecastSettings, ahead: bool
) -> tuple[np.ndarray[Any, np.dtype[np.float64]], list[Fault]]:
    """The numbers of the columns that the settings name (rows, columns), NaN if missing; and the
    faults, cells that are not numbers. ahead: read only columns known ahead; the others are NaN."""
    names = settings.known if ahead else settings.columns
    count = len(next(iter(columns.values()), ()))
    values = np.full((count, len(settings.columns)), math.nan)
    faults: list[Fault] = []
    for name in names:
        numbers = [_number(value) for value in columns[name]]
        wrong = [k for k, number in enumerate(numbers) if number is None]
        faults += [(k, not_a_number(name, columns[name][k])) for k in wrong]
        values[:, settings.columns.index(name)] = [math.nan if n is None else n for n in numbers]
    return values, faults


def _number(value: Any) -> float | None:
    """A cell as a number: NaN if missing, None if it is not a number."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return math.nan
    if isinstance(value, str) and is_missing(value):
        return math.nan
    if isinstance(value, bool):
        return float(value)
    return number_of(value)


def _refuse(faults: Sequence[Fault], places: Names) -> None:
    if faults:
        lines = [f"{places[row]}: {message}" for row, message in faults[:MOST_SHOWN]]
        more = [f"and {len(faults) - MOST_SHOWN} more"] if len(faults) > MOST_SHOWN else []
        raise DataError("\n".join([*lines, *more]))


def _problems(
    faults: Sequence[Fault], places: Names, sources: Iterable[str], mend: str
) -> DataError:
    many = f"{len(faults)} problem{'s' * (len(faults) != 1)} in {', '.join(sources)}"
    lines = [f"  {places[row]}: {message}" for row, message in sorted(faults)[:MOST_SHOWN]]
    more = [f"  and {len(faults) - MOST_SHOWN} more"] if len(faults) > MOST_SHOWN else []
    return DataError("\n".join([many, *lines, *more, mend]))


# --- times and series ----------------------------------------------------------------------


def _part(
    columns: Columns,
    values: np.ndarray[Any, np.dtype[np.float64]],
    settings: ForecastSettings,
    places: Names,
    ahead: bool,
) -> SeriesPart:
    ids = list(zip(*(map(_text, columns[name]) for name in settings.ids), strict=True))
    where, times = places.__getitem__, None
    if settings.time and len(values):
        texts = time_texts(columns, settings.time_columns)
        times = time_column(texts, settings.time, where, settings.dates, ids)
    contents = [row.tobytes() for row in values]
    axis = arranged(len(values), where, times, settings.time, ids, contents=contents)
    static, notes = _static(columns, [] if ahead else settings.static, ids, axis, where)
    spelling = ISO if times is None else times.spelling
    series = series_of_axis(axis, values, places, static, spelling)
    return SeriesPart.of(series, settings.time, (*axis.notes, *notes))


def _text(value: Any) -> str:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    return "" if value is None else str(value).strip()


def time_texts(columns: Columns, names: Sequence[str]) -> list[str]:
    """The time of each row; several columns (year, month, day, hour) are joined to one text."""
    if len(names) == 1:
        return [_text(value) for value in columns[names[0]]]
    order = [part for part in PARTS if part in {name.strip().lower() for name in names}]
    by_part = {name.strip().lower(): columns[name] for name in names}
    rows = zip(*(by_part[part] for part in order), strict=True)
    return [_joined(dict(zip(order, row, strict=True))) for row in rows]


def _joined(parts: Mapping[str, Any]) -> str:
    numbers = {part: number_of(_text(value)) for part, value in parts.items()}
    if any(number is None for number in numbers.values()):
        return ""
    whole = {part: int(number or 0) for part, number in numbers.items()}
    text = f"{whole['year']:04}-{whole.get('month', 1):02}-{whole.get('day', 1):02}"
    if "hour" in whole:
        text += f" {whole['hour']:02}:{whole.get('minute', 0):02}"
        text += f":{whole['second']:02}" if "second" in whole else ""
    return text


def _static(
    columns: Columns, names: Sequence[str], ids: Sequence[tuple[str, ...]], axis: Axis, where: Any
) -> tuple[list[tuple[Any, ...]], list[str]]:
    """The static values of each series: the first one that is not missing."""
    by_series: dict[tuple[str, ...], list[Any]] = {key: [None] * len(names) for key in axis.ids}
    for k, name in enumerate(names):
        for row, value in enumerate(columns[name]):
            text = _text(value)
            row_values = by_series.get(ids[row] if ids else ())
            if row_values is None or not text or is_missing(text):
                continue
            if row_values[k] is None:
                row_values[k] = text
            elif row_values[k] != text:
                raise DataError(
                    f"{where(row)}: column {name!r}: expected {row_values[k]!r}, as on the other "
                    "rows of "
                    f"{', '.join(ids[row]) if ids else 'the series'}, got {text!r}: a static "
                    "column is the same at all steps; name it with --covariates or --known"
                )
    return [tuple(by_series[key]) for key in axis.ids], []


__all__ = ["SeriesTable", "TimeColumn", "part_of_files", "part_of_table", "time_texts"]

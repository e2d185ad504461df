"""What `data check` says of a column of times: how far apart, in which order, what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ensue.data.series import number_of
from ensue.data.time.axis import arranged, is_missing, time_column
from ensue.data.time.dates import NUMBER, spellings_of
from ensue.errors import DataError

FEWEST = 8  # rows of a series


def dated_column(columns: Mapping[str, Sequence[Any]]) -> str:
    """The first column that holds dates, of rows enough for a series; "" where none does."""
    for name, values in columns.items():
        there = [str(own) for own in values if own is not None and not is_missing(str(own))]
        if len(there) >= FEWEST and not _no_dates(there, name):
            return name
    return ""


def series_lines(columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """Of a table that has one column of dates and numbers beside it: its times, gaps, empty cells;
    by which column rows of the same time belong to several series. [] where it has no dates; raises
    `DataError` where they are not the steps of a series."""
    name = dated_column(columns)
    if not name:
        return []
    texts = ["" if own is None else str(own) for own in columns[name]]
    others = {other: own for other, own in columns.items() if other != name}
    empty = _empty_lines(others)
    if by := _series_by(texts, others):
        return [f"{name}: {by}", *empty]
    try:
        column = time_column(texts, name, lambda row: f"row {row + 1}")
        axis = arranged(len(texts), lambda row: f"row {row + 1}", column, name)
    except DataError as problem:
        told = f"{name} holds dates, but {str(problem).splitlines()[0]}"
        raise DataError(told) from None
    if axis.spacing is None:
        return [*axis.notes, *empty]
    first, last = axis.times[0], axis.times[-1]
    lead = f"a series of {len(axis.rows):,} steps, a step each {axis.spacing}"
    return [f"{name}: {lead}, from {first} to {last}", *axis.notes, *empty]


def _series_by(times: Sequence[str], columns: Mapping[str, Sequence[Any]]) -> str:
    """Where a time comes twice, the column that tells such rows apart, as a line; "" for none."""
    if len({*times}) == len(times):
        return ""
    for name, keys in columns.items():
        pairs = {*zip(times, map(str, keys), strict=True)}
        longest = max(Counter(map(str, keys)).values())
        different = len({*map(str, keys)})
        if len(pairs) == len(times) and 1 < different <= len(times) // 2:
            return f"{different:,} series by {name}, of up to {longest:,} rows each"
    return ""


def _no_dates(texts: Sequence[str], name: str) -> bool:
    found = spellings_of(list(texts[:50]), name)
    return not found or found[0] is NUMBER


def _empty_lines(columns: Mapping[str, Sequence[Any]]) -> list[str]:
    counts = {name: _empty(values) for name, values in columns.items()}
    return [
        f"{count:,} empty cell{'s' * (count > 1)} in {name}"
        for name, count in counts.items()
        if count
    ]


def _empty(values: Sequence[Any]) -> int:
    """Cells that are empty in a column of numbers; 0 in any other."""
    there = [own for own in values if own is not None and not is_missing(str(own))]
    numbers = all(number_of(own) is not None for own in there[:50])
    return len(values) - len(there) if there and numbers else 0

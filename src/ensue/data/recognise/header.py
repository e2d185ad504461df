"""Whether the first line of a table is a row of it, so that no line names its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ensue.data.recognise.columns import VALUES, WRITTEN, Column, Kind, column_of
from ensue.data.rows import Row
from ensue.data.series import number_of

FEWEST = 5  # rows below it that tell
RUN = 3  # names that are whole numbers one after another count columns
PAIR = ("text", "label")


class Unnamed(NamedTuple):
    """names: for the columns; why: what was seen of the first line."""

    names: list[str]
    why: str


def unnamed_columns(names: Sequence[str], rows: Sequence[Row]) -> Unnamed | None:
    """Names for columns that have none: a name that repeats as a value of its own column, or a
    number with decimals over numbers, is no name. None where the names may be ones, and where a
    word stands over numbers: it can be nothing else.

    >>> from ensue.data.rows import Place
    >>> rows = [Row(Place("", k), {"Rossi": f"name{k}", "Italian": "Italian"}) for k in range(9)]
    >>> unnamed_columns(["Rossi", "Italian"], rows)
    Unnamed(names=['text', 'label'], why="'Italian' stands below itself, too")
    """
    if len(rows) < FEWEST or len(names) < 2 or _counted(names):
        return None
    columns = [column_of(rows, name) for name in names]
    below = {name: [str(row.fields.get(name, "")).strip() for row in rows] for name in names}
    if any(_names_numbers(name, values) for name, values in below.items()):
        return None
    for column in columns:
        values = below[column.name]
        if column.kind in (*VALUES, Kind.CONSTANT) and _repeats(column, values):
            return Unnamed(_names(columns), f"{column.name!r} stands below itself, too")
        if column.kind is Kind.NUMBER and "." in column.name and number_of(column.name) is not None:
            return Unnamed(_names(columns), f"{column.name!r} is a number among numbers")
    return None


def _counted(names: Sequence[str]) -> bool:
    """Whether names only count columns, or years: 1, 2, 3."""
    numbers = [number_of(name) for name in names]
    known = [number for number in numbers if number is not None and number == int(number)]
    return len(known) >= RUN and known == [known[0] + k for k in range(len(known))]


def _names_numbers(name: str, values: Sequence[str]) -> bool:
    """Whether a word stands over numbers."""
    given = [value for value in values if value]
    if number_of(name) is not None or not given:
        return False
    return all(number_of(value) is not None for value in given)


def _repeats(column: Column, values: Sequence[str]) -> bool:
    often = 2 * column.different <= column.count
    return often and column.name.strip() in values


def _names(columns: Sequence[Column]) -> list[str]:
    written = [column.kind in WRITTEN for column in columns]
    if len(columns) == len(PAIR) and sum(written) == 1:
        return [*(PAIR if written[0] else PAIR[::-1])]
    return [f"column_{k}" for k in range(1, len(columns) + 1)]

"""Rows of a table as cells, and cells as columns again.

A part stores the rows of a table, or the columns next to a text, like texts: as lists of tokens.
Each cell is a token: the name of its column, a tab, and its text. `Grid` converts them back to
columns.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.errors import DataError
from ensue.tasks.rows.part import Names, Part

BETWEEN = "\t"
Rows = Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]


class DisplayRow(dict[str, Any]):
    """A row by the names of its columns, as shown next to its answer."""

    @classmethod
    def of(cls, cells: Iterable[str]) -> DisplayRow:
        pairs = (cell.partition(BETWEEN) for cell in cells)
        return cls((name, text) for name, _, text in pairs)

    def as_text(self) -> str:
        """The row on one line: area=93 town=Delft."""
        return " ".join(_shown_cell(name, value) for name, value in self.items())


def cells_of(fields: Mapping[str, Any], place: str, without: Collection[str] = ()) -> list[str]:
    """The cells of a row, except those of some columns."""
    return [
        f"{name}{BETWEEN}{cell_text(value, name, place)}"
        for name, value in fields.items()
        if name not in without
    ]


def texts_of(cells: Iterable[str]) -> list[str]:
    """Each cell as column=text, on one line."""
    pairs = (cell.partition(BETWEEN) for cell in cells)
    return [_shown_cell(name, text) for name, _, text in pairs]


def _shown_cell(name: str, value: object) -> str:
    return " ".join(f"{name}={value}".split())


def cell_text(value: Any, name: str, place: str) -> str:
    """The text of a cell; "" for a missing value, None or NaN."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, date):
        return value.isoformat()
    raise DataError(
        f"{place}: column {name!r}: expected a text, a number or a date, got {type(value).__name__}"
    )


def rows_of(table: Rows) -> list[Mapping[str, Any]]:
    """A list of rows by column name, also from a mapping of columns."""
    if isinstance(table, Mapping):
        for name, column in table.items():
            if isinstance(column, str) or not hasattr(column, "__len__"):
                raise DataError(
                    f"column {name!r}: expected a list of values, one for each row, got "
                    f"{repr(column)[:60]}; one row alone is [row]"
                )
        lengths = {name: len(column) for name, column in table.items()}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} {count}" for name, count in lengths.items())
            raise DataError(f"expected columns of the same length, got {listed}")
        names = list(table)
        return [dict(zip(names, row, strict=True)) for row in zip(*table.values(), strict=True)]
    rows = list(table)
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise DataError(
                f"row:{number}: expected a row by column name, such as {{'age': 39}}, "
                f"got {repr(row)[:60]}"
            )
    return rows


def row_of_line(line: str, source: str = "standard input") -> Mapping[str, Any]:
    """A row of a table as a line of JSON."""
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise DataError(
            f'{source}: expected a row as JSON, such as {{"age": 39}}, '
            f"got {line[:60]!r}; or give a file with a header"
        )
    return row


@dataclass(frozen=True)
class Grid:
    """The cells of a table. cells (rows, columns): the index of each cell's text, −1 if a row lacks
    the column."""

    columns: tuple[str, ...]
    texts: Sequence[str]
    cells: NDArray[np.int64]
    places: Names

    @classmethod
    def of(cls, part: Part) -> Grid:
        """The grid of a part with the rows of a table."""
        if part.inputs.values.ndim != 1:
            raise DataError(f"{part.names[0]}: expected the rows of a table, got vectors")
        return cls.of_numbers(part.inputs, part.numbers.tokens, part.names)

    @classmethod
    def of_numbers(cls, values: Ragged, tokens: Iterable[str], names: Names) -> Grid:
        """The grid of encoded cells. values: indices of the cells of each row; tokens: the cell of
        each index."""
        pairs = [token.partition(BETWEEN) for token in tokens]
        places = {name: k for k, name in enumerate(dict.fromkeys(name for name, _, _ in pairs))}
        column = np.array([places[name] for name, _, _ in pairs], np.int64)
        cells = np.full((len(values), len(places)), -1, np.int64)
        rows = np.repeat(np.arange(len(values)), values.lengths)
        cells[rows, column[values.values]] = values.values
        return cls(tuple(places), [text for _, _, text in pairs], cells, names)

    def __len__(self) -> int:
        return len(self.cells)

    def column(self, name: str) -> Column:
        """A column; a missing cell counts as empty."""
        if name not in self.columns:
            raise DataError(
                f"{self.places[0]}: there is no column {name!r}, which the model was trained "
                f"with; got {', '.join(self.columns) or 'no column'}"
            )
        cells = self.cells[:, self.columns.index(name)]
        distinct, index = np.unique(cells, return_inverse=True)
        texts = [self.texts[k] if k >= 0 else "" for k in distinct]
        return Column(name, *_without_twins(texts, index), self.places)


def _without_twins(
    texts: list[str], index: NDArray[np.int64]
) -> tuple[list[str], NDArray[np.int64]]:
    """Merges empty and missing cells, which are the same text."""
    if texts.count("") < 2:
        return texts, index
    different = list(dict.fromkeys(texts))
    return different, np.array([different.index(text) for text in texts])[index]


@dataclass(frozen=True)
class Column:
    """The distinct texts of a column, and the index of each row's text."""

    name: str
    texts: list[str]
    index: NDArray[np.int64]
    places: Names

    def counts(self) -> dict[str, int]:
        by_text = np.bincount(self.index, minlength=len(self.texts))
        return dict(zip(self.texts, by_text.tolist(), strict=True))

    def gap(self, gone: NDArray[np.bool_]) -> DataError:
        """The error for empty cells; gone (texts,): marks the empty texts."""
        place, text = self.first(gone)
        count, rows = int(gone[self.index].sum()), len(self.index)
        many = f" (empty in {count:,} of {rows:,} rows)" if count > 1 else ""
        return DataError(
            f"{place}: column {self.name!r}: expected a value, got {text!r}{many}; fill it in, "
            "leave the row out, or learn with gaps: model.missing = indicator"
        )

    def first(self, wrong: NDArray[np.bool_]) -> tuple[str, str]:
        """Place and text of the first row whose text is wrong (texts,)."""
        row = int(np.flatnonzero(wrong[self.index])[0])
        return self.places[row], self.texts[self.index[row]]

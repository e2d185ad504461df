"""The learned columns of a table: numbers with their scales, and categorical columns with their
categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ensue.data.series import MISSING, decimal_comma, is_number, not_a_number, number_of
from ensue.errors import DataError, unknown
from ensue.tasks.columns.cells import Column, Grid
from ensue.tasks.columns.features import (
    NO_FEATURES,
    ColumnSettings,
    FeatureColumns,
    features_of,
)
from ensue.tasks.declarations import DISTINCT, Positive
from ensue.tasks.rows.fixed_width import Arrays

MOST_NAMED = 10  # problems of one message
MANY = 0.5  # maximum share of rows with a unique category in a categorical column
FEW = 0.05  # share of cells that are not numbers, in almost numeric columns
ALIKE = 0.999  # correlation with the target that is suspiciously high


@dataclass(frozen=True)
class NumberColumn:
    """A numeric column, (x − mean)/spread; indicator: an additional column is 1 for empty cells."""

    name: str
    mean: float
    spread: Positive
    indicator: bool

    @classmethod
    def learn(cls, column: Column, settings: ColumnSettings) -> NumberColumn:
        values = read_numbers(column, settings)[column.index]
        known = values[~np.isnan(values)]
        if not len(known):
            raise DataError(f"column {column.name!r}: expected numbers, got empty cells only")
        spread = float(known.std())
        return cls(
            column.name,
            float(known.mean()),
            spread if spread > 0 else 1.0,
            len(known) < len(values),
        )

    def encode(self, column: Column, settings: ColumnSettings) -> list[NDArray[np.float64]]:
        values = read_numbers(column, settings)[column.index]
        gone = np.isnan(values)
        scaled = np.where(gone, 0.0, (values - self.mean) / self.spread)
        return [scaled, gone.astype(np.float64)] if self.indicator else [scaled]


@dataclass(frozen=True)
class CategoryColumn:
    """A categorical column. categories: the categories by falling count; their indices begin at 1,
    and 0 is any other category."""

    name: str
    categories: Annotated[tuple[str, ...], DISTINCT]

    @classmethod
    def learn(cls, column: Column, settings: ColumnSettings) -> CategoryColumn:
        _no_gaps(column, settings)
        counts = column.counts()
        categories = [text for text, count in counts.items() if count >= settings.min_count]
        return cls(column.name, tuple(sorted(categories, key=lambda text: (-counts[text], text))))

    def encode(self, column: Column, settings: ColumnSettings) -> NDArray[np.int64]:
        _no_gaps(column, settings)
        known = {text: number for number, text in enumerate(self.categories, 1)}
        table = np.array([known.get(text, 0) for text in column.texts], np.int64)
        return table[column.index]


@dataclass(frozen=True)
class TableColumns:
    """The columns that a model reads."""

    numbers: tuple[NumberColumn, ...]
    categories: tuple[CategoryColumn, ...]
    features: FeatureColumns = NO_FEATURES

    @classmethod
    def learn(cls, grid: Grid, settings: ColumnSettings) -> TableColumns:
        features = features_of(settings.features)
        by_features = {name for feature in features for name in feature.columns}
        named = (*settings.numeric, *settings.categorical, *settings.leave_out, *by_features)
        for name in named:
            if name not in grid.columns:
                raise DataError(f"{grid.places[0]}: {unknown('column', name, grid.columns)}")
        numbers, categories, wrong = list[NumberColumn](), list[CategoryColumn](), list[str]()
        for name in grid.columns:
            if name in by_features or name in settings.leave_out:
                continue
            column = grid.column(name)
            try:
                if name in settings.numeric or (
                    name not in settings.categorical and _all_numbers(column)
                ):
                    numbers.append(NumberColumn.learn(column, settings))
                else:
                    categories.append(CategoryColumn.learn(column, settings))
            except DataError as error:
                wrong.append(str(error))
        _raise(wrong)
        if not numbers and not categories and not features:
            raise DataError(
                f"{grid.places[0]}: expected columns to learn from besides the target, got none"
            )
        return cls(tuple(numbers), tuple(categories), FeatureColumns.learn(grid, settings))

    @property
    def width(self) -> int:
        """The number of numeric inputs of a row; categories are separate."""
        return len(self.numbers) + sum(column.indicator for column in self.numbers)

    def encode(self, grid: Grid, settings: ColumnSettings) -> dict[str, NDArray[Any]]:
        """numbers (rows, width) float32, categories (rows, columns) as ids, and the inputs of
        features, if any."""
        numbers, ids, wrong = list[NDArray[np.float64]](), list[NDArray[np.int64]](), list[str]()
        for column in self.numbers:
            try:
                numbers += column.encode(grid.column(column.name), settings)
            except DataError as error:
                wrong.append(str(error))
        for name in self.categories:
            try:
                ids.append(name.encode(grid.column(name.name), settings))
            except DataError as error:
                wrong.append(str(error))
        _raise(wrong)
        made = {"features": self.features.encode(grid, settings)} if self.features.texts else {}
        return made | {
            "numbers": np.stack([np.zeros(len(grid)), *numbers], 1)[:, 1:].astype(np.float32),
            "categories": np.stack([np.zeros(len(grid), np.int64), *ids], 1)[:, 1:],
        }

    def remarks(self, arrays: Arrays, targets: NDArray[np.float64] | None) -> list[str]:
        """Remarks for the user. targets: the target (rows,), if it is a number."""
        rows, lines = len(arrays["numbers"]), []
        for k, column in enumerate(self.categories):
            rare = float((arrays["categories"][:, k] == 0).mean())
            if rare > MANY or len(column.categories) > MANY * rows:
                lines.append(
                    f"column {column.name!r} has a different value in almost every row: if it is "
                    "a name or a text, leave it out (model.leave_out)"
                )
        if targets is None or rows < 3 or targets.std() == 0:
            return lines
        at = 0
        for number in self.numbers:
            values = arrays["numbers"][:, at]
            at += 1 + number.indicator
            if values.std() > 0 and abs(np.corrcoef(values, targets)[0, 1]) > ALIKE:
                lines.append(
                    f"column {number.name!r} predicts the target almost exactly: is it known "
                    "before the target? If not, leave it out"
                )
        return lines

    def dense_width(self, most: int) -> int:
        """The width of a row of `dense`."""
        layer = self.features.layer()
        kinds = sum(min(len(column.categories), most) for column in self.categories)
        return self.width + (0 if layer is None else layer.width) + kinds

    def dense(self, arrays: Arrays, most: int) -> NDArray[np.float64]:
        """All columns as numbers: each column's `most` most frequent categories as zeros and ones,
        and the features, with initial values of a learned α."""
        parts = [np.asarray(arrays["numbers"], np.float64)]
        if (layer := self.features.layer()) is not None:
            with torch.no_grad():
                parts.append(layer(torch.from_numpy(arrays["features"]).double()).numpy())
        for k, column in enumerate(self.categories):
            kinds = np.arange(1, min(len(column.categories), most) + 1)
            parts.append((arrays["categories"][:, k, None] == kinds).astype(np.float64))
        return np.concatenate(parts, 1)


def read_numbers(column: Column, settings: ColumnSettings) -> NDArray[np.float64]:
    """The number of each text, NaN for empty cells; raises an error if they are not allowed."""
    values = np.array([_number(text) for text in column.texts])
    gone = empty_cells(column.texts)
    if (wrong := np.isnan(values) & ~gone).any():
        place, text = column.first(wrong)
        number = not_a_number(column.name, text)
        raise DataError(f"{place}: {number}; write a number, or leave the cell empty")
    if gone.any() and settings.missing == "error":
        raise column.gap(gone)
    return values


def _number(text: str) -> float:
    number = number_of(text)
    return np.nan if number is None else number


def empty_cells(texts: Sequence[str]) -> NDArray[np.bool_]:
    """Which of the texts are missing values."""
    return np.array([text.lower() in MISSING for text in texts])


def _all_numbers(column: Column) -> bool:
    """Whether all non-empty cells are numbers, and there are some."""
    present = [text for text in column.texts if text.lower() not in MISSING]
    return bool(present) and all(map(is_number, present))


def almost_numbers(grid: Grid, columns: TableColumns, settings: ColumnSettings) -> list[str]:
    """A remark on each column that is read as categories because of a few cells."""
    numbers = []
    for name in (column.name for column in columns.categories):
        column = grid.column(name)
        comma = decimal_comma(column.texts)
        if comma is not None and name not in settings.categorical:
            numbers.append(
                f"column {name!r} is read as categories, and its cells look like numbers with a "
                f"decimal comma ({comma!r}): write them with a point"
            )
            continue
        odd = np.array([number_of(t) is None and t.lower() not in MISSING for t in column.texts])
        if name in settings.categorical or odd.all() or odd[column.index].mean() > FEW:
            continue
        place, text = column.first(odd)
        numbers.append(
            f"column {name!r} is read as categories: most of its cells are numbers, but not all "
            f"({place}: {text!r}). Fix those cells, or set model.categorical if they are right"
        )
    return numbers


def _no_gaps(column: Column, settings: ColumnSettings) -> None:
    gone = np.array([not text for text in column.texts])
    if gone.any() and settings.missing == "error":
        raise column.gap(gone)


def _raise(wrong: Sequence[str]) -> None:
    if len(wrong) == 1:
        raise DataError(wrong[0])
    if wrong:
        more = [f"and {len(wrong) - MOST_NAMED} more"] * (len(wrong) > MOST_NAMED)
        lines = [
            f"{len(wrong)} columns of the table cannot be read",
            *wrong[:MOST_NAMED],
            *more,
        ]
        raise DataError("\n  ".join(lines))

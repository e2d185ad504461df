"""Columns next to a text: their learned encoding, for the network and for the linear model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import one_hot, relu

from ensue.data.ragged import Ragged
from ensue.errors import DataError
from ensue.tasks.baselines.sparse import SparseMatrix
from ensue.tasks.columns.cells import Grid
from ensue.tasks.columns.learned import MANY, TableColumns
from ensue.tasks.declarations import NEXT_TO, Derived
from ensue.tasks.rows.batch import Columns
from ensue.tasks.rows.part import Part
from ensue.tasks.settings import BesideSettings

NUMBERS, CATEGORIES = "column_numbers", "column_categories"  # of a batch
MOST_WIDE = 16  # default width of a category's vector


class Category(nn.Module):
    """A category of a column: indices 0 … count (rows,) → (rows, width), a learned vector or
    one-hot. Index 0, for categories that training does not have, is a zero vector until it
    occurs."""

    def __init__(self, count: int, width: int | None = None, *, one_hot: bool = False) -> None:
        super().__init__()
        self.count = count
        self.table: nn.Embedding | None = None
        if one_hot:
            self.width = count
            return
        self.width = width or min(MOST_WIDE, math.ceil(count / 2) + 1)
        self.table = nn.Embedding(count + 1, self.width)
        with torch.no_grad():
            self.table.weight[0] = 0

    def forward(self, ids: Tensor) -> Tensor:
        if self.table is None:
            return one_hot(ids, self.count + 1)[:, 1:].to(torch.get_default_dtype())
        vectors: Tensor = self.table(ids)
        return vectors


class ColumnVector(nn.Module):
    """The columns of a row next to its sequence, as one vector: c = [u, relu(A·u + a)], with u the
    concatenation of numbers (rows, n) and vectors of categories (rows, k).

    counts: number of categories of each column; units: rows of A, 0 for only u."""

    def __init__(self, numbers: int, counts: Sequence[int], units: int) -> None:
        super().__init__()
        columns = [Category(count) for count in counts]
        inputs = numbers + sum(column.width for column in columns)
        self.columns = nn.ModuleList(columns)
        self.hidden = nn.Linear(inputs, units) if units else None
        self.width = inputs + units

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The vector of the columns of each row (rows, width)."""
        numbers, ids = inputs[NUMBERS], inputs[CATEGORIES]
        vectors = [column(ids[:, k]) for k, column in enumerate(self.columns)]
        u = torch.cat([numbers, *vectors], -1)
        return u if self.hidden is None else torch.cat([u, relu(self.hidden(u))], -1)


Numbers = NDArray[np.float32]
Ids = NDArray[np.int64]
MOST_CATEGORIES = 50  # categories of a column that the linear model sees


@dataclass(frozen=True)
class _Reading:
    """Reading options: empty cells are marked, and a category that occurs once is unknown."""

    numeric: Sequence[str]
    categorical: Sequence[str]
    leave_out: Sequence[str] = ()
    missing: str = "indicator"
    min_count: int = 2
    features: Sequence[str] = ()


@dataclass(frozen=True)
class ColumnsBeside:
    """The columns that a model reads next to a text, with their scales and categories."""

    columns: Annotated[TableColumns, NEXT_TO]
    settings: Annotated[BesideSettings, Derived("settings")]

    @classmethod
    def learn(cls, train: Part, settings: BesideSettings) -> ColumnsBeside | None:
        """Learns the columns; None if the part has none."""
        if train.cells is None:
            return None
        columns = cls(TableColumns.learn(_grid(train), _reading(settings)), settings)
        columns._refuse_names(train)
        return columns

    def _refuse_names(self, train: Part) -> None:
        """Raises an error for categories that rarely repeat: names or texts, useless for other
        rows."""
        _, ids = self.encode(train)
        for k, column in enumerate(self.columns.categories):
            if not column.categories or (ids[:, k] == 0).mean() > MANY:
                raise DataError(
                    f"columns: {column.name!r} has a different value in almost every row: a text "
                    "or an identifier is not a category; take it out of the columns"
                )

    @property
    def names(self) -> list[str]:
        numbers = [column.name for column in self.columns.numbers]
        return numbers + [column.name for column in self.columns.categories]

    def joined(self, columns: Columns, part: Part) -> Columns:
        """The encoded columns of a part combined with its other columns, for the networks."""
        numbers, ids = self.encode(part)
        return replace(columns, column_numbers=numbers, column_categories=ids)

    def encode(self, part: Part) -> tuple[Numbers, Ids]:
        """Numbers (rows, n) and categories (rows, k); raises an error if a part lacks the
        columns."""
        if part.cells is None and len(part):
            listed = ", ".join(self.names)
            example = ", ".join(f'"{name}": …' for name in self.names)
            raise DataError(
                f"{part.names[0]}: expected {listed} next to the text, as in training, got the "
                f"text alone; give rows by column name, {{…, {example}}}"
            )
        if not len(part):
            kinds = len(self.columns.categories)
            return np.zeros((0, self.columns.width), np.float32), np.zeros((0, kinds), np.int64)
        arrays = self.columns.encode(_grid(part), _reading(self.settings))
        return arrays["numbers"], arrays["categories"]

    def network(self) -> ColumnVector:
        """The network of the columns, with fresh weights."""
        counts = [len(column.categories) for column in self.columns.categories]
        return ColumnVector(self.columns.width, counts, self.settings.column_units)

    def matrix(self, *parts: Part) -> SparseMatrix:
        """The rows of the parts for the linear model: scaled numbers, and the most frequent
        categories as zeros and ones."""
        dense = np.concatenate([self._dense(part) for part in parts])
        rows, columns = np.nonzero(dense)
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(dense)))])
        entries = Ragged(columns.astype(np.int32), starts.astype(np.int64))
        return SparseMatrix(entries, dense[rows, columns].astype(np.float32), dense.shape[1])

    @property
    def dense_width(self) -> int:
        """Number of columns in the rows that the linear model sees."""
        return self.columns.dense_width(MOST_CATEGORIES)

    def _dense(self, part: Part) -> NDArray[np.float64]:
        numbers, ids = self.encode(part)
        return self.columns.dense({"numbers": numbers, "categories": ids}, MOST_CATEGORIES)

    def describe(self) -> str:
        return f"{', '.join(self.names)} next to the text"


def _grid(part: Part) -> Grid:
    assert part.cells is not None
    return Grid.of_numbers(part.cells, part.numbers.cells, part.names)


def _reading(settings: BesideSettings) -> _Reading:
    return _Reading(settings.numeric, settings.categorical)

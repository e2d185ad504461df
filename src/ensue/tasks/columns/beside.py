"""Columns beside a text: what is learned of them, for the network and for the linear model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.errors import DataError
from ensue.tasks.baselines.sparse import SparseMatrix
from ensue.tasks.columns.cells import Grid
from ensue.tasks.columns.learned import MANY, TableColumns
from ensue.tasks.columns.network import ColumnVector
from ensue.tasks.rows.batch import Columns
from ensue.tasks.rows.part import Part
from ensue.tasks.settings import BesideSettings

Numbers = NDArray[np.float32]
Ids = NDArray[np.int64]
MOST_CATEGORIES = 50  # of a column, that the linear model sees


@dataclass(frozen=True)
class _Reading:
    """Empty cells are marked, and a category of one row alone is unknown."""

    numeric: Sequence[str]
    categorical: Sequence[str]
    leave_out: Sequence[str] = ()
    missing: str = "indicator"
    min_count: int = 2
    features: Sequence[str] = ()


@dataclass(frozen=True)
class ColumnsBeside:
    """The columns that a model reads beside a text, with their scales and categories."""

    columns: TableColumns
    settings: BesideSettings

    @classmethod
    def learn(cls, train: Part, settings: BesideSettings) -> ColumnsBeside | None:
        """None where the part has no such columns."""
        if train.cells is None:
            return None
        found = cls(TableColumns.learn(_grid(train), _reading(settings)), settings)
        found._refuse_names(train)
        return found

    def _refuse_names(self, train: Part) -> None:
        """Categories that hardly two rows share are names or texts, and tell nothing of others."""
        _, ids = self.encode(train)
        for k, column in enumerate(self.columns.categories):
            if not column.categories or (ids[:, k] == 0).mean() > MANY:
                raise DataError(
                    f"columns: {column.name!r} has hardly two rows alike: a text or an identifier "
                    "is no category; take it out of the columns"
                )

    @property
    def names(self) -> list[str]:
        numbers = [column.name for column in self.columns.numbers]
        return numbers + [column.name for column in self.columns.categories]

    def joined(self, columns: Columns, part: Part) -> Columns:
        """A part as the networks see it, with the numbers and categories beside."""
        numbers, ids = self.encode(part)
        return replace(columns, column_numbers=numbers, column_categories=ids)

    def encode(self, part: Part) -> tuple[Numbers, Ids]:
        """Numbers (rows, n) and categories (rows, k); an error where a part comes without the
        columns."""
        if part.cells is None and len(part):
            listed = ", ".join(self.names)
            shown = ", ".join(f'"{name}": …' for name in self.names)
            raise DataError(
                f"{part.names[0]}: expected {listed} beside the text, as in training, got the text "
                f"alone; give rows by column name, {{…, {shown}}}"
            )
        if not len(part):
            kinds = len(self.columns.categories)
            return np.zeros((0, self.columns.width), np.float32), np.zeros((0, kinds), np.int64)
        found = self.columns.encode(_grid(part), _reading(self.settings))
        return found["numbers"], found["categories"]

    def network(self) -> ColumnVector:
        """With fresh weights."""
        counts = [len(column.categories) for column in self.columns.categories]
        return ColumnVector(self.columns.width, counts, self.settings.column_units)

    def matrix(self, *parts: Part) -> SparseMatrix:
        """Rows of the parts, behind one another, as the linear model sees them: scaled numbers, and
        the most frequent categories as zeros and ones."""
        dense = np.concatenate([self._dense(part) for part in parts])
        rows, columns = np.nonzero(dense)
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(dense)))])
        entries = Ragged(columns.astype(np.int32), starts.astype(np.int64))
        return SparseMatrix(entries, dense[rows, columns].astype(np.float32), dense.shape[1])

    @property
    def dense_width(self) -> int:
        """Of the rows that the linear model sees."""
        return self.columns.dense_width(MOST_CATEGORIES)

    def _dense(self, part: Part) -> NDArray[np.float64]:
        numbers, ids = self.encode(part)
        return self.columns.dense({"numbers": numbers, "categories": ids}, MOST_CATEGORIES)

    def to_dict(self) -> dict[str, Any]:
        return self.columns.to_dict()

    @classmethod
    def from_dict(
        cls, known: Mapping[str, Any] | None, settings: BesideSettings
    ) -> ColumnsBeside | None:
        """None of nothing."""
        return None if known is None else cls(TableColumns.from_dict(known, "beside"), settings)

    def describe(self) -> str:
        return f"{', '.join(self.names)} beside the text"


def _grid(part: Part) -> Grid:
    assert part.cells is not None
    return Grid.of_numbers(part.cells, part.numbers.cells, part.names)


def _reading(settings: BesideSettings) -> _Reading:
    return _Reading(settings.numeric, settings.categorical)

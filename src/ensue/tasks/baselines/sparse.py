"""Sparse matrices: rows of a few weighted columns each, and their products with dense ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag

from ensue.data.ragged import Ragged

PIECE = 128  # number of rows converted to dense at a time


class _Bags(NamedTuple):
    """The lines of a matrix: indices of their entries in the other factor, the start of each line,
    and the values of the entries."""

    places: Tensor
    starts: Tensor
    values: Tensor

    def times(self, dense: Tensor) -> Tensor:
        return embedding_bag(
            self.places, dense, self.starts, mode="sum", per_sample_weights=self.values
        )


@dataclass(frozen=True)
class SparseMatrix:
    """A matrix (rows, width). columns: the non-zero columns of each row, rising; values: float32,
    one for each column."""

    columns: Ragged
    values: NDArray[np.float32]
    width: int

    @classmethod
    def of_dense(cls, values: Tensor) -> SparseMatrix:
        """A sparse matrix from a dense one (rows, width), with all entries."""
        rows, width = values.shape
        columns = np.tile(np.arange(width, dtype=np.int32), rows)
        starts = width * np.arange(rows + 1)
        return cls(Ragged(columns, starts), values.float().reshape(-1).numpy(), width)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The row of each entry."""
        return np.repeat(np.arange(len(self)), self.columns.lengths)

    @cached_property
    def _by_row(self) -> _Bags:
        places = torch.from_numpy(np.ascontiguousarray(self.columns.values, np.int32))
        starts = torch.from_numpy(self.columns.starts[:-1].astype(np.int32))
        return _Bags(places, starts, torch.from_numpy(self.values))

    @cached_property
    def _by_column(self) -> _Bags:
        order = np.argsort(self.columns.values, kind="stable")
        counts = np.bincount(self.columns.values, minlength=self.width)
        starts = (np.cumsum(counts) - counts).astype(np.int32)
        rows = self.rows.astype(np.int32)[order]
        return _Bags(*map(torch.from_numpy, (rows, starts, self.values[order])))

    def times(self, dense: Tensor) -> Tensor:
        """X·dense: (width, k) → (rows, k)."""
        return self._by_row.times(dense)

    def transposed_times(self, dense: Tensor) -> Tensor:
        """Xᵀ·dense: (rows, k) → (width, k)."""
        return self._by_column.times(dense)

    @cached_property
    def row_products(self) -> Tensor:
        """X·Xᵀ (rows, rows), float64."""
        products = torch.empty(len(self), len(self), dtype=torch.float64)
        for start in range(0, len(self), PIECE):
            piece = self.take(np.arange(start, min(start + PIECE, len(self))))
            dense = torch.zeros(self.width, len(piece))
            places = torch.from_numpy(piece.columns.values.astype(np.int64))
            dense[places, torch.from_numpy(piece.rows)] = torch.from_numpy(piece.values)
            products[:, start : start + PIECE] = self.times(dense).double()
        return products

    def take(self, rows: NDArray[np.int64]) -> SparseMatrix:
        """The rows with these indices."""
        values = Ragged(self.values, self.columns.starts).take(rows).values
        return SparseMatrix(self.columns.take(rows), values, self.width)


def side_by_side(blocks: list[SparseMatrix]) -> SparseMatrix:
    """Concatenates matrices with the same rows along their columns."""
    if len(blocks) == 1:
        return blocks[0]
    rows = np.concatenate([block.rows for block in blocks])
    widths = np.cumsum([0, *(block.width for block in blocks)])
    shifted = [b.columns.values + w for b, w in zip(blocks, widths[:-1], strict=True)]
    order = np.argsort(rows, kind="stable")
    starts = np.sum([block.columns.starts for block in blocks], 0)
    columns = Ragged(np.concatenate(shifted)[order].astype(np.int32), starts)
    values = np.concatenate([block.values for block in blocks])[order]
    return SparseMatrix(columns, values, int(widths[-1]))

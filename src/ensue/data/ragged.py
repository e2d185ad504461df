"""Rows of different length in one array: the form of encoded data in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Rows = Sequence[int] | NDArray[np.int64]


@dataclass(frozen=True)
class Ragged:
    """values (total, …): all rows, one after another; row k is values[starts[k]:starts[k + 1]]."""

    values: NDArray[Any]
    starts: NDArray[np.int64]  # (rows + 1)

    @classmethod
    def of(cls, rows: Sequence[Any], dtype: DTypeLike, features: tuple[int, ...] = ()) -> Ragged:
        """An array of rows, each an array or list (length, *features)."""
        arrays = [np.asarray(row, dtype).reshape(-1, *features) for row in rows]
        starts = np.zeros(len(arrays) + 1, np.int64)
        np.cumsum([len(a) for a in arrays], out=starts[1:])
        empty = np.empty((0, *features), dtype)
        return cls(np.concatenate([empty, *arrays]), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.starts)

    def lengths_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The lengths of these rows, without computing the others."""
        return self.starts[rows + 1] - self.starts[rows]

    def row(self, k: int) -> NDArray[Any]:
        return self.values[self.starts[k] : self.starts[k + 1]]

    def _positions(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The positions of the rows' values, one row after another, and the rows' lengths."""
        begin = self.starts[rows]
        lengths = self.starts[rows + 1] - begin
        ends = np.cumsum(lengths)
        shift = np.repeat(begin - (ends - lengths), lengths)
        return np.arange(len(shift)) + shift, lengths

    def take(self, rows: Rows) -> Ragged:
        """The rows with these indices, in this order."""
        positions, lengths = self._positions(np.asarray(rows, np.int64))
        return Ragged(self.values[positions], np.concatenate([[0], np.cumsum(lengths)]))

    def padded(self, rows: Rows, fill: float = 0) -> NDArray[Any]:
        """These rows as (time, batch, …), padded with `fill`."""
        rows = np.asarray(rows, np.int64)
        positions, lengths = self._positions(rows)
        time = int(lengths.max(initial=0))
        out = np.full((len(rows), time, *self.values.shape[1:]), fill, self.values.dtype)
        out[np.arange(time) < lengths[:, None]] = self.values[positions]
        return np.ascontiguousarray(out.swapaxes(0, 1))

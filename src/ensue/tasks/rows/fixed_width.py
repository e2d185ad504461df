"""Rows of fixed width for the training loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.batches import batches
from ensue.data.fingerprint import fingerprint
from ensue.tasks.reader import RowNames

FEW = 4  # rows of a trial evaluation
Arrays = Mapping[str, NDArray[Any]]


class RowSource:
    """A source of arrays whose first axis is rows; a batch has a tensor of each, by name.

    batch_rows: per update. None takes all rows (gradient descent), 1 is online learning, other
    numbers make minibatches; the objective is always the mean cost over rows."""

    def __init__(
        self,
        arrays: Arrays,
        *,
        seed: int,
        batch_rows: int | None = None,
        names: RowNames | None = None,
    ) -> None:
        self.arrays, self.seed, self.names = arrays, seed, names
        self.rows = len(next(iter(arrays.values())))
        self.batch_rows = batch_rows or max(self.rows, 1)
        self.fingerprint = fingerprint(arrays)

    def batches(self, epoch: int) -> Sequence[Any]:
        ones = np.ones(self.rows, np.int64)
        return batches(ones, self.batch_rows, self.seed, epoch)

    def batch(self, rows: Sequence[int]) -> dict[str, Tensor]:
        return rows_of(self.arrays, np.asarray(rows, np.int64))

    def targets(self, rows: Sequence[int]) -> float:
        return float(len(rows))

    def tokens(self, rows: Sequence[int]) -> float:
        return float(len(rows))

    def name(self, row: int) -> str:
        return f"row {row}" if self.names is None else self.names[row]


def rows_of(arrays: Arrays, rows: NDArray[np.int64] | slice) -> dict[str, Tensor]:
    """Rows of each array as tensors."""
    return {
        name: torch.from_numpy(np.ascontiguousarray(values[rows]))
        for name, values in arrays.items()
    }

"""Encoded rows as the training loop takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from ensue.data.batches import batches, evaluation_batches
from ensue.data.fingerprint import fingerprint
from ensue.data.ragged import Ragged
from ensue.tasks.rows.batch import Columns, SequenceBatch, collate
from ensue.tasks.rows.part import Names
from ensue.tasks.settings import NetworkSettings
from ensue.training.processes import device_of_weights, moved

FEW = 4  # rows of a trial evaluation


class SequenceSource:
    """Columns in batches of a token budget; their order follows from the seed and the epoch."""

    def __init__(
        self, columns: Columns, names: Names, *, seed: int, budget: int, most_rows: int | None
    ) -> None:
        self.columns, self.names, self.seed = columns, names, seed
        self.budget, self.most_rows = budget, most_rows
        self.fingerprint = fingerprint(columns.arrays())

    @classmethod
    def of(
        cls, columns: Columns, names: Names, settings: NetworkSettings, seed: int
    ) -> SequenceSource:
        budget, most = settings.batch_tokens, settings.batch_rows
        return cls(columns, names, seed=seed, budget=budget, most_rows=most)

    def batches(self, epoch: int) -> Sequence[Any]:
        """Row numbers of each batch, as arrays."""
        lengths = self.columns.lengths
        return batches(lengths, self.budget, self.seed, epoch, most_rows=self.most_rows)

    def batch(self, rows: Sequence[int]) -> SequenceBatch:
        return collate(self.columns, rows)

    def targets(self, rows: Sequence[int]) -> float:
        """Steps where each has a label, rows elsewhere."""
        if isinstance(self.columns.targets, Ragged):
            return float(self.columns.lengths[np.asarray(rows)].sum())
        return float(len(rows))

    def tokens(self, rows: Sequence[int]) -> float:
        return float(self.columns.lengths_of(np.asarray(rows)).sum())

    def name(self, row: int) -> str:
        return self.names[row]


def in_batches(
    columns: Columns, network: nn.Module, budget: int, most_rows: int | None = None
) -> Iterator[tuple[NDArray[np.int64], SequenceBatch]]:
    """Row numbers and batch, rows of like length together, where the network's weights are."""
    device = device_of_weights(network)
    for rows in evaluation_batches(columns.lengths, budget, most_rows=most_rows):
        yield rows, moved(collate(columns, rows), device)


class ColumnScores:
    """A validation: a score function over all of the columns, or over a few long rows alone."""

    def __init__(self, score: Callable[[Columns], Mapping[str, float]], columns: Columns) -> None:
        self._score, self._columns = score, columns
        self._few = columns.taken(np.argsort(columns.lengths)[-FEW:])
        self.fingerprint = fingerprint(columns.arrays())

    def __call__(self) -> Mapping[str, float]:
        return self._score(self._columns)

    def sample(self) -> Mapping[str, float]:
        return self._score(self._few)

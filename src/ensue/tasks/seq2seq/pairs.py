"""Encoded pairs as networks and the training loop take them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.data.batches import batches, evaluation_batches
from ensue.data.fingerprint import fingerprint
from ensue.data.ragged import Ragged, Rows
from ensue.data.vocabulary import END_NUMBER, START_NUMBER
from ensue.tasks.rows.batch import numbers
from ensue.tasks.rows.part import Names
from ensue.tasks.seq2seq.network import PairBatch, PairNetwork
from ensue.training.processes import device_of_weights, moved

if TYPE_CHECKING:
    from ensue.tasks.model import Model


class Taught(nn.Module):
    """A pair network as the training loop sees it: no state goes from batch to batch."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, batch: PairBatch, carried: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The cost of the batch, summed over the words that are wanted."""
        return self.network(batch), {}

    @property
    def pairs(self) -> PairNetwork:
        return cast(PairNetwork, self.network)


def pair_networks(model: Model[Any, Any, Any]) -> list[PairNetwork]:
    return [cast(Taught, network).pairs for network in model.networks]


@dataclass(frozen=True)
class PairColumns:
    """Both sides by their vocabularies' numbers, row by row; a source may be vectors."""

    source: Ragged
    target: Ragged

    def __len__(self) -> int:
        return len(self.source)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Steps of the longer side, the end of the target counted."""
        return np.maximum(self.source.lengths, self.target.lengths + 1)

    @property
    def wanted(self) -> NDArray[np.int64]:
        """Words to be said: those of the target and the end."""
        return self.target.lengths + 1

    def taken(self, rows: Rows) -> PairColumns:
        return PairColumns(self.source.take(rows), self.target.take(rows))

    def arrays(self) -> dict[str, Ragged]:
        return {"source": self.source, "target": self.target}

    def batch(self, rows: Rows) -> PairBatch:
        rows = np.asarray(rows, np.int64)
        target = self.target.padded(rows)  # (time, batch)
        lengths = self.target.lengths[rows]
        before = np.concatenate([np.full((1, len(rows)), START_NUMBER), target])
        wanted = np.concatenate([target, np.zeros((1, len(rows)), target.dtype)])
        wanted[lengths, np.arange(len(rows))] = END_NUMBER
        return PairBatch(
            source_tensor(self.source.padded(rows)),
            torch.from_numpy(self.source.lengths[rows]),
            _numbers(before),
            _numbers(wanted),
            torch.from_numpy(lengths + 1),
        )


def source_tensor(values: NDArray[Any]) -> Tensor:
    """Words by their numbers, or vectors as they are."""
    return numbers(values) if values.dtype.kind == "f" else _numbers(values)


def _numbers(values: NDArray[Any]) -> Tensor:
    return torch.from_numpy(values.astype(np.int64))


class PairSource:
    """Pairs in batches of a token budget, rows of like length together; their order follows from
    the seed and the epoch."""

    def __init__(
        self, columns: PairColumns, names: Names, *, seed: int, budget: int, most_rows: int | None
    ) -> None:
        self.columns, self.names, self.seed = columns, names, seed
        self.budget, self.most_rows = budget, most_rows
        self.fingerprint = fingerprint(columns.arrays())
        self._lengths, self._wanted = columns.lengths, columns.wanted
        self._both = columns.source.lengths + columns.wanted

    def batches(self, epoch: int) -> Sequence[Any]:
        return batches(self._lengths, self.budget, self.seed, epoch, most_rows=self.most_rows)

    def batch(self, rows: Sequence[int]) -> PairBatch:
        return self.columns.batch(rows)

    def targets(self, rows: Sequence[int]) -> float:
        return float(self._wanted[np.asarray(rows)].sum())

    def tokens(self, rows: Sequence[int]) -> float:
        """Of both sides."""
        return float(self._both[np.asarray(rows)].sum())

    def name(self, row: int) -> str:
        return self.names[row]


def in_batches(
    columns: PairColumns, network: PairNetwork, budget: int, most_rows: int
) -> Iterator[tuple[NDArray[np.int64], PairBatch]]:
    """Row numbers and batch, shortest first, where the network's weights are."""
    device = device_of_weights(network)
    for rows in evaluation_batches(columns.lengths, budget, most_rows=most_rows):
        yield rows, moved(columns.batch(rows), device)

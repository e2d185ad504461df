"""Pairs of sequences as networks and the training loop take them, and what is asked of a network
that turns one into the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.data.ragged import Ragged, Rows
from ensue.data.vocabulary import END_NUMBER, START_NUMBER
from ensue.decoding import State
from ensue.tasks.any_model import AnyModel
from ensue.tasks.rows.batch import numbers


@dataclass(frozen=True)
class PairBatch:
    """Rows of a batch on axis 1 of what has steps; 0 is padding.

    source (time, batch), or vectors (time, batch, n), with lengths (batch,); for a target w_1 … w_n
    before (time, batch): <s> w_1 … w_n, what stands before each word that is to be said;
    targets (time, batch): w_1 … w_n </s>; target_lengths (batch,): n + 1."""

    source: Tensor
    lengths: Tensor
    before: Tensor
    targets: Tensor
    target_lengths: Tensor

    def __len__(self) -> int:
        return len(self.lengths)


class PairNetwork(Protocol):
    """What training, search and evaluation see of any of them."""

    def __call__(self, batch: PairBatch) -> Tensor:
        """The cost summed over all real words that are wanted, with teacher forcing."""
        ...

    def costs(self, batch: PairBatch) -> Tensor:
        """−log p (time, batch) of each wanted word, 0 on padding; no smoothing, no dropout."""
        ...

    def begin(self, source: Tensor, lengths: Tensor) -> State:
        """The source read: what the first step needs. Rows are on axis 0 of every tensor of the
        state, so that `decoding.reordered` works; what all hypotheses share is `Shared`."""
        ...

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """log p (rows, words) of what follows tokens (rows,), and the new state."""
        ...

    def alignment(self, state: State) -> Tensor | None:
        """α (rows, source time): where the step that gave this state looked; None without
        attention. Zero on padding, each row sums to one."""
        ...


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


def pair_networks(model: AnyModel) -> list[PairNetwork]:
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
    def targets(self) -> NDArray[np.int64]:
        """Words to be said: those of the target and the end."""
        return self.target.lengths + 1

    def take(self, rows: Rows) -> PairColumns:
        return PairColumns(self.source.take(rows), self.target.take(rows))

    def arrays(self) -> dict[str, Ragged]:
        return {"source": self.source, "target": self.target}

    def target_count(self, rows: NDArray[np.int64]) -> float:
        return float(self.target.lengths_of(rows).sum() + len(rows))

    def token_count(self, rows: NDArray[np.int64]) -> float:
        """Of both sides."""
        return float(self.source.lengths_of(rows).sum()) + self.target_count(rows)

    def batch(self, rows: Rows) -> PairBatch:
        rows = np.asarray(rows, np.int64)
        target = self.target.padded(rows)  # (time, batch)
        lengths = self.target.lengths[rows]
        before = np.concatenate([np.full((1, len(rows)), START_NUMBER), target])
        targets = np.concatenate([target, np.zeros((1, len(rows)), target.dtype)])
        targets[lengths, np.arange(len(rows))] = END_NUMBER
        return PairBatch(
            source_tensor(self.source.padded(rows)),
            torch.from_numpy(self.source.lengths[rows]),
            _numbers(before),
            _numbers(targets),
            torch.from_numpy(lengths + 1),
        )


def source_tensor(values: NDArray[Any]) -> Tensor:
    """Words by their numbers, or vectors as they are."""
    return numbers(values) if values.dtype.kind == "f" else _numbers(values)


def _numbers(values: NDArray[Any]) -> Tensor:
    return torch.from_numpy(values.astype(np.int64))

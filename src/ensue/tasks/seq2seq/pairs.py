"""Pairs of sequences for networks and the training loop, and the interface of networks from one to
the other."""

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
    """A batch. Rows are on axis 1 of tensors with steps; 0 is padding.

    source (time, batch), or vectors (time, batch, n), with lengths (batch,); for a target w_1 … w_n
    before (time, batch): <s> w_1 … w_n, the previous word of each word to generate; targets (time,
    batch): w_1 … w_n </s>; target_lengths (batch,): n + 1."""

    source: Tensor
    lengths: Tensor
    before: Tensor
    targets: Tensor
    target_lengths: Tensor

    def __len__(self) -> int:
        return len(self.lengths)


class PairNetwork(Protocol):
    """The interface for training, search and evaluation."""

    def __call__(self, batch: PairBatch) -> Tensor:
        """The cost summed over all target words without padding, with teacher forcing."""
        ...

    def costs(self, batch: PairBatch) -> Tensor:
        """−log p (time, batch) of each target word, 0 on padding; no smoothing, no dropout."""
        ...

    def begin(self, source: Tensor, lengths: Tensor) -> State:
        """Reads the source; returns the state for the first step. Rows are on axis 0 of every
        tensor of the state, for `decoding.reordered`; tensors that all hypotheses share are
        `Shared`."""
        ...

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """log p (rows, words) of what follows tokens (rows,), and the new state."""
        ...

    def alignment(self, state: State) -> Tensor | None:
        """α (rows, source time): the attention of the step that produced this state; None without
        attention. Zero on padding; each row sums to one."""
        ...


class Taught(nn.Module):
    """A pair network for the training loop; no state is carried between batches."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, batch: PairBatch, carried: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The cost of the batch, summed over the target words."""
        return self.network(batch), {}

    @property
    def pairs(self) -> PairNetwork:
        return cast(PairNetwork, self.network)


def pair_networks(model: AnyModel) -> list[PairNetwork]:
    return [cast(Taught, network).pairs for network in model.networks]


@dataclass(frozen=True)
class PairColumns:
    """Both sides as indices of their vocabularies, row by row; a source may be vectors."""

    source: Ragged
    target: Ragged

    def __len__(self) -> int:
        return len(self.source)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Steps of the longer side, including the end of the target."""
        return np.maximum(self.source.lengths, self.target.lengths + 1)

    @property
    def targets(self) -> NDArray[np.int64]:
        """Number of target words per row, including the end."""
        return self.target.lengths + 1

    def take(self, rows: Rows) -> PairColumns:
        return PairColumns(self.source.take(rows), self.target.take(rows))

    def arrays(self) -> dict[str, Ragged]:
        return {"source": self.source, "target": self.target}

    def target_count(self, rows: NDArray[np.int64]) -> float:
        return float(self.target.lengths_of(rows).sum() + len(rows))

    def token_count(self, rows: NDArray[np.int64]) -> float:
        """The number of tokens of both sides."""
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
    """A tensor of word indices, or of vectors."""
    return numbers(values) if values.dtype.kind == "f" else _numbers(values)


def _numbers(values: NDArray[Any]) -> Tensor:
    return torch.from_numpy(values.astype(np.int64))

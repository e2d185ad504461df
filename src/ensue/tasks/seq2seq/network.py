"""Pairs of sequences as networks take them, and what is asked of a network that turns one into
the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from ensue.decoding import State


@dataclass(frozen=True)
class PairBatch:
    """Rows of a batch on axis 1 of what has steps; 0 is padding.

    source (time, batch), or vectors (time, batch, n), with lengths (batch,); for a target w_1 … w_n
    before (time, batch): <s> w_1 … w_n, what stands before each word that is to be said;
    wanted (time, batch): w_1 … w_n </s>; wanted_lengths (batch,): n + 1."""

    source: Tensor
    lengths: Tensor
    before: Tensor
    wanted: Tensor
    wanted_lengths: Tensor

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

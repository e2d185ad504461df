"""What a model of pairs is watched by while it learns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import torch

from ensue.data.fingerprint import fingerprint
from ensue.data.ragged import Ragged
from ensue.tasks.seq2seq.network import PairNetwork
from ensue.tasks.seq2seq.source import PairColumns, in_batches

TOKENS, ROWS = 8_000, 256  # of a batch
FEW = 4  # rows of a trial evaluation


class References(NamedTuple):
    """Sources that are answered, by their numbers, and what they should become."""

    sources: Ragged
    texts: list[str]

    def first(self, count: int) -> References:
        return References(self.sources.take(np.arange(len(self.texts))[:count]), self.texts[:count])


class PairValidation:
    """A score function over all columns and references, or over a few long rows alone."""

    def __init__(
        self,
        score: Callable[[PairColumns, References], Mapping[str, float]],
        columns: PairColumns,
        references: References,
    ) -> None:
        self._score, self._columns, self._references = score, columns, references
        self.fingerprint = fingerprint(columns.arrays())

    def __call__(self) -> Mapping[str, float]:
        return self._score(self._columns, self._references)

    def sample(self) -> Mapping[str, float]:
        longest = np.argsort(self._columns.lengths)[-FEW:]
        return self._score(self._columns.taken(longest), self._references.first(FEW))


@torch.no_grad()
def mean_cost(network: PairNetwork, columns: PairColumns) -> float:
    """The mean −log p of a wanted word, the end counted."""
    batches = in_batches(columns, network, TOKENS, ROWS)
    total = sum(float(network.costs(batch).double().sum()) for _, batch in batches)
    return total / float(columns.wanted.sum())

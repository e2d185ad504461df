"""Trees as arrays, and batches of them: all trees of a batch are one forest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.data.batches import batches, evaluation_batches
from ensue.data.fingerprint import fingerprint
from ensue.data.ragged import Ragged
from ensue.tasks.rows.part import Names
from ensue.training.devices import device_of_weights, moved

Numbers = NDArray[np.int64]
NO_TARGET = -1
FEW = 8  # trees of a sample


@dataclass(frozen=True)
class TreeBatch:
    """words, labels (nodes,): what stands at a node, 0 nothing; parents (nodes,): −1 for a root;
    roots (trees,); targets (nodes,), −1 where there is none."""

    words: Tensor
    labels: Tensor
    parents: Tensor
    roots: Tensor
    targets: Tensor

    def __len__(self) -> int:
        return len(self.roots)


@dataclass(frozen=True)
class Forest:
    """Trees behind one another, each node before those below it. starts (trees + 1,): the first
    node of each; parents: the number of a node in its own tree."""

    starts: Numbers
    words: Numbers
    labels: Numbers
    parents: Numbers
    targets: Numbers

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Numbers:
        """Nodes of each tree."""
        return np.diff(self.starts)

    @property
    def roots(self) -> Numbers:
        return self.starts[:-1]

    def take(self, rows: Sequence[int] | Numbers) -> Forest:
        numbers = np.asarray(rows, np.int64)
        found = {
            name: Ragged(values, self.starts).take(numbers)
            for name, values in vars(self).items()
            if name != "starts"
        }
        starts = found["words"].starts
        return Forest(starts, **{name: own.values for name, own in found.items()})

    def batch(self, rows: Sequence[int] | Numbers) -> TreeBatch:
        own = self.take(rows)
        parents = own.parents + np.repeat(own.roots, own.lengths) * (own.parents >= 0)
        arrays = (own.words, own.labels, parents, own.roots, own.targets)
        return TreeBatch(*(torch.from_numpy(np.ascontiguousarray(a, np.int64)) for a in arrays))

    def in_batches(self, network: nn.Module, budget: int) -> Iterator[tuple[Numbers, TreeBatch]]:
        """Trees of like size together, where the network's weights are."""
        device = device_of_weights(network)
        for rows in evaluation_batches(self.lengths, budget):
            yield rows, moved(self.batch(rows), device)

    @property
    def fingerprint(self) -> str:
        return fingerprint(vars(self))


class TreeSource:
    """Trees in batches of a budget of nodes; their order follows from the seed and the epoch."""

    def __init__(
        self, forest: Forest, names: Names, *, seed: int, budget: int, most_rows: int | None
    ) -> None:
        self.forest, self.names, self.seed = forest, names, seed
        self.budget, self.most_rows = budget, most_rows
        self.fingerprint = forest.fingerprint

    def batches(self, epoch: int) -> Sequence[Any]:
        lengths = self.forest.lengths
        return batches(lengths, self.budget, self.seed, epoch, most_rows=self.most_rows)

    def batch(self, rows: Sequence[int]) -> TreeBatch:
        return self.forest.batch(rows)

    def targets(self, rows: Sequence[int]) -> float:
        return float((self.forest.take(rows).targets != NO_TARGET).sum())

    def tokens(self, rows: Sequence[int]) -> float:
        return float(self.forest.lengths[np.asarray(rows)].sum())

    def name(self, row: int) -> str:
        return self.names[row]


class TreeScores:
    """A validation: a score function over all trees, or over a few large ones."""

    def __init__(self, score: Callable[[Forest], Mapping[str, float]], forest: Forest) -> None:
        self._score, self._forest = score, forest
        self._few = forest.take(np.argsort(forest.lengths)[-FEW:])
        self.fingerprint = forest.fingerprint

    def __call__(self) -> Mapping[str, float]:
        return self._score(self._forest)

    def sample(self) -> Mapping[str, float]:
        return self._score(self._few)

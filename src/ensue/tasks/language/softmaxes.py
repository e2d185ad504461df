"""How a language model reads its vocabulary and scores it: as a whole, or in clusters of words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from torch import Tensor, nn

from ensue.tasks.blocks.adaptive_softmax import AdaptiveOutput, ClusteredTable, Start
from ensue.tasks.blocks.softmax_output import Output

CUTS = (600, 6_000)  # where none are given: benchmarks/softmax_words.py compares others
WordTable: TypeAlias = nn.Embedding | ClusteredTable


class WordOutput(Protocol):
    """p of the words that follow, from what a network has found."""

    bias: nn.Parameter

    def cost(self, y: Tensor, targets: Tensor, real: Tensor | None = None, /) -> Tensor:
        """y (time, batch, width) → Σ −log p(target) over the real targets (time, batch)."""
        ...

    def costs(self, y: Tensor, targets: Tensor, /) -> Tensor:
        """(time, batch): −log p of each target, without derivatives."""
        ...

    def log_probabilities(self, y: Tensor, /) -> Tensor:
        """y (…, width) → (…, words)."""
        ...


class Softmax(ABC):
    """The two ends of a language model: vectors of the words that it reads, and probabilities of
    the words that follow."""

    @abstractmethod
    def table(self, words: int, width: int, start: Start) -> WordTable:
        """Vectors of words; start fills a matrix of them."""

    @abstractmethod
    def output(self, words: int, width: int, tied: nn.Module | None) -> WordOutput:
        """tied: the table whose vectors the output has."""


class FullSoftmax(Softmax):
    """One softmax over all words."""

    def table(self, words: int, width: int, start: Start) -> nn.Embedding:
        found = nn.Embedding(words, width)
        start(found.weight)
        return found

    def output(self, words: int, width: int, tied: nn.Module | None) -> Output:
        assert tied is None or isinstance(tied, nn.Embedding)
        return Output(words, width, tied)


@dataclass(frozen=True)
class AdaptiveSoftmax(Softmax):
    """Clusters of words by frequency: cuts, the first word of each cluster after the head."""

    cuts: tuple[int, ...]

    def table(self, words: int, width: int, start: Start) -> ClusteredTable:
        return ClusteredTable(words, width, self.cuts, start)

    def output(self, words: int, width: int, tied: nn.Module | None) -> AdaptiveOutput:
        assert tied is None or isinstance(tied, ClusteredTable)
        return AdaptiveOutput(words, width, self.cuts, tied, small)


def small(weight: Tensor) -> None:
    """Fills a matrix with numbers between −0.1 and 0.1."""
    nn.init.uniform_(weight, -0.1, 0.1)


FULL = FullSoftmax()
SOFTMAXES: dict[str, Callable[[tuple[int, ...], int], Softmax]] = {
    "full": lambda cuts, words: FULL,
    "adaptive": lambda cuts, words: AdaptiveSoftmax(cuts or default_cuts(words)),
}


def softmax_of(name: str, cuts: Sequence[int], words: int) -> Softmax:
    """As `model.softmax` and `model.softmax_cuts` say, for a vocabulary of so many words."""
    return SOFTMAXES[name](tuple(cuts), words)


def default_cuts(words: int) -> tuple[int, ...]:
    """
    >>> default_cuts(33_000), default_cuts(5_000), default_cuts(20)
    ((600, 6000), (600,), (5,))
    """
    found = tuple(cut for cut in CUTS if cut < words)
    return found or (max(1, words // 4),)

"""Embeddings and output softmax of a language model: over the whole vocabulary, or in clusters of
words."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear

from ensue.engine.softmax import softmax_cost, softmax_costs
from ensue.errors import OptionError
from ensue.tasks.blocks.softmax_output import Output

# -------------------------------------------------------------------------------------------------
# A softmax over a large vocabulary in clusters of words by frequency.
#
# Words are numbered by falling frequency. Words before the first cut c_1 are in the head, together
# with one entry for each cluster of the others:
#
#     p(w) = p_head(w)                      w < c_1
#     p(w) = p_head(cluster k)·p_k(w)       c_k ≤ w < c_{k+1}
#
# Both are softmaxes, so that the probabilities of all words sum to 1. Only the words of a cluster
# add to its cost. Because rare words have little data, their vectors are narrower by a factor of 4
# from cluster to cluster (Grave et al. 2017; tied with the embedding: Baevski & Auli 2019).

NARROWER = 4  # factor of the width from a cluster to the next
LEAST = 8  # minimum width of a vector

Start = Callable[[Tensor], object]  # fills a matrix with initial values


def cluster_bounds(words: int, cuts: Sequence[int]) -> list[tuple[int, int]]:
    """The first word of each cluster and the word after its last; the head is the first cluster.

    >>> cluster_bounds(100, (10, 40))
    [(0, 10), (10, 40), (40, 100)]
    """
    edges = [0, *cuts, words]
    if any(low >= high for low, high in pairwise(edges)):
        raise OptionError(
            f"model.softmax_cuts: expected rising numbers from 1 to {words - 1:,}, below the "
            f"vocabulary of {words:,} words, got {', '.join(map(str, cuts))}"
        )
    return list(pairwise(edges))


def cluster_width(width: int, cluster: int) -> int:
    """The width of the vectors of a cluster, if the vectors of the head have this width."""
    narrow: int = width // NARROWER**cluster
    return max(min(LEAST, width), narrow)


class ClusteredTable(nn.Module):
    """Vectors of words: e(w) = E_k[w]·P_k, k the cluster of w, E_k narrow, P_k (narrow, width);
    in the head, e(w) = E_0[w]."""

    def __init__(self, words: int, width: int, cuts: Sequence[int], start: Start) -> None:
        super().__init__()
        self.bounds = cluster_bounds(words, cuts)
        self.num_embeddings, self.embedding_dim = words, width
        self.rows, self.maps = nn.ParameterList(), nn.ParameterList()
        for k, (low, high) in enumerate(self.bounds):
            narrow = cluster_width(width, k)
            self.rows.append(nn.Parameter(torch.empty(high - low, narrow)))
            start(self.rows[k])
            if k:  # so that the vectors have the norm of those of the head
                bound = math.sqrt(3 / narrow)
                self.maps.append(nn.Parameter(torch.empty(narrow, width).uniform_(-bound, bound)))

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens (…) → (…, width)."""
        total: Tensor = self.rows[0].new_zeros(())
        for k, (low, high) in enumerate(self.bounds):
            inside = ((tokens >= low) & (tokens < high)).to(self.rows[k].dtype)
            vectors = embedding((tokens - low).clamp(0, high - low - 1), self.rows[k])
            vectors = vectors * inside[..., None]
            total = total + (vectors @ self.maps[k - 1] if k else vectors)
        return total

    @property
    def weight(self) -> Tensor:
        """The vectors of all words (words, width), under the name of nn.Embedding."""
        wide = [rows @ self.maps[k - 1] if k else rows for k, rows in enumerate(self.rows)]
        return torch.cat(wide)


class AdaptiveOutput(nn.Module):
    """−log p of words, from y of this width; p as above, with the scores

        z = E_0·y + b  and  C·y + b'   of the head: its words, and the clusters
        z = E_k·(P_k·y) + b_k          of cluster k

    tied: the table whose E and P these are; y then has its width."""

    def __init__(
        self, words: int, width: int, cuts: Sequence[int], tied: ClusteredTable | None, start: Start
    ) -> None:
        super().__init__()
        self.table = ClusteredTable(words, width, cuts, start) if tied is None else tied
        clusters = len(self.table.bounds) - 1
        self.clusters = nn.Parameter(torch.empty(clusters, self.table.embedding_dim))
        start(self.clusters)
        self.bias = nn.Parameter(torch.zeros(words))
        self.cluster_bias = nn.Parameter(torch.zeros(clusters))

    def cost(self, y: Tensor, targets: Tensor, real: Tensor | None = None) -> Tensor:
        """y (time, batch, width) → Σ −log p(target) over the real targets, None: all."""
        rows, numbers = y.flatten(0, 1), targets.flatten()
        if real is not None:
            real_steps = real.flatten()
            rows, numbers = rows[real_steps], numbers[real_steps]
        total = softmax_cost(rows, *self._head(), self._head_targets(numbers))
        for k, (low, high) in self._tails():
            rows_of_block = ((numbers >= low) & (numbers < high)).nonzero()[:, 0]
            y_k = linear(rows.index_select(0, rows_of_block), self.table.maps[k - 1])
            total = total + softmax_cost(
                y_k, self.table.rows[k], self.bias[low:high], numbers[rows_of_block] - low
            )
        return total

    @torch.no_grad()
    def costs(self, y: Tensor, targets: Tensor) -> Tensor:
        """−log p of each target; shape (time, batch)."""
        rows, numbers = y.flatten(0, 1), targets.flatten()
        row_costs = softmax_costs(rows, *self._head(), self._head_targets(numbers))
        for k, (low, high) in self._tails():
            rows_of_block = ((numbers >= low) & (numbers < high)).nonzero()[:, 0]
            y_k = linear(rows[rows_of_block], self.table.maps[k - 1])
            row_costs[rows_of_block] += softmax_costs(
                y_k, self.table.rows[k], self.bias[low:high], numbers[rows_of_block] - low
            )
        return row_costs.view(targets.shape)

    def log_probabilities(self, y: Tensor) -> Tensor:
        """y (…, width) → (…, words)."""
        size = self.table.bounds[0][1]
        head = linear(y, *self._head()).log_softmax(-1)
        parts = [head[..., :size]]
        for k, (low, high) in self._tails():
            y_k, at = linear(y, self.table.maps[k - 1]), size + k - 1
            scores = linear(y_k, self.table.rows[k], self.bias[low:high])
            parts.append(scores.log_softmax(-1) + head[..., at : at + 1])
        return torch.cat(parts, -1)

    def _head(self) -> tuple[Tensor, Tensor]:
        """Weights and bias of the head: for its words, then for the clusters."""
        size = self.table.bounds[0][1]
        weight = torch.cat([self.table.rows[0], self.clusters])
        return weight, torch.cat([self.bias[:size], self.cluster_bias])

    def _head_targets(self, numbers: Tensor) -> Tensor:
        """The targets in the head: words of the head unchanged, others by their cluster."""
        size, targets = self.table.bounds[0][1], numbers
        for k, (low, _) in self._tails():
            targets = torch.where(numbers >= low, size + k - 1, targets)
        return targets

    def _tails(self) -> Iterator[tuple[int, tuple[int, int]]]:
        return enumerate(self.table.bounds[1:], 1)


CUTS = (600, 6_000)  # default; benchmarks/softmax_words.py compares others
WordTable: TypeAlias = nn.Embedding | ClusteredTable


class WordOutput(Protocol):
    """The interface of outputs: p of the next words from y."""

    bias: nn.Parameter

    def cost(self, y: Tensor, targets: Tensor, real: Tensor | None = None, /) -> Tensor:
        """y (time, batch, width) → Σ −log p(target) over the real targets (time, batch)."""
        ...

    def costs(self, y: Tensor, targets: Tensor, /) -> Tensor:
        """−log p of each target, without derivatives; shape (time, batch)."""
        ...

    def log_probabilities(self, y: Tensor, /) -> Tensor:
        """y (…, width) → (…, words)."""
        ...


class Softmax(ABC):
    """Input and output of a language model: vectors of the words that it reads, and probabilities
    of the next words."""

    @abstractmethod
    def table(self, words: int, width: int, start: Start) -> WordTable:
        """The vectors of words; start fills their matrix."""

    @abstractmethod
    def output(self, words: int, width: int, tied: nn.Module | None) -> WordOutput:
        """The output. tied: the table whose vectors it shares."""


class FullSoftmax(Softmax):
    """One softmax over all words."""

    def table(self, words: int, width: int, start: Start) -> nn.Embedding:
        table_of_words = nn.Embedding(words, width)
        start(table_of_words.weight)
        return table_of_words

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
    """The softmax of `model.softmax` and `model.softmax_cuts`. words: size of the vocabulary."""
    return SOFTMAXES[name](tuple(cuts), words)


def default_cuts(words: int) -> tuple[int, ...]:
    """
    >>> default_cuts(33_000), default_cuts(5_000), default_cuts(20)
    ((600, 6000), (600,), (5,))
    """
    cuts = tuple(cut for cut in CUTS if cut < words)
    return cuts or (max(1, words // 4),)

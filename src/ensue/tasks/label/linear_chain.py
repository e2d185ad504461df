"""The linear chain: a conditional random field of the usual features, without a network.

    score(l) = first[l_1] + Σ_t e_t[l_t] + Σ_t follow[l_{t−1}, l_t] + last[l_T]
    e_t = Σ_o Σ_f w_o[f], over the words o = −2 … 2 steps from t and the features f of each

w by L-BFGS on the negative log-likelihood of the training part + strength·‖w‖² (Lafferty et al.
2001). It is convex and has no seed. A word's features are summed once for each distinct word, then
looked up at every step: the work is that of the vocabulary, not of the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag

from ensue.data.ragged import Ragged
from ensue.tasks import checks
from ensue.tasks.label.chain_features import ENDS, OFFSETS, ChainFeatures
from ensue.tasks.label.chains import Chain
from ensue.tasks.label.packed_chains import PackedRows, expectations
from ensue.training.torch_optimisers import LBFGS

STRENGTH = 0.1
ITERATIONS = 120
HISTORY = 6  # pairs that L-BFGS keeps


@dataclass(frozen=True)
class LinearChain:
    """weights (rows of the features' table, labels); first, last (labels,); follow (before,
    after)."""

    features: ChainFeatures
    weights: NDArray[np.float32]
    first: NDArray[np.float32]
    follow: NDArray[np.float32]
    last: NDArray[np.float32]

    def of_words(self, words: Sequence[str]) -> ChainOfWords:
        """For texts of these words."""
        bags = [_bag(table) for table in self.features.tables(words)]
        return ChainOfWords(self, _word_scores(bags, torch.from_numpy(self.weights)))

    # ------------------------------------------------------------- as files
    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "weights": self.weights,
            "first": self.first,
            "follow": self.follow,
            "last": self.last,
        }

    @classmethod
    def from_arrays(
        cls, features: ChainFeatures, arrays: Mapping[str, NDArray[Any]], labels: int
    ) -> LinearChain:
        """The inverse of `arrays`, for so many labels."""
        of_label = checks.array((labels,), checks.SINGLE)
        expected = {
            "weights": checks.array((features.rows, labels), checks.SINGLE),
            "first": of_label,
            "follow": checks.array((labels, labels), checks.SINGLE),
            "last": of_label,
        }
        return cls(features, **checks.record(expected)(arrays, "chain"))


@dataclass(frozen=True)
class ChainOfWords:
    """scores: for each of OFFSETS what a word that far away adds to the score of each label,
    (words and the two ends of a row, labels)."""

    linear: LinearChain
    scores: Sequence[Tensor]

    def chain(self, steps: Ragged) -> Chain:
        """Of these rows. steps: the numbers of their words."""
        words = len(self.scores[0]) - len(ENDS)
        found = sum(own[at] for own, at in zip(self.scores, _neighbours(steps, words), strict=True))
        assert isinstance(found, Tensor)
        rows = np.arange(len(steps))
        e = torch.from_numpy(Ragged(found.numpy(), steps.starts).padded(rows))
        first, follow, last = map(
            torch.from_numpy, (self.linear.first, self.linear.follow, self.linear.last)
        )
        begin = e[0] if len(e) else e.new_zeros(e.shape[1:])
        lengths = torch.from_numpy(steps.lengths)
        return Chain(begin + first, lambda t: follow + e[t][:, None, :], last, lengths, len(e))


class SeenWords:
    """The words of a text: which features each distinct one has, and which stands where."""

    def __init__(self, features: ChainFeatures, words: Sequence[str], steps: Ragged) -> None:
        self.rows = features.rows
        self.bags = [_bag(table) for table in features.tables(words)]
        self.at = _neighbours(steps, len(words))

    def emissions(self, weights: Tensor) -> Tensor:
        """(steps, labels): Σ_o Σ_f w_o[f]."""
        found = weights.new_zeros(len(self.at[0]), weights.shape[1])
        for own, at in zip(_word_scores(self.bags, weights), self.at, strict=True):
            found += own[at]
        return found

    def gradient(self, slopes: Tensor) -> Tensor:
        """Of the weights, from those of the emissions (steps, labels)."""
        found = slopes.new_zeros(self.rows, slopes.shape[1])
        for bag, at in zip(self.bags, self.at, strict=True):
            by_word = slopes.new_zeros(len(bag.starts), slopes.shape[1]).index_add_(0, at, slopes)
            found.index_add_(0, bag.features, by_word[bag.words])
        return found


class Bag(NamedTuple):
    """The features of all words, one after another; starts: where each word's begin; words: whose
    each is."""

    features: Tensor
    starts: Tensor
    words: Tensor


def _bag(table: Ragged) -> Bag:
    words = np.repeat(np.arange(len(table)), table.lengths)
    features = torch.from_numpy(np.ascontiguousarray(table.values, np.int64))
    return Bag(features, torch.from_numpy(table.starts[:-1].copy()), torch.from_numpy(words))


def _word_scores(bags: Sequence[Bag], weights: Tensor) -> list[Tensor]:
    """(words, labels) for each of OFFSETS: the weights of each word's features together."""
    return [embedding_bag(bag.features, weights, bag.starts, mode="sum") for bag in bags]


def _neighbours(steps: Ragged, words: int) -> list[Tensor]:
    """(steps,) for each of OFFSETS: the word so far away; `words` before a row, `words + 1` after
    its end."""
    values = steps.values.astype(np.int64)
    begin = np.repeat(steps.starts[:-1], steps.lengths)
    end = np.repeat(steps.starts[1:], steps.lengths)
    found = []
    for offset in OFFSETS:
        at = np.arange(len(values)) + offset
        inside = values[at.clip(0, max(0, len(values) - 1))]
        own = np.where(at < begin, words, np.where(at >= end, words + 1, inside))
        found.append(torch.from_numpy(own))
    return found


def fit_linear_chain(
    words: Sequence[str],
    steps: Ragged,
    targets: Ragged,
    labels: int,
    *,
    strength: float = STRENGTH,
    iterations: int = ITERATIONS,
) -> LinearChain:
    """words: by number; steps: the words of each row; targets: the label of each step."""
    counts = np.bincount(steps.values, minlength=len(words)).tolist()
    features = ChainFeatures.learn({w: n for w, n in zip(words, counts, strict=True) if n})
    cost = ChainCost(SeenWords(features, words, steps), steps, targets, labels, strength)
    weights = cost.zeros()
    search = LBFGS(
        weights,
        max_iter=iterations,
        history_size=HISTORY,
        tolerance_grad=1e-6,
        tolerance_change=1e-7,
        line_search_fn="strong_wolfe",
    )
    search.step(lambda: cost(weights))  # type: ignore[no-untyped-call]
    return LinearChain(features, *(own.numpy() for own in weights))


class ChainCost:
    """The mean over rows of the negative log-likelihood + strength·‖w‖², of weights (rows of the
    features' table, labels), first, follow and last; with its gradient."""

    def __init__(
        self, seen: SeenWords, steps: Ragged, targets: Ragged, labels: int, strength: float
    ) -> None:
        self.seen, self.labels, self.strength = seen, labels, strength
        self.rows, self.scale = PackedRows(steps), 1 / max(1, len(steps))
        self.wanted = torch.from_numpy(targets.values.astype(np.int64))
        self.at = torch.arange(len(self.wanted)), self.wanted
        self.counts = gold_counts(self.rows, self.wanted, labels)

    def zeros(self) -> list[Tensor]:
        n = self.labels
        return [torch.zeros(shape) for shape in ((self.seen.rows, n), (n,), (n, n), (n,))]

    def __call__(self, weights: Sequence[Tensor]) -> Tensor:
        """Puts the gradient into each `grad`."""
        table, *links = weights
        emissions = self.seen.emissions(table)
        found = expectations(self.rows, emissions, *links)
        gold = emissions[self.at].double().sum()
        for own, count in zip(links, self.counts, strict=True):
            gold += (own.double() * count).sum()
        found.labels[self.at] -= 1
        gradients = [self.seen.gradient(found.labels)]
        pairs = zip((found.first, found.follow, found.last), self.counts, strict=True)
        gradients += [(own - count).float() for own, count in pairs]
        for own, slope in zip(weights, gradients, strict=True):
            own.grad = self.scale * (slope + 2 * self.strength * own)
        penalty = self.strength * sum(float(own.square().sum()) for own in weights)
        total = float(found.log_partition - gold) + penalty
        return torch.tensor(self.scale * total, dtype=torch.float64)


def gold_counts(rows: PackedRows, wanted: Tensor, labels: int) -> list[Tensor]:
    """How often each label stands first, after which, and last."""
    first = torch.bincount(wanted[rows.first], minlength=labels).double()
    last = torch.bincount(wanted[rows.last], minlength=labels).double()
    pairs = wanted[rows.before] * labels + wanted[rows.after]
    follow = torch.bincount(pairs, minlength=labels * labels).double().view(labels, labels)
    return [first, follow, last]

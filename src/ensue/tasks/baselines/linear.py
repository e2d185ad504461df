"""The linear n-gram model: the baseline that a network must beat.

z_k = b_k + Σ r_nk·w_nk, over the n-grams n of a row. r_nk is the naive-Bayes log-count ratio:

r_nk = log( (α + rows of k with n)/norm ) − log( (α + other rows with n)/norm ).

w is fitted by logistic regression with ½·strength·‖w‖² (after Wang & Manning 2012). Two classes
have one z, of class 1 against class 0; more have a softmax; several labels have σ(z_k) each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    embedding_bag,
    one_hot,
)

from ensue.data.ragged import Ragged
from ensue.errors import DataError, OptionError
from ensue.tasks.declarations import AS_ARRAY, NEXT_TO, Equal, Range, Shape, Unfit, check_rising
from ensue.training.optimiser import LBFGS

Hashes = NDArray[np.uint64]
LONGEST = 8  # maximum words of an n-gram in a file


@dataclass(frozen=True)
class Ngrams:
    """hashes (count,): the hashes of n-grams of one word in rising order, then of two words, and so
    on. The hashes of the k-th length are at starts[k] … starts[k + 1]. words (count, longest): the
    words of each n-gram, −1 after its last word."""

    hashes: Annotated[Hashes, Shape(None)]
    starts: Annotated[NDArray[np.int64], Shape(None), Range(low=0, high="hashes")]
    words: Annotated[
        NDArray[np.int32],
        Shape("hashes", lambda ngrams: len(ngrams.starts) - 1),
        Range(low=-1, high=lambda ngrams: ngrams.word_count - 1),
    ]

    def check_saved(self) -> None:
        check_rising(self.starts, "starts", strictly=False)
        starts = self.starts.tolist()
        if not 2 <= len(starts) <= LONGEST + 1 or starts[0] or starts[-1] != len(self):
            raise Unfit(
                f"expected the start of the n-grams of each length, the first 0 and the last "
                f"{len(self):,}",
                "starts",
            )
        for first, last in pairwise(starts):
            check_rising(self.hashes[first:last], "hashes")

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def longest(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def listed(cls, texts: Ragged, longest: int, min_rows: int = 1) -> tuple[Ngrams, Ragged]:
        """All n-grams of 1 … `longest` words that occur in at least `min_rows` rows, and the
        n-grams of each row (as `present` gives them)."""
        if longest < 1 or min_rows < 1:
            raise OptionError(
                f"expected longest ≥ 1 and min_rows ≥ 1, got {longest} and {min_rows}"
            )
        hashes, words, places, total = list[Hashes](), [], [], 0
        for n, (hashed, rows, at) in enumerate(hashed_ngrams(texts, longest), 1):
            order = np.argsort(hashed, kind="stable")  # equal ones by row, for rows rise
            hashed, rows = hashed[order], rows[order]
            new = changes(hashed)
            once = np.flatnonzero(new | changes(rows))  # each n-gram once in a row
            group = np.cumsum(new)[once] - 1
            frequent = np.bincount(group, minlength=int(new.sum())) >= min_rows
            numbers = np.cumsum(frequent) - 1 + total
            chosen = frequent[group]
            places.append((rows[once[chosen]], numbers[group[chosen]]))
            first = np.flatnonzero(new)[frequent]
            hashes.append(hashed[first])
            words.append(_columns(texts.values, at[order[first]], n, longest))
            total += len(first)
        starts = np.concatenate([[0], np.cumsum([len(h) for h in hashes])])
        ngrams = cls(np.concatenate(hashes), starts, np.concatenate(words))
        return ngrams, ngrams._by_row(places, len(texts))

    def present(self, texts: Ragged) -> Ragged:
        """The indices of the listed n-grams in each row, rising, each once (int32)."""
        places = []
        for n, (hashes, rows, _) in enumerate(hashed_ngrams(texts, self.longest)):
            known = self.hashes[self.starts[n] : self.starts[n + 1]]
            if len(known):
                place = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
                matching = known[place] == hashes
                places.append((rows[matching], place[matching] + self.starts[n]))
        return self._by_row(places, len(texts))

    def _by_row(
        self, places: list[tuple[NDArray[np.int32], NDArray[np.int64]]], rows: int
    ) -> Ragged:
        """Groups n-grams by row, from the row and the index of each."""
        size = max(1, len(self))
        keys = np.concatenate(
            [np.empty(0, np.int64), *(size * row.astype(np.int64) + n for row, n in places)]
        )
        keys.sort()
        row_numbers, numbers = np.divmod(keys[changes(keys)], size)
        starts = np.zeros(rows + 1, np.int64)
        np.cumsum(np.bincount(row_numbers, minlength=rows), out=starts[1:])
        return Ragged(numbers.astype(np.int32), starts)

    def spelled(self, number: int) -> tuple[int, ...]:
        """The word indices of an n-gram."""
        return tuple(int(w) for w in self.words[number] if w >= 0)


def changes(v: NDArray[Any]) -> NDArray[np.bool_]:
    """True where a value differs from the one before it. Sorting and this function are far faster
    than np.unique's hashing."""
    return np.concatenate([np.ones(min(1, len(v)), bool), v[1:] != v[:-1]])


def _columns(words: NDArray[Any], at: NDArray[np.int64], n: int, longest: int) -> NDArray[np.int32]:
    """The n words from each place on, then −1; shape (n-grams, longest)."""
    columns = np.full((len(at), longest), -1, np.int32)
    columns[:, :n] = words[at[:, None] + np.arange(n)]
    return columns


def hashed_ngrams(
    texts: Ragged, longest: int
) -> Iterator[tuple[Hashes, NDArray[np.int32], NDArray[np.int64]]]:
    """For n = 1 … longest: the hash of every n-gram, its row, and where it begins."""
    words = texts.values.astype(np.uint64)
    rows = np.repeat(np.arange(len(texts), dtype=np.int32), texts.lengths)
    at = np.arange(len(words))
    hashes = np.zeros(len(words), np.uint64)
    for n in range(1, longest + 1):
        inside = at + n - 1 < texts.starts[rows + 1]
        hashes, rows, at = hashes[inside], rows[inside], at[inside]
        hashes = _mixed(hashes ^ _mixed(words[at + n - 1]))
        yield hashes, rows, at


def _mixed(v: Hashes) -> Hashes:
    """The finaliser of splitmix64: every bit of v affects every bit of the result."""
    v = v + np.uint64(0x9E3779B97F4A7C15)
    v = (v ^ (v >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    v = (v ^ (v >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return v ^ (v >> np.uint64(31))


class Presence:
    """A matrix of zeros and ones (rows, columns), stored as the columns of each row.

    Products are sums over bags of rows of the other factor, and need no stored ones."""

    def __init__(self, present: Ragged, columns: int) -> None:
        self.columns = torch.from_numpy(np.ascontiguousarray(present.values, np.int32))
        self.starts = torch.from_numpy(present.starts[:-1].astype(np.int32))
        rows = np.repeat(np.arange(len(present), dtype=np.int32), present.lengths)
        self.rows = torch.from_numpy(rows[np.argsort(present.values, kind="stable")])
        counts = np.bincount(present.values, minlength=columns)
        self.column_starts = torch.from_numpy((np.cumsum(counts) - counts).astype(np.int32))

    def times(self, dense: Tensor) -> Tensor:
        """X·dense: (columns, k) → (rows, k)."""
        return embedding_bag(self.columns, dense, self.starts, mode="sum")

    def transposed_times(self, dense: Tensor) -> Tensor:
        """Xᵀ·dense: (rows, k) → (columns, k)."""
        return embedding_bag(self.rows, dense, self.column_starts, mode="sum")


@dataclass(frozen=True)
class LinearModel:
    """weights (n-grams, classes), including ratios, and bias (classes,): scores are bias + Σ
    weights[n]. several: multi-label."""

    ngrams: Annotated[Ngrams, NEXT_TO]
    weights: Annotated[NDArray[np.float32], Shape("ngrams", "outputs")]
    bias: Annotated[NDArray[np.float32], Shape("outputs")]
    several: Annotated[bool, AS_ARRAY, Equal("several")]

    def scores(self, texts: Ragged) -> NDArray[np.float32]:
        """z (rows, classes) for word indices."""
        return self.present_scores(self.ngrams.present(texts))

    def present_scores(self, present: Ragged) -> NDArray[np.float32]:
        """z (rows, classes) for the n-grams of each row."""
        ids, starts = torch.from_numpy(present.values), torch.from_numpy(present.starts[:-1])
        bag = embedding_bag(ids.long(), torch.from_numpy(self.weights), starts, mode="sum")
        return (bag + torch.from_numpy(self.bias)).numpy()

    def probabilities(self, texts: Ragged) -> NDArray[np.float32]:
        """The probability of each class, or of each label; shape (rows, classes)."""
        z = torch.from_numpy(self.scores(texts))
        return (z.sigmoid() if self.several else z.softmax(1)).numpy()

    def most_telling(self, number: int, k: int) -> list[tuple[tuple[int, ...], float]]:
        """The k n-grams with the highest weights for a class, as word indices, with their
        weights."""
        column = self.weights[:, number]
        best = np.argsort(-column, kind="stable")[:k]
        return [(self.ngrams.spelled(int(n)), float(column[n])) for n in best]


def fit_linear(
    texts: Ragged,
    targets: NDArray[Any],
    classes: int,
    *,
    longest: int = 2,
    min_rows: int = 2,
    smoothing: float = 1.0,
    strength: float = 4.0,
    iterations: int = 60,
) -> LinearModel:
    """A linear model from word indices and targets: classes (rows,), or zeros and ones (rows,
    labels)."""
    wrong = {"smoothing": smoothing, "strength": strength, "iterations": iterations}
    if low := [f"{name}: expected a number > 0, got {v}" for name, v in wrong.items() if v <= 0]:
        raise OptionError("; ".join(low))
    if len(texts) != len(targets) or not len(texts):
        raise DataError(
            f"expected texts and a target for each, got {len(texts)} and {len(targets)}"
        )
    ngrams, present = Ngrams.listed(texts, longest, min_rows)
    matrix = Presence(present, len(ngrams))
    several = targets.ndim == 2
    labels = torch.from_numpy(np.asarray(targets, np.int64))
    goal = labels if several else one_hot(labels, classes)
    if classes == 2 and not several:
        goal = goal[:, 1:]
    ratios = log_count_ratios(matrix, goal.float(), smoothing)
    goals = labels if goal.shape[1] == classes and not several else goal.float()
    weights, bias = _regression(matrix, ratios, goals, strength, iterations)
    if goal.shape[1] != classes:  # z for class 1, −z for class 0, and the same distribution
        weights, bias = torch.cat([-weights, weights], 1) / 2, torch.cat([-bias, bias]) / 2
    return LinearModel(ngrams, weights.numpy(), bias.numpy(), several)


def log_count_ratios(matrix: Presence, goal: Tensor, smoothing: float) -> Tensor:
    """r (n-grams, k) for goal (rows, k) of zeros and ones."""
    inside = smoothing + matrix.transposed_times(goal)
    outside = smoothing + matrix.transposed_times(1 - goal)
    return (inside / inside.sum(0)).log() - (outside / outside.sum(0)).log()


def _regression(
    matrix: Presence, ratios: Tensor, targets: Tensor, strength: float, iterations: int
) -> tuple[Tensor, Tensor]:
    """weights r*w and bias b that minimise the mean cost + strength/(2·rows)·‖w‖²; by L-BFGS.

    targets: class numbers (rows,) or zeros and ones (rows, k)."""
    rows = len(targets)
    w, b = torch.zeros_like(ratios), ratios.new_zeros(ratios.shape[1])
    optimiser = LBFGS(
        [w, b],
        max_iter=iterations,
        history_size=6,
        tolerance_grad=1e-7,
        tolerance_change=1e-9,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        z = (matrix.times(ratios * w) + b).requires_grad_()
        with torch.enable_grad():
            if targets.dim() == 1:
                cost = cross_entropy(z, targets)
            else:
                cost = binary_cross_entropy_with_logits(z, targets, reduction="sum") / rows
            (slope,) = torch.autograd.grad(cost, z)
        w.grad = ratios * matrix.transposed_times(slope) + strength / rows * w
        b.grad = slope.sum(0)
        return cost.detach() + strength / (2 * rows) * (w * w).sum()

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    return ratios * w, b

"""The linear n-gram model: the baseline that a network must beat.

z_k = b_k + Σ r_nk·w_nk over the n-grams n that a row has, r_nk the naive-Bayes log-count ratio

r_nk = log( (α + rows of k with n)/norm ) − log( (α + other rows with n)/norm )

and w by logistic regression with ½·strength·‖w‖² (after Wang & Manning 2012). Two classes are
one z, of class 1 against class 0; more are a softmax; several labels at once are σ(z_k) each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
from ensue.tasks import checks
from ensue.tasks.baselines.ngrams import Ngrams
from ensue.training.torch_optimisers import LBFGS


class Presence:
    """A matrix of zeros and ones (rows, columns) by the columns that each row has.

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
    """weights (n-grams, classes) and bias (classes,), ratios included: scores are
    bias + Σ weights[n]. several: many labels at once."""

    ngrams: Ngrams
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]
    several: bool

    def scores(self, texts: Ragged) -> NDArray[np.float32]:
        """z (rows, classes) of word numbers."""
        return self.present_scores(self.ngrams.present(texts))

    def present_scores(self, present: Ragged) -> NDArray[np.float32]:
        """z (rows, classes) of the n-grams that each row has."""
        ids, starts = torch.from_numpy(present.values), torch.from_numpy(present.starts[:-1])
        found = embedding_bag(ids.long(), torch.from_numpy(self.weights), starts, mode="sum")
        return (found + torch.from_numpy(self.bias)).numpy()

    def probabilities(self, texts: Ragged) -> NDArray[np.float32]:
        """(rows, classes): of each class, or of each label being there."""
        z = torch.from_numpy(self.scores(texts))
        return (z.sigmoid() if self.several else z.softmax(1)).numpy()

    def most_telling(self, number: int, k: int) -> list[tuple[tuple[int, ...], float]]:
        """The k n-grams that speak most for a class, as word numbers, with their weights."""
        column = self.weights[:, number]
        best = np.argsort(-column, kind="stable")[:k]
        return [(self.ngrams.spelled(int(n)), float(column[n])) for n in best]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that it is, to be stored by name."""
        own = {"weights": self.weights, "bias": self.bias, "several": np.array([self.several])}
        return self.ngrams.arrays() | own

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], words: int, classes: int, several: bool
    ) -> LinearModel:
        """The inverse of `arrays`, for so many words and classes."""
        ngrams = Ngrams.from_arrays(arrays, "linear", words)
        weights = checks.array((len(ngrams), classes), checks.SINGLE)(
            arrays.get("weights"), "linear.weights"
        )
        bias = checks.array((classes,), checks.SINGLE)(arrays.get("bias"), "linear.bias")
        checks.array((1,), ("bool",), several, several)(arrays.get("several"), "linear.several")
        return cls(ngrams, weights, bias, several)


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
    """From word numbers and targets, (rows,) classes or (rows, labels) zeros and ones."""
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
    wanted = torch.from_numpy(np.asarray(targets, np.int64))
    goal = wanted if several else one_hot(wanted, classes)
    if classes == 2 and not several:
        goal = goal[:, 1:]
    ratios = log_count_ratios(matrix, goal.float(), smoothing)
    own = wanted if goal.shape[1] == classes and not several else goal.float()
    weights, bias = _regression(matrix, ratios, own, strength, iterations)
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

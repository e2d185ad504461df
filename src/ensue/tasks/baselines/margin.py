"""Linear models with a margin, as in support-vector machines, for any number of classes.

f = X·w + b, where w, b minimise ½·Σ w² + C·Σ_i max(0, 1 − y_ik·f_ik)² for each class k separately,
y = ±1; by L-BFGS for all classes at once. For small data, Newton's method below solves the same
problem.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ensue.tasks.baselines.sparse import SparseMatrix
from ensue.training.optimiser import LBFGS

STEPS, HALVINGS = 60, 30


# -------------------------------------------------------------------------------------------------
# Linear models with a margin, for small data: Newton's method in the space of rows.
#
# The cost of margin.py with w = Xᵀ·β and G = X·Xᵀ. It is quadratic as long as the set A of rows
# inside the margin, y·f < 1, stays the same; its minimum there solves
#
#     (G_AA + I/(2·C))·β_A + b = y_A,   Σ β_A = 0,   β = 0 outside of A
#
# A step is one factorisation for all classes with the same A. After a few steps A no longer
# changes, and the solution is exact (Chapelle 2007). A step that does not lower the cost is halved.


class RowWeights(NamedTuple):
    """β (rows, k) and bias (k,), float64."""

    beta: Tensor
    bias: Tensor

    def scores(self, products: Tensor) -> Tensor:
        """f (others, k). products (others, rows): of these rows with other rows, or with
        themselves."""
        return products @ self.beta + self.bias

    def towards(self, other: RowWeights, share: Tensor) -> RowWeights:
        """Weights between these and others. share (k,): how far each class moves."""
        return RowWeights(
            *(start + share * (end - start) for start, end in zip(self, other, strict=True))
        )


def row_weights_along(
    products: Tensor, signs: Tensor, strengths: Sequence[float]
) -> Iterator[RowWeights]:
    """The solution for each strength C in rising order, each initialised from the one before.

    products (rows, rows): G; signs (rows, k): ±1."""
    signs = signs.double()
    rowweights = RowWeights(torch.zeros_like(signs), signs.new_zeros(signs.shape[1]))
    for strength in strengths:
        rowweights = solve_by_rows(products, signs, strength, rowweights)
        yield rowweights


def solve_by_rows(
    products: Tensor, signs: Tensor, strength: float, start: RowWeights
) -> RowWeights:
    """The solution for one strength. products (rows, rows): G; signs (rows, k): ±1; strength: C.
    All float64."""
    current, scores = start, start.scores(products)
    cost = _costs(current, scores, signs, strength)
    for _ in range(STEPS):
        inside = signs * scores < 1
        goal = _minimum(products, signs, strength, inside, current)
        step = _steps(current, goal, cost, products, signs, strength)
        current = current.towards(goal, step)
        scores = current.scores(products)
        cost = _costs(current, scores, signs, strength)
        if bool(((signs * scores < 1) == inside).all()) and bool((step == 1).all()):
            break
        if not bool((step > 0).any()):
            break
    return current


def _minimum(
    products: Tensor, signs: Tensor, strength: float, inside: Tensor, before: RowWeights
) -> RowWeights:
    """The minimum of the quadratic cost of the rows inside the margin of each class, inside (rows,
    k)."""
    beta, bias = torch.zeros_like(before.beta), before.bias.clone()
    groups_of_rows = inside.unique(dim=1, return_inverse=True)  # type: ignore[no-untyped-call]
    groups, group = groups_of_rows
    for number in range(groups.shape[1]):
        rows, classes = groups[:, number].nonzero()[:, 0], (group == number).nonzero()[:, 0]
        if not len(rows):  # no rows inside: w = 0 with the current bias
            continue
        matrix = products.index_select(0, rows).index_select(1, rows)
        matrix.diagonal().add_(0.5 / strength)
        gradient = torch.cat([signs[rows][:, classes], signs.new_ones(len(rows), 1)], 1)
        solved = torch.cholesky_solve(gradient, torch.linalg.cholesky(matrix))
        offset = solved[:, :-1].sum(0) / solved[:, -1].sum()
        beta[rows[:, None], classes] = solved[:, :-1] - offset * solved[:, -1:]
        bias[classes] = offset
    return RowWeights(beta, bias)


def _steps(
    weights: RowWeights,
    goal: RowWeights,
    cost: Tensor,
    products: Tensor,
    signs: Tensor,
    strength: float,
) -> Tensor:
    """Step sizes: 1, or the largest ½ⁿ with which the cost of a class does not rise; 0 if
    there is none; shape (k,)."""
    step = torch.ones_like(cost)
    first, last = weights.scores(products), goal.scores(products)
    for _ in range(HALVINGS):
        tried, scores = weights.towards(goal, step), first + step * (last - first)
        rises = _costs(tried, scores, signs, strength) > cost * (1 + 1e-12)
        if not bool(rises.any()):
            return step
        step = torch.where(rises, step / 2, step)
    return torch.where(rises, 0.0, step)


def _costs(weights: RowWeights, scores: Tensor, signs: Tensor, strength: float) -> Tensor:
    """The cost of each column of scores (k,)."""
    short = (1 - signs * scores).clamp(min=0)
    length = (weights.beta * (scores - weights.bias)).sum(0)  # wᵀw = βᵀGβ
    return strength * short.square().sum(0) + 0.5 * length


ITERATIONS = 60
TOLERANCE = 1e-3  # of the gradient's norm, relative to its start


@dataclass(frozen=True)
class Margins:
    """weights (columns, k) and bias (k,)."""

    weights: Tensor
    bias: Tensor

    def scores(self, x: SparseMatrix) -> Tensor:
        """f (rows, k)."""
        return x.times(self.weights) + self.bias


def along_strengths(
    x: SparseMatrix, signs: Tensor, strengths: Sequence[float]
) -> Iterator[Margins]:
    """The solution for each strength C in rising order, each initialised from the one before.

    signs (rows, k): ±1."""
    k = signs.shape[1]
    w, b = torch.zeros(x.width, k), torch.zeros(k)
    for strength in strengths:
        w, b = _solved(x, signs, strength, (w, b))
        yield Margins(w, b)


def _solved(
    x: SparseMatrix, signs: Tensor, strength: float, start: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    w, b = (tensor.clone() for tensor in start)

    def closure() -> Tensor:
        short = (1 - signs * (x.times(w) + b)).clamp_(min=0)
        slope = -2 * strength * signs * short
        w.grad = x.transposed_times(slope) + w
        b.grad = slope.sum(0)
        return (strength * short * short).sum() + 0.5 * (w * w).sum()

    closure()
    assert w.grad is not None
    norm = float(w.grad.abs().max())
    search = LBFGS(
        [w, b],
        max_iter=ITERATIONS,
        history_size=8,
        tolerance_grad=TOLERANCE * norm,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )
    search.step(closure)  # type: ignore[no-untyped-call]
    return w, b

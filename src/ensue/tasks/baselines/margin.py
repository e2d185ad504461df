"""Linear models with a margin: what a support-vector machine is, for any number of classes.

f = X·w + b, and w, b minimise ½·Σ w² + C·Σ_i max(0, 1 − y_ik·f_ik)² for each class k by itself,
y = ±1; by L-BFGS for all classes at once. Of few rows margin_newton.py solves the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ensue.tasks.baselines.sparse import SparseMatrix
from ensue.training.torch_optimisers import LBFGS

ITERATIONS = 60
TOLERANCE = 1e-3  # of the gradient's norm, as a share of what it was at the start


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
    """The solution for each strength C, in rising order, each begun from the one before.

    signs (rows, k): ±1."""
    k = signs.shape[1]
    w, b = torch.zeros(x.width, k), torch.zeros(k)
    for strength in strengths:
        w, b = _solved(x, signs, strength, (w, b))
        yield Margins(w, b)


def _solved(
    x: SparseMatrix, signs: Tensor, strength: float, start: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    w, b = (own.clone() for own in start)

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

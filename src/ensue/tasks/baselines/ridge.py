"""Ridge regression on n-grams: the baseline for a number predicted from a text.

w = argmin Σ (y − Xw)² + strength·‖w‖², X the n-grams of each row, by conjugate gradients on (XᵀX +
strength·I)·w = Xᵀy. The strength is the best of several on held-out rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag

from ensue.data.ragged import Ragged
from ensue.tasks.baselines.linear import Ngrams, Presence
from ensue.tasks.declarations import NEXT_TO, Shape

# Strengths, relative to the mean of K's diagonal.
LEFT_OUT_STRENGTHS = tuple(10.0 ** (k / 2) for k in range(-6, 5))
LEAST = 1e-9  # minimum of divisors


@torch.no_grad()
def explained(products: Tensor, targets: Tensor) -> float:
    """The explained share of the variance of targets (n, k), at the best strength: 1 − the squared
    errors of leave-one-out fits, divided by the squared errors of the mean of the other rows.
    products (n, n): of the rows' features with each other."""
    n = len(products)
    k = products.double()
    k = k - k.mean(0) - k.mean(1, keepdim=True) + k.mean()
    y = targets.double() - targets.double().mean(0)
    usual = float((y / (1 - 1 / n)).square().sum())
    values, vectors = torch.linalg.eigh(k)
    values, turned = values.clamp(min=0), vectors.T @ y
    size = float(values.mean()) or 1.0
    errors = []
    for strength in LEFT_OUT_STRENGTHS:
        shares = values / (values + strength * size)
        diagonal = 1 / n + (vectors.square() * shares).sum(1)
        wrong = y - vectors @ (shares[:, None] * turned)
        left_out = wrong / (1 - diagonal).clamp(min=LEAST)[:, None]
        errors.append(float(left_out.square().sum()))
    return 1 - min(errors) / max(usual, LEAST)


STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0)
ITERATIONS, TOLERANCE = 200, 1e-5


class Products(Protocol):
    """Products with X (rows, columns)."""

    def times(self, dense: Tensor) -> Tensor: ...

    def transposed_times(self, dense: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class RidgeModel:
    """y = Σ weights[n] over the n-grams n of a row; y has mean 0 in training."""

    ngrams: Annotated[Ngrams, NEXT_TO]
    weights: Annotated[NDArray[np.float32], Shape("ngrams")]

    def values(self, texts: Ragged) -> NDArray[np.float32]:
        """The values (rows,) for word indices."""
        present = self.ngrams.present(texts)
        return _sums(present, torch.from_numpy(self.weights)).numpy()


def fit_ridge(
    texts: Ragged,
    values: NDArray[Any],
    held_texts: Ragged,
    held_values: NDArray[Any],
    *,
    longest: int = 2,
    min_rows: int = 2,
) -> RidgeModel:
    """Fits the model to word indices and values (rows,); held-out rows choose the strength."""
    ngrams, present = Ngrams.listed(texts, longest, min_rows)
    matrix, goal = Presence(present, len(ngrams)), _column(values)
    held_out = ngrams.present(held_texts)
    best, least = torch.zeros(len(ngrams)), float("inf")
    for strength in STRENGTHS:
        weights = _solved(matrix, goal, strength)
        error = float(
            (_sums(held_out, weights) - torch.from_numpy(held_values).float()).square().sum()
        )
        if error < least:
            best, least = weights, error
    return RidgeModel(ngrams, best.numpy())


def _column(values: NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.asarray(values, np.float32))[:, None]


def _sums(present: Ragged, weights: Tensor) -> Tensor:
    """The sum of the weights of each row's n-grams; shape (rows,)."""
    ids, starts = torch.from_numpy(present.values), torch.from_numpy(present.starts[:-1])
    return embedding_bag(ids.long(), weights[:, None], starts, mode="sum")[:, 0]


def _solved(matrix: Presence, values: Tensor, strength: float) -> Tensor:
    """The weights (columns,) of ridge regression on values (rows, 1)."""
    return solved_ridge(matrix, values, strength)[:, 0]


def solved_ridge(matrix: Products, values: Tensor, strength: float) -> Tensor:
    """The weights (columns, 1) of ridge regression on values (rows, 1), by conjugate gradients."""
    residual = matrix.transposed_times(values)
    weights, direction = torch.zeros_like(residual), residual.clone()
    first = now = float(residual.square().sum())
    for _ in range(ITERATIONS):
        if now <= TOLERANCE**2 * first:
            break
        product = matrix.transposed_times(matrix.times(direction)) + strength * direction
        step = now / float((direction * product).sum())
        weights, residual = weights + step * direction, residual - step * product
        before, now = now, float(residual.square().sum())
        direction = residual + now / before * direction
    return weights

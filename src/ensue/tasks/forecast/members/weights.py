"""How much each member of a mixed forecast counts, by its errors at earlier origins.

Of few windows all that are not surely worse count alike: weights that so few errors choose do
worse on later steps. Else they are those of the least squared error, not negative, and drawn to
what the errors of each alone say, the more so the fewer blocks of windows there are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEW_BLOCKS = 20  # of windows
SHARPNESS = 2.0  # of the weights that errors alone give, times √blocks
SHARPEST = 12.0
PULL = 2.0  # to the weights that errors alone give


def weights_of(errors: Array, scores: Array, blocks: int, targets: int) -> Array:
    """errors (numbers, members); scores: the mean error of each; blocks: of windows that do not
    overlap."""
    if blocks <= FEW_BLOCKS:
        return np.full(len(scores), 1 / len(scores))
    return simplex_weights(errors, scores, blocks * targets)


def simplex_weights(errors: Array, scores: Array, blocks: int) -> Array:
    """w ≥ 0 with sum 1 of the least w·Q·w + τ·q̄·|w − p|², Q the mean products of errors (numbers,
    members), p what the scores alone give, τ = 2/√blocks. Those below a twentieth are left out."""
    scores = scores + 1e-9 * scores.max() + 1e-12
    prior = (scores.min() / scores) ** min(SHARPNESS * blocks**0.5, SHARPEST)
    prior /= prior.sum()
    products = errors.T @ errors / max(len(errors), 1)
    pull = PULL * products.diagonal().min() / max(blocks, 1) ** 0.5
    weights = prior.copy()
    rate = 0.5 / (np.linalg.norm(products, 2) + pull + 1e-300)
    for _ in range(2000):
        slope = products @ weights + pull * (weights - prior)
        weights = _projected(weights - rate * slope)
    weights[weights < 0.05] = 0.0
    return np.asarray(weights / weights.sum())


def _projected(w: Array) -> Array:
    """The nearest point of the simplex."""
    order = np.sort(w)[::-1]
    above = (np.cumsum(order) - 1) / np.arange(1, len(w) + 1)
    shift = above[np.flatnonzero(order > above)[-1]]
    return np.asarray(np.maximum(w - shift, 0.0))

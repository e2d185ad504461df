"""How much of the targets a linear readout explains, on rows that it did not learn from.

Of ridge regression the error on each row of a fit without that row has a closed form: with the
hat matrix H = 1·1ᵀ/n + K·(K + strength·I)⁻¹, K the products of centred rows, it is
(y − H·y)_i / (1 − H_ii). One decomposition of K serves all strengths.
"""

from __future__ import annotations

import torch
from torch import Tensor

STRENGTHS = tuple(10.0 ** (k / 2) for k in range(-6, 5))  # as shares of the mean of K's diagonal
LEAST = 1e-9  # of what is divided by


@torch.no_grad()
def explained(products: Tensor, targets: Tensor) -> float:
    """The share of the variance of targets (n, k) that is explained, at the best strength: 1 − the
    squared errors of the fits without each row / those of the mean of the other rows. products
    (n, n): of the rows' features with each other."""
    n = len(products)
    k = products.double()
    k = k - k.mean(0) - k.mean(1, keepdim=True) + k.mean()
    y = targets.double() - targets.double().mean(0)
    usual = float((y / (1 - 1 / n)).square().sum())
    values, vectors = torch.linalg.eigh(k)
    values, turned = values.clamp(min=0), vectors.T @ y
    size = float(values.mean()) or 1.0
    errors = []
    for strength in STRENGTHS:
        kept = values / (values + strength * size)
        diagonal = 1 / n + (vectors.square() * kept).sum(1)
        wrong = y - vectors @ (kept[:, None] * turned)
        left_out = wrong / (1 - diagonal).clamp(min=LEAST)[:, None]
        errors.append(float(left_out.square().sum()))
    return 1 - min(errors) / max(usual, LEAST)

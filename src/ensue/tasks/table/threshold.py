"""From which probability on the rarer of two classes is answered."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.metrics.classes import class_counts, macro_f1
from ensue.tasks.baselines.regression import Regression

FEWEST = 8  # rows of the rarer class, without which nothing is fitted
ENOUGH = 20  # rows of the rarer class in the validation part, from which it alone decides
FOLDS = 5
TRIED = np.arange(2, 51) / 100
WORTH = 0.01  # macro-F1 that leaving 0.5 must bring


def fitted_threshold(p: NDArray[np.float64], gold: NDArray[np.int64], rare: int) -> float | None:
    """Of the highest macro-F1 on rows that were not learned from, each threshold counted with its
    neighbours; None where too few rows are of that class, or nothing is won. p (rows, 2)."""
    if p.shape[1] != 2 or (gold == rare).sum() < FEWEST:
        return None

    def score(threshold: float) -> float:
        guess = np.where(p[:, rare] >= threshold, rare, 1 - rare)
        return float(macro_f1(class_counts(gold, guess, 2)))

    scores = np.array([score(threshold) for threshold in TRIED])
    smooth = np.convolve(np.pad(scores, 2, mode="edge"), np.ones(5) / 5, "valid")
    best = int(np.argmax(smooth))
    return float(TRIED[best]) if smooth[best] > score(0.5) + WORTH else None


def cross_fitted_threshold(x: Tensor, y: Tensor, rare: int, ridge: float) -> float | None:
    """Of a linear model's probabilities for training rows, each from the folds it is not in. The
    validation part of a small table has a handful of rows of the rarer class, which say next to
    nothing of a threshold; the training part has eight times as many. x (rows, n), y (rows,)."""
    if (y == rare).sum() < FEWEST:
        return None
    folds = torch.empty_like(y)
    for label in range(2):
        own = y == label
        folds[own] = torch.arange(int(own.sum())) % FOLDS  # each class in equal shares
    p = torch.zeros(len(y), 2, dtype=torch.float64)
    for fold in range(FOLDS):
        held = folds == fold
        linear = Regression(x.shape[1], 2, "softmax").double()
        p[held] = linear.solve(x[~held], y[~held], ridge).answers(x[held]).detach()
    return fitted_threshold(p.numpy(), y.numpy(), rare)

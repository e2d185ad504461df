"""From which probability on the rarer of two classes is answered."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ensue.metrics.classes import class_counts, macro_f1

FEWEST = 8  # rows of the rarer class, without which nothing is fitted
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

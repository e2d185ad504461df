"""Rows that an estimator holds out of its training data, for early stopping."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence, Set
from itertools import chain

import numpy as np
from numpy.typing import NDArray

LEAST_HELD = 5  # fewer rows say too little to stop by, and are learned from

RowNumbers = NDArray[np.int64]
RowLabels = Sequence[Set[Hashable]]  # of each row: its class, the labels of its steps, or none


def hold_out(labels: RowLabels, fraction: float, seed: int) -> tuple[RowNumbers, RowNumbers]:
    """The rows to learn from, and a fraction of all rows to stop by: the same share of each
    class, and never the last row with a label. None are held out where they would be fewer than
    LEAST_HELD."""
    everything, nothing = np.arange(len(labels)), np.zeros(0, np.int64)
    wanted, held = round(fraction * len(labels)), list[int]()
    left = Counter(chain.from_iterable(labels))
    for row in _in_equal_shares(labels, seed):
        if len(held) == wanted:
            break
        if all(left[label] > 1 for label in labels[row]):
            held.append(int(row))
            left.subtract(labels[row])
    if len(held) < LEAST_HELD:
        return everything, nothing
    return np.setdiff1d(everything, held), np.sort(held)


def _in_equal_shares(labels: RowLabels, seed: int) -> RowNumbers:
    """The rows in a random order, each beginning of which has the same share of every class."""
    order = np.random.RandomState(seed).permutation(len(labels))
    classes = [next(iter(own)) if len(own) == 1 else None for own in labels]
    total, seen = Counter(classes), Counter[Hashable]()
    shares = []
    for row in order:
        own = classes[row]
        shares.append((seen[own] + 0.5) / total[own])
        seen[own] += 1
    return np.asarray(order[np.argsort(shares, kind="stable")], np.int64)

"""Draws that are a function of seed and step, so that no row's depend on another's."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WORD = 2**64
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: counts in it differ in all bits
ROWS = 0x52_4F_57_53  # keeps the seeds of rows apart from the draws of a seed


def seeds(seed: int, rows: int) -> list[int]:
    """A seed for each row; the first ones are the same however many there are.

    >>> seeds(1, 3)[:2] == seeds(1, 2)
    True
    """
    counts = np.arange(1, rows + 1, dtype=np.uint64)
    start = _mixed(np.array([(seed ^ ROWS) % WORD], dtype=np.uint64))
    return [int(one) for one in _mixed(start + counts * GOLDEN)]


def uniform(own: NDArray[np.uint64], number: int) -> NDArray[np.float64]:
    """(rows,) in [0, 1): the draw of each seed at step `number`, with 53 bits."""
    bits = _mixed(_mixed(own) + np.full(1, number + 1, dtype=np.uint64) * GOLDEN)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: every bit of the result depends on all bits given."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))

"""Random numbers by place: row k's are the same whichever rows are drawn beside it."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Draws = NDArray[np.uint64]

# the constants of SplitMix64 (Steele, Lea and Flood, 2014)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mixed(z: Draws) -> Draws:
    """Each number scattered over all 64 bits, one to one; overwrites z."""
    z ^= z >> np.uint64(30)
    z *= _FIRST
    z ^= z >> np.uint64(27)
    z *= _SECOND
    z ^= z >> np.uint64(31)
    return z


def key_of(*words: str | int) -> int:
    """One 64-bit key of several words."""
    return int.from_bytes(blake2b(repr(words).encode(), digest_size=8).digest(), "big")


def draws(key: int, rows: NDArray[np.int64], columns: int) -> Draws:
    """(rows, columns) of random 64-bit numbers, each a function of key, row and column."""
    start = mixed(rows.astype(np.uint64) * _STEP + np.uint64(key))
    return mixed(start[:, None] + np.arange(1, columns + 1, dtype=np.uint64) * _STEP)


def below(drawn: Draws, limit: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """Whole numbers 0 … limit − 1, each equally likely (limit < 2³¹)."""
    return ((drawn >> np.uint64(33)).astype(np.int64) * limit) >> 31


def uniform(drawn: Draws) -> NDArray[np.float64]:
    """Numbers in [0, 1)."""
    return (drawn >> np.uint64(11)).astype(np.float64) * 2.0**-53

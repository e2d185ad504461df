"""Generated tasks, and the split of their rows into parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.errors import DataError, OptionError, unknown

Draws = NDArray[np.uint64]

# the constants of SplitMix64 (Steele, Lea and Flood, 2014)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mixed(z: Draws) -> Draws:
    """Mixes each number over all 64 bits, one to one; overwrites z."""
    z ^= z >> np.uint64(30)
    z *= _FIRST
    z ^= z >> np.uint64(27)
    z *= _SECOND
    z ^= z >> np.uint64(31)
    return z


def key_of(*words: str | int) -> int:
    """A 64-bit key from several words."""
    return int.from_bytes(blake2b(repr(words).encode(), digest_size=8).digest(), "big")


def draws(key: int, rows: NDArray[np.int64], columns: int) -> Draws:
    """(rows, columns) of random 64-bit numbers, each a function of key, row and column."""
    start = mixed(rows.astype(np.uint64) * _STEP + np.uint64(key))
    return mixed(start[:, None] + np.arange(1, columns + 1, dtype=np.uint64) * _STEP)


def below(drawn: Draws, limit: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """Integers 0 … limit − 1, equally likely (limit < 2³¹)."""
    return ((drawn >> np.uint64(33)).astype(np.int64) * limit) >> 31


def uniform(drawn: Draws) -> NDArray[np.float64]:
    """Numbers in [0, 1)."""
    return (drawn >> np.uint64(11)).astype(np.float64) * 2.0**-53


# quarters of all possible rows, by a hash of the row: no row is in two parts
PARTS = {"train": (0, 1), "validation": (2,), "test": (3,)}
MOST_ATTEMPTS = 500


class Drawn(NamedTuple):
    """Drawn rows as numbers."""

    symbols: NDArray[np.int64]  # (rows, time), 0 beyond a row's end
    lengths: NDArray[np.int64]  # (rows)


class Answers(NamedTuple):
    targets: NDArray[Any]  # (rows), or (rows, time) for labelling
    scored: NDArray[np.bool_]  # (rows, time)


class TaskBatch(NamedTuple):
    """x (time, batch, features) float32, lengths (batch), targets (batch) — or (time, batch)
    for labelling — and mask (time, batch), True at the steps that are scored."""

    x: NDArray[np.float32]
    lengths: NDArray[np.int64]
    targets: NDArray[Any]
    mask: NDArray[np.bool_]


@dataclass(frozen=True)
class BuiltInTask:
    """A task with an unlimited number of rows.

    kind: "regression" (one number at the last step; the score is the mean squared error),
    "classification" (one class at the last step; accuracy) or "labelling" (a class at every step of
    the mask; accuracy). chance: the best score without memory."""

    name: str
    about: str
    kind: str
    features: int
    outputs: int
    chance: float
    enough: float  # the score from which the task counts as solved
    columns: int  # random numbers for each row
    make: Callable[[Draws], Drawn]
    answer: Callable[[Drawn], Answers]
    encode: Callable[[NDArray[np.int64]], NDArray[np.float32]]  # (…) → (…, features), 0 → zeros

    def solved(self, score: float) -> bool:
        return score <= self.enough if self.kind == "regression" else score >= self.enough

    def batch(self, seed: int, first: int, count: int, part: str = "train") -> TaskBatch:
        """Rows first … first + count − 1 of a part. Each is a pure function of the seed, the part
        and its number. No row of one part is in another, for any seeds."""
        if part not in PARTS:
            raise unknown("part", part, PARTS)
        if first < 0 or count < 1:
            raise OptionError(f"expected first ≥ 0 and count ≥ 1, got {first} and {count}")
        drawn = self._drawn(seed, np.arange(first, first + count), part)
        targets, scored = self.answer(drawn)
        time = int(drawn.lengths.max())
        if self.kind == "labelling":
            targets = targets[:, :time].T
        return TaskBatch(
            self.encode(np.ascontiguousarray(drawn.symbols[:, :time].T)),
            drawn.lengths,
            np.ascontiguousarray(targets),
            np.ascontiguousarray(scored[:, :time].T),
        )

    def _drawn(self, seed: int, rows: NDArray[np.int64], part: str) -> Drawn:
        """Rows of the part; rows of other parts are drawn again."""
        joined: Drawn | None = None
        waiting = np.arange(len(rows))
        for attempt in range(MOST_ATTEMPTS):
            key = key_of(self.name, seed, part, attempt)
            drawn = self.make(draws(key, rows[waiting], self.columns))
            if joined is None:
                joined = drawn
            fits = np.isin(_quarter(drawn), PARTS[part])
            joined.symbols[waiting[fits]] = drawn.symbols[fits]
            joined.lengths[waiting[fits]] = drawn.lengths[fits]
            waiting = waiting[~fits]
            if not len(waiting):
                return joined
        raise DataError(
            f"{self.name}: there are too few different rows to share them out between "
            f"{', '.join(PARTS)}: use more steps"
        )


def _quarter(drawn: Drawn) -> NDArray[np.int64]:
    """0 … 3, a hash of each row's symbols."""
    weights = draws(0, np.zeros(1, np.int64), drawn.symbols.shape[1] + 1)[0] | np.uint64(1)
    total = drawn.symbols.astype(np.uint64) @ weights[1:]
    return (mixed(total + drawn.lengths.astype(np.uint64) * weights[0]) >> np.uint64(62)).astype(
        np.int64
    )

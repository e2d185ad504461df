"""What a generated task is, and how its rows are shared out between the parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.data.tasks.draws import Draws, draws, key_of, mixed
from ensue.errors import DataError, OptionError, unknown

# quarters of all possible rows, by a hash of the row: no row is in two parts
PARTS = {"train": (0, 1), "validation": (2,), "test": (3,)}
MOST_ATTEMPTS = 500


class Drawn(NamedTuple):
    """Rows as numbers."""

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
    """A task with as many rows as one wants.

    kind: "regression" (one number at the last step; the score is the mean squared error),
    "classification" (one class at the last step; accuracy) or "labelling" (a class at every
    step of the mask; accuracy). chance: the best score of an answer that remembers nothing."""

    name: str
    about: str
    kind: str
    features: int
    outputs: int
    chance: float
    enough: float  # the score from which on the task is solved
    columns: int  # random numbers for each row
    make: Callable[[Draws], Drawn]
    answer: Callable[[Drawn], Answers]
    encode: Callable[[NDArray[np.int64]], NDArray[np.float32]]  # (…) → (…, features), 0 → zeros

    def solved(self, score: float) -> bool:
        return score <= self.enough if self.kind == "regression" else score >= self.enough

    def batch(self, seed: int, first: int, count: int, part: str = "train") -> TaskBatch:
        """Rows first … first + count − 1 of a part. Each is a pure function of the seed, the
        part and its number; no row of one part is in another, whatever the seeds."""
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
        """Rows that belong to the part: those that do not are drawn again."""
        found: Drawn | None = None
        waiting = np.arange(len(rows))
        for attempt in range(MOST_ATTEMPTS):
            key = key_of(self.name, seed, part, attempt)
            drawn = self.make(draws(key, rows[waiting], self.columns))
            if found is None:
                found = drawn
            fits = np.isin(_quarter(drawn), PARTS[part])
            found.symbols[waiting[fits]] = drawn.symbols[fits]
            found.lengths[waiting[fits]] = drawn.lengths[fits]
            waiting = waiting[~fits]
            if not len(waiting):
                return found
        raise DataError(
            f"{self.name}: there are too few different rows to share them out between "
            f"{', '.join(PARTS)}: use more steps"
        )


def _quarter(drawn: Drawn) -> NDArray[np.int64]:
    """0 … 3, a hash of each row's own symbols."""
    weights = draws(0, np.zeros(1, np.int64), drawn.symbols.shape[1] + 1)[0] | np.uint64(1)
    total = drawn.symbols.astype(np.uint64) @ weights[1:]
    return (mixed(total + drawn.lengths.astype(np.uint64) * weights[0]) >> np.uint64(62)).astype(
        np.int64
    )

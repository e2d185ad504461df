"""Whether probabilities and intervals keep their word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BINS = 10


class Bin(NamedTuple):
    """Answers of like confidence: how many, what they claimed on average, how many were right."""

    low: float
    high: float
    rows: int
    confidence: float
    accuracy: float


def reliability(
    right: NDArray[Any], confidence: NDArray[np.float64], bins: int = BINS
) -> list[Bin]:
    """right, confidence (answers,): bins of equal width, a bin's upper end its own; empty ones
    left out. Of probabilities that keep their word, accuracy = confidence in every bin."""
    sure = np.asarray(confidence, np.float64)
    which = np.clip(np.ceil(sure * bins).astype(np.int64) - 1, 0, bins - 1)
    found = []
    for k in range(bins):
        own = which == k
        if own.any():
            claimed, met = float(sure[own].mean()), float(np.asarray(right, float)[own].mean())
            found.append(Bin(k / bins, (k + 1) / bins, int(own.sum()), claimed, met))
    return found


def reliability_lines(found: Sequence[Bin]) -> list[str]:
    """As a table for a terminal."""
    lines = ["reliability      rows  confidence  accuracy"]
    for own in found:
        numbers = f"{own.rows:10,}{own.confidence:12.4f}{own.accuracy:10.4f}"
        lines.append(f"  {own.low:.1f} … {own.high:.1f}{numbers}")
    return lines


class Held(NamedTuple):
    """Intervals that claim to hold a share of the values: how many they do hold, how wide they
    are on average."""

    claimed: float
    held: float
    width: float


def held(
    values: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64], claimed: float
) -> Held:
    """values, low, high: (rows,)."""
    inside = (low <= values) & (values <= high)
    return Held(claimed, float(inside.mean()), float((high - low).mean()))


def held_lines(found: Sequence[Held]) -> list[str]:
    return [
        "intervals  should hold    do hold  mean width",
        *(
            f"  {'':9}{100 * own.claimed:9.0f} %{100 * own.held:9.1f} %{own.width:12.4g}"
            for own in found
        ),
    ]

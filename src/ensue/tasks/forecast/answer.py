"""The answers of a forecaster: each step ahead with the bounds of its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Expected:
    """Of one target at one step: the expected value, and the bounds of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ForecastStep:
    """One step ahead: its time ("+1", "+2", … where the series has none) and each target."""

    time: str
    expected: Mapping[str, Expected]

    def as_line(self, value: object = None) -> str:
        """The time, and value, low and high of each target, with tabs between."""
        every = ((target.value, target.low, target.high) for target in self.expected.values())
        cells = [f"{number:.6g}" for numbers in every for number in numbers]
        return "\t".join([self.time, *cells])

    def as_row(self) -> dict[str, str | float]:
        """time; of each target its value, under its own name, and …_low and …_high."""
        found: dict[str, str | float] = {"time": self.time}
        for name, own in self.expected.items():
            found |= {name: own.value, f"{name}_low": own.low, f"{name}_high": own.high}
        return found


def answered(
    times: Sequence[str], targets: Sequence[str], point: Array, low: Array, high: Array
) -> list[ForecastStep]:
    """Of arrays (horizon, targets)."""
    bounds = np.stack([point, low, high], -1).tolist()
    return [
        ForecastStep(time, {name: Expected(*n) for name, n in zip(targets, step, strict=True)})
        for time, step in zip(times, bounds, strict=True)
    ]

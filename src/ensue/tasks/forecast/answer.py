"""The answers of a forecaster: each step ahead with the bounds of its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ensue.drawing.html import between
from ensue.tasks.answers import Answer, Answers, Columns, tabbed

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Expected:
    """Of one target at one step: the expected value, and the bounds of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ForecastStep(Answer):
    """One step ahead: its time ("+1", "+2", … where the series has none) and each target.

    >>> steps = [0.0, 1.0, 2.0, 3.0] * 12
    >>> model = Forecaster(model={"family": "linear", "horizon": 2, "look_back": 4})
    >>> step = model.fit({"sales": steps}, target="sales").predict({"sales": steps})[0]
    >>> step.time, round(step.expected["sales"].value)
    ('+1', 0)
    """

    time: str
    expected: Mapping[str, Expected]

    def as_line(self, value: object = None) -> str:
        """The time, and value, low and high of each target, with tabs between."""
        every = ((target.value, target.low, target.high) for target in self.expected.values())
        cells = [f"{number:.6g}" for numbers in every for number in numbers]
        return tabbed(self.time, *cells)

    def as_row(self) -> dict[str, str | float]:
        """time; of each target its value, under its own name, and …_low and …_high."""
        found: dict[str, str | float] = {"time": self.time}
        for name, own in self.expected.items():
            found |= {name: own.value, f"{name}_low": own.low, f"{name}_high": own.high}
        return found

    @classmethod
    def as_columns(cls, answers: Sequence[Self]) -> Columns:
        columns: dict[str, Sequence[object]] = {"time": [step.time for step in answers]}
        for name in answers[0].expected:
            every = [step.expected[name] for step in answers]
            columns[name] = [own.value for own in every]
            columns[f"{name}, interval"] = [between(own.low, own.high) for own in every]
        return columns


class Before(NamedTuple):
    """The end of a series: its times, and the values of each target."""

    times: Sequence[str] = ()
    values: Mapping[str, Sequence[float]] = {}


class SeriesForecast(Answers[ForecastStep]):
    """The steps ahead of one series; a notebook draws them after its end."""

    def __init__(self, steps: Sequence[ForecastStep], before: Before) -> None:
        super().__init__(steps)
        self._first, self._before = steps[0], before

    def _repr_html_(self) -> str:
        from ensue.tasks.forecast.page import forecast_html

        whole = bool(self) and self[0] is self._first
        return forecast_html(self, self._before if whole else Before())


def answered(
    times: Sequence[str], targets: Sequence[str], point: Array, low: Array, high: Array
) -> list[ForecastStep]:
    """Of arrays (horizon, targets)."""
    bounds = np.stack([point, low, high], -1).tolist()
    return [
        ForecastStep(time, {name: Expected(*n) for name, n in zip(targets, step, strict=True)})
        for time, step in zip(times, bounds, strict=True)
    ]

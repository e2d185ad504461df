"""The answers of a forecaster: each step ahead with the bounds of its numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ensue.drawing.document import Cell, Document, Figure, as_block
from ensue.drawing.html import Band, band_chart
from ensue.drawing.layout import between
from ensue.tasks.answers import Answer, Answers, Columns, columns_of, columns_table, tabbed

Array = NDArray[np.float64]
MOST_CHARTS = 6


@dataclass(frozen=True)
class Expected:
    """One target at one step: the expected value, and the bounds of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ExpectedQuantiles(Expected):
    """`Expected` with the requested quantiles by level: "0.1"."""

    quantiles: Mapping[str, float]


@dataclass(frozen=True)
class ForecastStep(Answer):
    """One step ahead: its time ("+1", "+2", … if the series has no times) and each target.

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
        every = (_numbers(target).values() for target in self.expected.values())
        cells = [f"{number:.6g}" for numbers in every for number in numbers]
        return tabbed(*self._key().values(), self.time, *cells)

    def _key(self) -> Mapping[str, str]:
        """The series of a panel that it belongs to."""
        return {}

    def as_row(self) -> dict[str, str | float]:
        """The step as a row: the ids of a panel, the time, and for each target its value under its
        name, …_low, …_high and the quantiles."""
        row: dict[str, str | float] = {**self._key(), "time": self.time}
        for name, value in self.expected.items():
            row |= {f"{name}{key}": number for key, number in _numbers(value).items()}
        return row

    @classmethod
    def as_columns(cls, answers: Sequence[Self]) -> Columns:
        columns: dict[str, Sequence[Cell]] = {}
        for name in answers[0]._key():
            columns[name] = [step._key()[name] for step in answers]
        columns["time"] = [step.time for step in answers]
        for name in answers[0].expected:
            every = [step.expected[name] for step in answers]
            columns[name] = [value.value for value in every]
            columns[f"{name}, interval"] = [between(value.low, value.high) for value in every]
        return columns


@dataclass(frozen=True)
class PanelStep(ForecastStep):
    """One step ahead of one series of a panel, named by the columns of its ids."""

    ids: Mapping[str, str]

    def _key(self) -> Mapping[str, str]:
        return self.ids


def _numbers(expected: Expected) -> dict[str, float]:
    """The numbers of a target, by the suffix of their columns."""
    numbers = {"": expected.value, "_low": expected.low, "_high": expected.high}
    if isinstance(expected, ExpectedQuantiles):
        numbers |= {f"_q{level}": value for level, value in expected.quantiles.items()}
    return numbers


class Before(NamedTuple):
    """The end of a series: its times, and the values of each target."""

    times: Sequence[str] = ()
    values: Mapping[str, Sequence[float]] = {}


class SeriesForecast(Answers[ForecastStep]):
    """The steps ahead of one series; a notebook draws them after its end."""

    def __init__(self, steps: Sequence[ForecastStep], before: Before) -> None:
        super().__init__(steps)
        self._first, self._before = steps[0], before

    def document(self) -> Document:
        """A small chart of each target, and the numbers."""
        many = "1 step ahead" if len(self) == 1 else f"{len(self):,} steps ahead"
        if not self:
            return Document(many, "", [])
        before = self._before if self[0] is self._first else Before()
        targets = list(self[0].expected)
        times = [*before.times, *(step.time for step in self)]
        charts = [
            Figure(
                _chart(times, before.values.get(name, ()), [step.expected[name] for step in self])
            )
            for name in targets[:MOST_CHARTS]
        ]
        return Document(
            f"{', '.join(targets)}: {many}", "", [*charts, columns_table(columns_of(self))]
        )

    def _repr_html_(self) -> str:
        return as_block(self.document())


def _chart(times: Sequence[str], before: Sequence[float], ahead: Sequence[Expected]) -> str:
    """The chart of a target: known values as a line, continued by expected values inside their
    interval."""
    known = [Expected(before[-1], before[-1], before[-1])] if before else []
    path = [*known, *ahead]
    band = Band(*zip(*((step.value, step.low, step.high) for step in path), strict=True))
    finite = all(map(math.isfinite, (*before, *band.value, *band.low, *band.high)))
    return band_chart(times, before, band) if finite else ""


def answered(
    times: Sequence[str],
    targets: Sequence[str],
    bounds: Array,
    ids: Mapping[str, str],
    levels: Sequence[float] = (),
) -> list[ForecastStep]:
    """The steps ahead as answers. bounds (horizon, targets, 3 and levels): value, low, high, and
    the quantiles; ids: the ids of the series, {} for a single series."""
    names = [f"{level:g}" for level in levels]

    def expected(numbers: Sequence[float]) -> Expected:
        value, low, high, *more = numbers
        if not names:
            return Expected(value, low, high)
        return ExpectedQuantiles(value, low, high, dict(zip(names, more, strict=True)))

    steps: list[ForecastStep] = []
    for time, step in zip(times, bounds.tolist(), strict=True):
        by_name = {name: expected(value) for name, value in zip(targets, step, strict=True)}
        steps.append(PanelStep(time, by_name, ids) if ids else ForecastStep(time, by_name))
    return steps

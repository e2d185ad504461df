"""A forecast as a picture: what came before, what is expected, and between which bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ensue.drawing.svg import FAINT, INK, QUIET, Drawing, Point, number, text_width

Array = NDArray[np.float64]

WIDE, HIGH, MARGIN = 1060.0, 460.0, 36.0
LEFT, RIGHT, TOP, BOTTOM = MARGIN + 56, WIDE - MARGIN, 118.0, HIGH - 56
RULE, NOW = "#e2e8f0", "#cbd5e1"
MODEL, BAND, BASELINE, TRUTH = "#0072b2", "#d6e8f5", "#d55e00", "#1e293b"
MOST_TICKS = 7
STEPS = (1, 2, 5, 10)


@dataclass(frozen=True)
class View:
    """One target: before (steps,); point, low, high, baseline (horizon,); truth too, if it is
    known. times: of all of them, as words."""

    title: str
    about: str
    times: Sequence[str]
    before: Array
    point: Array
    low: Array
    high: Array
    baseline: Array
    baseline_name: str
    truth: Array | None = None


class Chart(Drawing):
    """A drawing with lines and areas."""

    def line(self, points: Sequence[Point], colour: str, thick: float, dashes: str = "") -> None:
        path = "L".join(f"{number(x)} {number(y)}" for x, y in points)
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self._body.append(
            f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="{number(thick)}" '
            f'stroke-linejoin="round" stroke-linecap="round"{dashed}/>'
        )

    def area(self, points: Sequence[Point], colour: str) -> None:
        path = "L".join(f"{number(x)} {number(y)}" for x, y in points)
        self._body.append(f'<path d="M{path}Z" fill="{colour}"/>')

    def dot(self, at: Point, colour: str) -> None:
        self._body.append(
            f'<circle cx="{number(at[0])}" cy="{number(at[1])}" r="2.6" fill="{colour}"/>'
        )


def ticks_of(low: float, high: float, most: int = MOST_TICKS) -> list[float]:
    """Round numbers from low to high.

    >>> ticks_of(97, 640)
    [100, 200, 300, 400, 500, 600]
    """
    rough = max(high - low, 1e-12) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in STEPS if size * power >= rough)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [k * step for k in range(first, last + 1)]


def draw(view: View) -> str:
    """The picture as SVG."""
    return _Picture(view).svg()


class _Picture:
    def __init__(self, view: View) -> None:
        self.view, self.chart = view, Chart()
        lines = [view.before, view.point, view.low, view.high, view.baseline]
        every = np.concatenate([*lines, *([] if view.truth is None else [view.truth])])
        low, high = float(every.min()), float(every.max())
        room = 0.06 * (high - low) or 1.0
        self.low, self.high = low - room, high + room
        self.count = len(view.before) + len(view.point)

    def x(self, step: float) -> float:
        return LEFT + (RIGHT - LEFT) * step / max(self.count - 1, 1)

    def y(self, value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (value - self.low) / (self.high - self.low)

    def svg(self) -> str:
        view, chart = self.view, self.chart
        chart.words((MARGIN, 38), view.title, 22, INK, "start", weight=600)
        chart.words((MARGIN, 64), view.about, 13, QUIET, "start")
        self._axes()
        now = len(view.before)
        # each line ahead begins at the last step that is known
        begun = float(view.before[-1])
        upper = self._points(now - 1, [begun, *view.high])
        lower = self._points(now - 1, [begun, *view.low])
        chart.area([*upper, *reversed(lower)], BAND)
        chart.line([(self.x(now - 1), TOP), (self.x(now - 1), BOTTOM)], NOW, 1.4)
        chart.line(self._points(now - 1, [begun, *view.baseline]), BASELINE, 1.6, "5 4")
        chart.line(self._points(0, view.before), TRUTH, 1.8)
        if view.truth is not None:
            truth = self._points(now - 1, [begun, *view.truth])
            chart.line(truth, TRUTH, 1.8, "1.5 4")
            for at in truth[1:]:
                chart.dot(at, TRUTH)
        chart.line(self._points(now - 1, [begun, *view.point]), MODEL, 2.4)
        self._legend()
        return chart.svg(WIDE, HIGH, view.title)

    def _points(self, first: int, values: Sequence[float] | Array) -> list[Point]:
        return [(self.x(first + k), self.y(float(value))) for k, value in enumerate(values)]

    def _axes(self) -> None:
        for tick in ticks_of(self.low, self.high):
            y = self.y(tick)
            self.chart.line([(LEFT, y), (RIGHT, y)], RULE, 1)
            self.chart.words((LEFT - 9, y), f"{tick:,.6g}", 11, QUIET, "end")
        self.chart.line([(LEFT, BOTTOM), (RIGHT, BOTTOM)], FAINT, 1)
        words = max(text_width(time, 11) for time in self.view.times) + 24
        every = max(1, math.ceil(self.count * words / (RIGHT - LEFT)))
        for step in range(0, self.count, every):
            x = self.x(step)
            self.chart.line([(x, BOTTOM), (x, BOTTOM + 5)], FAINT, 1)
            self.chart.words((x, BOTTOM + 18), self.view.times[step], 11, QUIET)

    def _legend(self) -> None:
        entries = [("forecast", MODEL, ""), (self.view.baseline_name, BASELINE, "5 4")]
        entries += [("what came", TRUTH, "1.5 4")] if self.view.truth is not None else []
        x, y = LEFT, 92.0
        for words, colour, dashes in entries:
            self.chart.line([(x, y), (x + 26, y)], colour, 2.4 if not dashes else 1.8, dashes)
            self.chart.words((x + 34, y), words, 12.5, INK, "start")
            x += 34 + text_width(words, 12.5) + 24
        self.chart.area([(x, y - 6), (x + 26, y - 6), (x + 26, y + 6), (x, y + 6)], BAND)
        self.chart.words((x + 34, y), "interval", 12.5, INK, "start")

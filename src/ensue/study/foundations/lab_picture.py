"""The learning lab as one picture: a panel for each experiment."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ensue.drawing.svg import FAINT, INK, QUIET, Point, text_width
from ensue.study.foundations.lab import START, VALLEY, Lab
from ensue.study.memory.picture import COLOURS, RULE, Chart

WIDE, MARGIN, GAP = 1120.0, 40.0, 44.0
PANEL, HIGH = (WIDE - 2 * MARGIN - GAP) / 2, 216.0
HEAD, FOOT = 62.0, 44.0  # above and below a panel's field
BLUE, RED, GREEN, VIOLET = COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[3]


@dataclass
class Field:
    """Where numbers are drawn: its corner and size, what its axes begin and end with."""

    chart: Chart
    left: float
    top: float
    wide: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    def at(self, x: float, y: float) -> Point:
        (low, high), (bottom, top) = self.x_range, self.y_range
        across = (x - low) / (high - low)
        up = (min(max(y, bottom), top) - bottom) / (top - bottom)
        return self.left + across * self.wide, self.top + HIGH * (1 - up)

    def grid(self, xs: Sequence[float], ys: Sequence[float]) -> None:
        for y in ys:
            self.chart.line([self.at(self.x_range[0], y), self.at(self.x_range[1], y)], RULE, 1)
            at = self.at(self.x_range[0], y)
            self.chart.words((at[0] - 8, at[1]), f"{y:g}".replace("-", "−"), 11, FAINT, "end")
        for x in xs:
            at = self.at(x, self.y_range[0])
            self.chart.words((at[0], at[1] + 15), f"{x:g}".replace("-", "−"), 11, FAINT)

    def curve(
        self, xs: Iterable[float], ys: Iterable[float], colour: str, thick: float, dashes: str = ""
    ) -> None:
        points = [self.at(x, y) for x, y in zip(xs, ys, strict=True)]
        self.chart.line(points, colour, thick, dashes)

    def axis(self, text: str) -> None:
        at = (self.left + self.wide, self.top + HIGH + 33)
        self.chart.words(at, text, 11.5, QUIET, "end")


def draw(lab: Lab) -> str:
    """The picture as SVG."""
    chart = Chart()
    chart.words((MARGIN, 42), "The learning lab", 24, INK, "start", weight=600)
    words = "f(x) = sin 10x + x, its minimum sought, its values guessed from samples"
    chart.words((MARGIN, 70), f"{words}; seed {lab.seed}", 13.5, QUIET, "start")
    rows = [96.0 + k * (HEAD + HIGH + FOOT + 14) for k in range(3)]
    left, right = MARGIN, MARGIN + PANEL + GAP
    _descent(chart, lab, left, rows[0], 2 * PANEL + GAP)
    _costs(chart, lab, left, rows[1])
    _families(chart, lab, right, rows[1])
    _networks(chart, lab, left, rows[2])
    _estimators(chart, lab, right, rows[2])
    return chart.svg(WIDE, rows[2] + HEAD + HIGH + FOOT + 20, "The learning lab")


def _title(
    chart: Chart, x: float, y: float, title: str, keys: Sequence[tuple[str, str]], note: str = ""
) -> None:
    """A title, and the colours of what is shown below it."""
    chart.words((x, y + 12), title, 16, INK, "start", weight=600)
    at = x
    for name, colour in keys:
        chart.line([(at, y + 37), (at + 16, y + 37)], colour, 3)
        chart.words((at + 22, y + 37), name, 12, INK, "start")
        at += 22 + text_width(name, 12) + 14
    chart.words((at, y + 37), note, 12, QUIET, "start")


def _descent(chart: Chart, lab: Lab, x: float, y: float, wide: float) -> None:
    keys = [(f"rate {own.rate:g}: {own.ending}", _colour(k)) for k, own in enumerate(lab.walks)]
    chart.words((x, y + 12), "Descent: how far is a step?", 16, INK, "start", weight=600)
    low, high = -2.2, 0.35
    field = Field(chart, x + 34, y + HEAD, wide - 330, (low, high), (-3.2, 1.2))
    field.grid([-2, -1.5, -1, -0.5, 0], [-3, -2, -1, 0, 1])
    grid = [low + (high - low) * k / 400 for k in range(401)]
    field.curve(grid, [math.sin(10 * v) + v for v in grid], FAINT, 2)
    for k, walk in enumerate(lab.walks):
        seen = [v for v in walk.places[:14] if low <= v <= high]
        heights = [math.sin(10 * v) + v for v in seen]
        field.curve(seen, heights, _colour(k), 1.1, "3 3")
        for v, height in zip(seen[1:], heights[1:], strict=True):
            chart.mark(field.at(v, height), k, _colour(k), 4.4)
    start, valley = (field.at(v, math.sin(10 * v) + v) for v in (START, VALLEY))
    chart.mark(start, 0, INK, 6)
    chart.words((start[0] + 12, start[1]), "start −0.6", 12, INK, "start", weight=600)
    chart.words((valley[0], valley[1] + 18), "minimum −0.7954", 12, INK)
    field.axis("x")
    at = x + wide - 268
    for k, (text, colour) in enumerate(keys):
        rate, _, ending = text.partition(": ")
        top = y + HEAD + 18 + 50 * k
        chart.mark((at, top), k, colour, 6)
        chart.words((at + 16, top), rate, 13, INK, "start", weight=600)
        chart.words((at + 16, top + 18), ending, 12, QUIET, "start")


def _colour(k: int) -> str:
    return COLOURS[k % len(COLOURS)]


def _costs(chart: Chart, lab: Lab, x: float, y: float) -> None:
    own = lab.costs
    keys = [("expected", BLUE), ("of ten noisy samples", RED)]
    _title(chart, x, y, "The cost one wants, and the cost one has", keys)
    most = max(*own.expected, *own.empirical)
    top = math.ceil(2 * most) / 2
    field = Field(chart, x + 34, y + HEAD, PANEL - 34, (0, 20), (0, top))
    field.grid([0, 5, 10, 15, 20], [top * k / 4 for k in range(5)])
    field.curve(own.thetas, own.expected, BLUE, 2.4)
    field.curve(own.thetas, own.empirical, RED, 2.4)
    for k, (which, colour) in enumerate((("expected", BLUE), ("empirical", RED))):
        costs = own.expected if which == "expected" else own.empirical
        chart.mark(field.at(own.best(which), min(costs)), k, colour, 5.5)
    field.axis("θ of the hypothesis sin θx + x")


def _families(chart: Chart, lab: Lab, x: float, y: float) -> None:
    own = lab.families
    winner = own.winner.name
    keys = [
        (f"{family.name} {family.validation:.3f}", _colour(k)) for k, family in enumerate(own.all)
    ]
    _title(chart, x, y, f"Validation chooses the {winner}", keys, "validation error")
    field = Field(chart, x + 34, y + HEAD, PANEL - 34, (-1, 1), (-2.2, 2.2))
    field.grid([-1, -0.5, 0, 0.5, 1], [-2, -1, 0, 1, 2])
    for k, family in enumerate(own.all):
        chosen = family.name == winner
        field.curve(own.grid, family.curve, _colour(k), 2.8 if chosen else 1.6)
    for at in zip(own.x, own.y, strict=True):
        chart.mark(field.at(*at), 0, INK, 3)
    field.axis("x; points are the training part")


def _networks(chart: Chart, lab: Lab, x: float, y: float) -> None:
    own = lab.networks
    keys = [("first layer random", RED), ("all layers tuned", BLUE)]
    _title(chart, x, y, "Why all layers are tuned", keys, "mean squared test error")
    top = math.ceil(10 * max(*own.random, *own.tuned)) / 10
    field = Field(chart, x + 34, y + HEAD, PANEL - 34, (0, len(own.units)), (0, top))
    field.grid([], [round(top * k / 5, 3) for k in range(6)])
    for k, units in enumerate(own.units):
        for error, colour, shift in ((own.random[k], RED, 0.2), (own.tuned[k], BLUE, 0.52)):
            corner = field.at(k + shift, error)
            bar = max(field.top + HIGH - corner[1], 1.0)
            chart.bar(corner[0], corner[1], 0.28 * field.wide / len(own.units), bar, colour)
            middle = corner[0] + 0.14 * field.wide / len(own.units)
            chart.words((middle, corner[1] - 9), f"{error:.2f}", 11, INK)
        at = field.at(k + 0.5, 0)
        chart.words((at[0], at[1] + 15), str(units), 11, FAINT)
    field.axis("units of the hidden layer")


def _estimators(chart: Chart, lab: Lab, x: float, y: float) -> None:
    own = lab.estimators
    note = "deviation of one draw"
    _title(chart, x, y, "Gradients through a coin", [("exact", INK)], f"marks: mean; bars: {note}")
    ends = [
        m + s * d
        for e in own.all
        for m, d in zip(e.mean, e.deviation, strict=True)
        for s in (-1, 1)
    ]
    low, high = math.floor(min(ends)), math.ceil(max(ends))
    field = Field(chart, x + 178, y + HEAD, PANEL - 178, (low, high), (0, len(own.all)))
    for tick in range(low, high + 1):
        top, bottom = field.at(tick, len(own.all)), field.at(tick, 0)
        chart.line([top, bottom], RULE, 1)
        if tick % 2 == 0:
            words = f"{tick}".replace("-", "−")
            chart.words((bottom[0], bottom[1] + 15), words, 11, FAINT)
    for k, estimator in enumerate(own.all):
        line = len(own.all) - k - 0.5
        name, _, way = estimator.name.partition(", ")
        at = field.at(low, line)
        chart.words((x, at[1] - (8 if way else 0)), name, 12.5, INK, "start", weight=600)
        chart.words((x, at[1] + 9), way, 11.5, QUIET, "start")
        for unit, exact in enumerate(own.exact):
            height = line + 0.25 - 0.25 * unit
            mean, deviation = estimator.mean[unit], estimator.deviation[unit]
            ends_of = [field.at(mean + side * deviation, height) for side in (-1, 1)]
            chart.line(ends_of, _colour(unit), 2)
            chart.mark(field.at(mean, height), unit, _colour(unit), 5)
            tick_at = field.at(exact, height)
            up, down = (tick_at[0], tick_at[1] - 6), (tick_at[0], tick_at[1] + 6)
            chart.line([up, down], INK, 2.4)
    field.axis("∂E[C]/∂z of three units")

"""A memory study as a picture: learning curves, a panel for each task; or bars of the reach.

Colours are those of Okabe and Ito, which colour-blind people can tell apart; each cell has a
mark of its own besides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ensue.drawing.svg import FAINT, INK, QUIET, Drawing, Point, number, text_width
from ensue.study.memory.study import MemoryReport, Trial
from ensue.study.memory.table import limit_text, reach_text, score_text

WIDE, MARGIN = 1060.0, 36.0
BETWEEN = 24.0  # two panels
AXIS, NAMES, HIGH = 56.0, 96.0, 300.0  # room left and right of a panel's curves; their height
LINE = 20.0  # height of a line of the legend
RULE, SOLVED = "#e2e8f0", "#15803d"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1e293b")
BAR, GAP = 18.0, 6.0
# corners, half turns, relative size: round, square, triangle, diamond, triangle, pentagon, …
MARKS = (
    (24, 0.0, 1.0),
    (4, 0.25, 1.2),
    (3, 0.0, 1.35),
    (4, 0.0, 1.2),
    (3, 1.0, 1.35),
    (5, 0.0, 1.1),
    (6, 0.0, 1.1),
)


class Chart(Drawing):
    """A drawing with lines, bars and marks."""

    def line(self, points: Sequence[Point], colour: str, thick: float, dashes: str = "") -> None:
        path = "L".join(f"{number(x)} {number(y)}" for x, y in points)
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self._body.append(
            f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="{number(thick)}" '
            f'stroke-linejoin="round" stroke-linecap="round"{dashed}/>'
        )

    def bar(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        self._body.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" '
            f'height="{number(height)}" rx="2.5" fill="{colour}"/>'
        )

    def mark(self, at: Point, kind: int, colour: str, size: float = 4.6) -> None:
        """A polygon around the point, with a white rim."""
        corners, turn, relative = MARKS[kind % len(MARKS)]
        turn, size = turn * math.pi, relative * size
        points = " ".join(
            f"{number(at[0] + size * math.sin(turn + 2 * math.pi * k / corners))},"
            f"{number(at[1] - size * math.cos(turn + 2 * math.pi * k / corners))}"
            for k in range(corners)
        )
        self._body.append(
            f'<polygon points="{points}" fill="{colour}" stroke="#ffffff" stroke-width="1"/>'
        )


def draw(report: MemoryReport) -> str:
    """The picture as SVG."""
    return _Reach(report).svg() if len(report.lengths) > 1 else _Curves(report).svg()


def _heading(chart: Chart, report: MemoryReport, title: str) -> float:
    budget = report.budget
    chart.words((MARGIN, 38), title, 22, INK, "start", weight=600)
    words = (
        f"one layer of {budget.hidden} units, at most {budget.updates:,} updates of {budget.rows} "
        f"new rows, Adam, {budget.start} start, seed {budget.seed}"
    )
    chart.words((MARGIN, 64), words, 13, QUIET, "start")
    return 88.0


# --- learning curves -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Scale:
    """Scores to heights: errors by their logarithm, accuracies as they are."""

    logarithmic: bool
    low: float
    high: float
    top: float

    @classmethod
    def of(cls, trials: Sequence[Trial], top: float) -> _Scale:
        if trials[0].measure == "accuracy":
            return cls(False, 0.0, 1.0, top)
        scores = [score for trial in trials for _, score in trial.curve if score > 0]
        least = min([trials[0].enough, *scores])
        most = max([trials[0].chance, *scores])
        return cls(True, least / 2, min(most * 2, 10.0), top)

    def y(self, score: float) -> float:
        within = min(max(score, self.low), self.high)
        if self.logarithmic:
            share = math.log(within / self.low) / math.log(self.high / self.low)
        else:
            share = (within - self.low) / (self.high - self.low)
        return self.top + HIGH * (1 - share)

    def ticks(self) -> Iterator[tuple[float, str]]:
        if not self.logarithmic:
            yield from ((k / 4, f"{25 * k} %") for k in range(5))
            return
        exponent = math.ceil(math.log10(self.low))
        while 10.0**exponent <= self.high:
            yield 10.0**exponent, f"{10.0**exponent:g}"
            exponent += 1


class _Curves:
    def __init__(self, report: MemoryReport) -> None:
        self.report, self.chart = report, Chart()
        self.styles = {cell: k for k, cell in enumerate(report.cells)}
        self.panel = (WIDE - 2 * MARGIN - BETWEEN) / 2

    def svg(self) -> str:
        title = f"What cells remember over {self.report.lengths[0]} steps"
        top = bottom = _heading(self.chart, self.report, title)
        for k, task in enumerate(self.report.tasks):
            top = bottom if k % 2 == 0 else top
            left = MARGIN + (k % 2) * (self.panel + BETWEEN)
            bottom = self._panel(task, left, top)
        return self.chart.svg(WIDE, bottom + 8, title)

    def _panel(self, task: str, left: float, top: float) -> float:
        """Draws the task's title, legend and curves; returns where it ends."""
        trials = [trial for trial in self.report.trials if trial.task == task]
        self.chart.words((left, top + 16), task.capitalize(), 16, INK, "start", weight=600)
        y = top + 42
        for trial in trials:
            self._verdict(trial, left, y)
            y += LINE
        y += LINE * (len(self.report.cells) - len(trials))
        body = y + 30
        measure = {"error": "mean squared error", "accuracy": "accuracy"}[trials[0].measure]
        self.chart.words((left, body - 20), f"validation {measure}", 12, QUIET, "start")
        scale = _Scale.of(trials, body)
        area = (left + AXIS, left + self.panel - NAMES)
        self._axes(scale, area)
        self._lines(trials[0], scale, area)
        for trial in trials:
            self._curve(trial, scale, area)
        self.chart.words(((area[0] + area[1]) / 2, body + HIGH + 40), "updates", 12, QUIET)
        return body + HIGH + 64

    def _verdict(self, trial: Trial, left: float, y: float) -> None:
        """A line of the legend: the mark, the cell, and what became of it."""
        style = self.styles[trial.cell]
        colour = COLOURS[style % len(COLOURS)]
        self.chart.line([(left, y), (left + 26, y)], colour, 2.2)
        self.chart.mark((left + 13, y), style, colour, 5.4)
        self.chart.words((left + 36, y), trial.cell, 13, INK, "start", weight=600)
        score = score_text(trial.measure, trial.score)
        words = f"solved after {trial.updates:,} updates" if trial.solved else "not solved"
        x = left + 50 + max(text_width(cell, 15) for cell in self.styles)
        self.chart.words((x, y), f"{words}, test {score}", 12.5, QUIET, "start")

    def _axes(self, scale: _Scale, area: tuple[float, float]) -> None:
        left, right = area
        for score, words in scale.ticks():
            y = scale.y(score)
            self.chart.line([(left, y), (right, y)], RULE, 1)
            self.chart.words((left - 9, y), words, 11, QUIET, "end")
        bottom = scale.top + HIGH
        self.chart.line([(left, bottom), (right, bottom)], FAINT, 1)
        for update in self._update_ticks():
            x = self._x(update, area)
            self.chart.line([(x, bottom), (x, bottom + 5)], FAINT, 1)
            self.chart.words((x, bottom + 18), f"{update:,}", 11, QUIET)

    def _update_ticks(self) -> list[int]:
        most = self.report.budget.updates
        power = 10 ** math.floor(math.log10(most))
        unit = next(u for u in (power // 5, power // 2, power, most) if u and most / u <= 8)
        return list(range(0, most + 1, unit))

    def _x(self, update: float, area: tuple[float, float]) -> float:
        return area[0] + (area[1] - area[0]) * update / self.report.budget.updates

    def _lines(self, trial: Trial, scale: _Scale, area: tuple[float, float]) -> None:
        """Chance and solved, named at the right."""
        for score, words, colour in (
            (trial.chance, f"chance {limit_text(trial.measure, trial.chance)}", INK),
            (trial.enough, f"solved {limit_text(trial.measure, trial.enough)}", SOLVED),
        ):
            y = scale.y(score)
            self.chart.line([(area[0], y), (area[1], y)], colour, 1.3, "5 4")
            self.chart.words((area[1] + 9, y), words, 11, colour, "start")

    def _curve(self, trial: Trial, scale: _Scale, area: tuple[float, float]) -> None:
        if not trial.curve:
            return
        style = self.styles[trial.cell]
        colour = COLOURS[style % len(COLOURS)]
        points = [(self._x(update, area), scale.y(score)) for update, score in trial.curve]
        score = score_text(trial.measure, trial.score)
        self.chart.begin(f"{trial.cell}: {trial.updates:,} updates, test {score}")
        self.chart.line(points, colour, 2.2)
        apart = max(len(points) // 6, 1)
        for point in {*points[apart - 1 :: apart], points[-1]}:
            self.chart.mark(point, style, colour)
        self.chart.mark(points[-1], style, colour, 6.4)
        self.chart.end()


# --- reach ---------------------------------------------------------------------------------


class _Reach:
    """Bars whose length is the logarithm of the longest T that was solved."""

    def __init__(self, report: MemoryReport) -> None:
        self.report, self.chart = report, Chart()
        self.left = MARGIN + 16 + max(text_width(cell, 15) for cell in report.cells)
        self.right = WIDE - MARGIN - 70

    def svg(self) -> str:
        title = "How far back cells remember"
        y = _heading(self.chart, self.report, title)
        for task in self.report.tasks:
            y = self._panel(task, y)
        return self.chart.svg(WIDE, y + 8, title)

    def _x(self, steps: int) -> float:
        """A bar begins one halving before the shortest length."""
        lengths = self.report.lengths
        share = math.log(2 * steps / lengths[0]) / math.log(2 * lengths[-1] / lengths[0])
        return self.left + (self.right - self.left) * share

    def _panel(self, task: str, top: float) -> float:
        chart = self.chart
        chart.words((MARGIN, top + 16), task.capitalize(), 16, INK, "start", weight=600)
        words = "longest sequence solved, in steps"
        chart.words((self.right, top + 17), words, 12, QUIET, "end")
        body = top + 60
        bottom = body + len(self.report.cells) * (BAR + GAP)
        for steps in self.report.lengths:
            x = self._x(steps)
            chart.line([(x, body - 6), (x, bottom)], RULE, 1)
            chart.words((x, body - 16), f"{steps}", 11, QUIET)
        chart.line([(self.left, body - 6), (self.left, bottom)], FAINT, 1)
        for k, cell in enumerate(self.report.cells):
            reach, y = self.report.reach(task, cell), body + k * (BAR + GAP) + GAP / 2
            words = reach_text(reach, self.report.lengths)
            chart.begin(f"{cell}, {task}: {words} steps")
            chart.words((self.left - 10, y + BAR / 2), cell, 13, INK, "end", weight=600)
            x = self._x(reach) if reach else self.left
            if reach:
                chart.bar(self.left, y, x - self.left, BAR, COLOURS[k % len(COLOURS)])
            chart.words((x + 8, y + BAR / 2), words, 12, INK, "start", weight=600)
            chart.end()
        return bottom + 34

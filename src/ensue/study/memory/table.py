"""A memory study as a document and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ensue.drawing.chart import (
    GOOD,
    MARGIN,
    WIDE,
    Axis,
    Panel,
    colour_of,
    heading,
    number_text,
    round_numbers,
)
from ensue.drawing.document import Document, Figure, Paragraph, Table
from ensue.drawing.svg import FAINT, INK, QUIET, RULE, Drawing, text_width
from ensue.study.memory.study import MemoryReport, Trial

FORMAT = 1


def document(report: MemoryReport) -> Document:
    """The budget, a line for each training, the reach where it was measured, and the picture."""
    blocks = [Table([*map(_cells_of, report.trials)], HEAD, left=len(HEAD))]
    if len(report.lengths) > 1:
        head, *rows = _reaches(report)
        blocks.append(Table(rows, head, left=len(head)))
    failed = [f"{t.cell}, {t.task}, T {t.steps}: {t.failure}" for t in report.trials if t.failure]
    picture = [Figure(draw(report))] if report.trials else []
    about = f"each cell: {_budget(report)}"
    return Document("What cells remember", about, [*blocks, *map(Paragraph, failed), *picture])


def _budget(report: MemoryReport) -> str:
    budget = report.budget
    return (
        f"one layer of {budget.hidden} units, at most {budget.updates:,} updates of "
        f"{budget.rows} new rows, Adam, clip {budget.clip:g}, {budget.start} start, "
        f"seed {budget.seed}"
    )


HEAD = (
    "task", "T", "cell", "test score", "chance", "needed", "solved", "updates", "rate",
    "parameters", "seconds",
)  # fmt: skip


def score_text(measure: str, score: float) -> str:
    """
    >>> score_text("error", 0.000834), score_text("accuracy", 0.9965)
    ('MSE 0.000834', '99.7 %')
    """
    if not math.isfinite(score):
        return "none"
    return f"MSE {score:.3g}" if measure == "error" else f"{100 * score:.1f} %"


def limit_text(measure: str, score: float) -> str:
    """
    >>> limit_text("error", 1 / 6), limit_text("accuracy", 0.25)
    ('0.167', '25 %')
    """
    return f"{score:.3g}" if measure == "error" else f"{100 * score:.3g} %"


def _cells_of(trial: Trial) -> tuple[str, ...]:
    return (
        trial.task,
        str(trial.steps),
        trial.cell,
        score_text(trial.measure, trial.score),
        limit_text(trial.measure, trial.chance),
        ("≤ " if trial.measure == "error" else "≥ ") + limit_text(trial.measure, trial.enough),
        "yes" if trial.solved else "no",
        f"{trial.updates:,}",
        f"{trial.rate:g}",
        f"{trial.parameters:,}",
        f"{trial.seconds:.0f}",
    )


def _reaches(report: MemoryReport) -> list[tuple[str, ...]]:
    head = ("longest T solved", *report.tasks)
    rows = [
        (cell, *(reach_text(report.reach(task, cell), report.lengths) for task in report.tasks))
        for cell in report.cells
    ]
    return [head, *rows]


def reach_text(reach: int, lengths: Sequence[int]) -> str:
    """The reach as text. The longest tried length is marked, because the cell may reach further."""
    if not reach:
        return f"< {lengths[0]}"
    return f"≥ {reach}" if reach == lengths[-1] else str(reach)


def as_json(report: MemoryReport) -> dict[str, Any]:
    """The complete report, including learning curves."""
    facts: dict[str, Any] = {"format": FORMAT, **asdict(report)}
    for trial in facts["trials"]:
        trial["score"] = trial["score"] if math.isfinite(trial["score"]) else None
    if len(report.lengths) > 1:
        facts["reach"] = {
            task: {cell: report.reach(task, cell) for cell in report.cells} for task in report.tasks
        }
    return facts


BETWEEN = 24.0  # two panels
AXIS, NAMES, HIGH = 56.0, 96.0, 300.0  # space left and right of a panel's curves; their height
LINE = 20.0  # height of a line of the legend
BAR, GAP = 18.0, 6.0
MEASURES = {"error": "validation mean squared error", "accuracy": "validation accuracy, %"}
PERCENT = [(k / 4, str(25 * k)) for k in range(5)]


def draw(report: MemoryReport) -> str:
    """The picture as SVG."""
    return _Reach(report).svg() if len(report.lengths) > 1 else _Curves(report).svg()


def _begun(drawing: Drawing, report: MemoryReport, title: str) -> float:
    return heading(drawing, title, _budget(report))


# --- learning curves -----------------------------------------------------------------------


def _scores(trials: Sequence[Trial], bottom: float, top: float) -> Axis:
    """The axis of scores: logarithmic for errors, linear for accuracies."""
    if trials[0].measure == "accuracy":
        return Axis(0.0, 1.0, bottom, top)
    scores = [score for trial in trials for _, score in trial.curve if score > 0]
    least, most = min([trials[0].enough, *scores]), max([trials[0].chance, *scores])
    return Axis(least / 2, min(most * 2, 10.0), bottom, top, logarithmic=True)


class _Curves:
    def __init__(self, report: MemoryReport) -> None:
        self.report, self.drawing = report, Drawing()
        self.styles = {cell: k for k, cell in enumerate(report.cells)}
        self.wide = (WIDE - 2 * MARGIN - BETWEEN) / 2

    def svg(self) -> str:
        title = f"What cells remember over {self.report.lengths[0]} steps"
        top = bottom = _begun(self.drawing, self.report, title)
        for k, task in enumerate(self.report.tasks):
            top = bottom if k % 2 == 0 else top
            bottom = self._panel(task, MARGIN + (k % 2) * (self.wide + BETWEEN), top)
        return self.drawing.svg(WIDE, bottom + 8, title)

    def _panel(self, task: str, left: float, top: float) -> float:
        """Draws the task's title, legend and curves; returns where it ends."""
        trials = [trial for trial in self.report.trials if trial.task == task]
        self.drawing.words((left, top + 16), task.capitalize(), 16, INK, "start", weight=600)
        for k, trial in enumerate(trials):
            self._verdict(trial, left, top + 42 + k * LINE)
        body = top + 82 + len(self.report.cells) * LINE
        updates = Axis(0, self.report.budget.updates, left + AXIS, left + self.wide - NAMES)
        panel = Panel(self.drawing, updates, _scores(trials, body + HIGH, body))
        ticks = [(at, number_text(at)) for at in round_numbers(0, updates.high) if at == int(at)]
        measure = trials[0].measure
        panel.axes("updates", MEASURES[measure], ticks, None if measure == "error" else PERCENT)
        self._limits(trials[0], panel)
        for trial in trials:
            self._curve(trial, panel)
        return body + HIGH + 64

    def _verdict(self, trial: Trial, left: float, y: float) -> None:
        """A line of the legend: the mark, the cell, and its result."""
        style = self.styles[trial.cell]
        self.drawing.line([(left, y), (left + 26, y)], colour_of(style), 2.2)
        self.drawing.mark((left + 13, y), style, colour_of(style), 5.4)
        self.drawing.words((left + 36, y), trial.cell, 13, INK, "start", weight=600)
        score = score_text(trial.measure, trial.score)
        words = f"solved after {trial.updates:,} updates" if trial.solved else "not solved"
        x = left + 50 + max(text_width(cell, 15) for cell in self.styles)
        self.drawing.words((x, y), f"{words}, test {score}", 12.5, QUIET, "start")

    def _limits(self, trial: Trial, panel: Panel) -> None:
        """Draws the limits of chance and solved, with names on the right."""
        for score, word, colour in ((trial.chance, "chance", INK), (trial.enough, "solved", GOOD)):
            panel.curve([(0, score), (panel.x.high, score)], colour, 1.3, "5 4")
            words = f"{word} {limit_text(trial.measure, score)}"
            self.drawing.words((panel.x.end + 9, panel.y(score)), words, 11, colour, "start")

    def _curve(self, trial: Trial, panel: Panel) -> None:
        if not trial.curve:
            return
        style = self.styles[trial.cell]
        score = score_text(trial.measure, trial.score)
        self.drawing.begin(f"{trial.cell}: {trial.updates:,} updates, test {score}")
        points = panel.curve(trial.curve, colour_of(style))
        apart = max(len(points) // 6, 1)
        for point in dict.fromkeys(points[apart - 1 :: apart]):
            self.drawing.mark(point, style, colour_of(style))
        self.drawing.mark(points[-1], style, colour_of(style), 6.4)
        self.drawing.end()


# --- reach ---------------------------------------------------------------------------------


class _Reach:
    """Bars whose length is the logarithm of the longest solved T."""

    def __init__(self, report: MemoryReport) -> None:
        self.report, self.drawing = report, Drawing()
        left = MARGIN + 16 + max(text_width(cell, 15) for cell in report.cells)
        # a bar begins one halving before the shortest length
        ends = report.lengths[0] / 2, report.lengths[-1]
        self.x = Axis(*ends, left, WIDE - MARGIN - 70, logarithmic=True)

    def svg(self) -> str:
        title = "How far back cells remember"
        y = _begun(self.drawing, self.report, title)
        for task in self.report.tasks:
            y = self._panel(task, y)
        return self.drawing.svg(WIDE, y + 8, title)

    def _panel(self, task: str, top: float) -> float:
        drawing, x, body = self.drawing, self.x, top + 60
        drawing.words((MARGIN, top + 16), task.capitalize(), 16, INK, "start", weight=600)
        drawing.words((x.end, top + 17), "longest sequence solved, in steps", 12, QUIET, "end")
        bottom = body + len(self.report.cells) * (BAR + GAP)
        for steps in self.report.lengths:
            drawing.line([(x(steps), body - 6), (x(steps), bottom)], RULE)
            drawing.words((x(steps), body - 16), f"{steps}", 11, QUIET)
        drawing.line([(x.start, body - 6), (x.start, bottom)], FAINT)
        for k, cell in enumerate(self.report.cells):
            reach, y = self.report.reach(task, cell), body + k * (BAR + GAP) + GAP / 2
            words, end = reach_text(reach, self.report.lengths), x(reach) if reach else x.start
            drawing.begin(f"{cell}, {task}: {words} steps")
            drawing.words((x.start - 10, y + BAR / 2), cell, 13, INK, "end", weight=600)
            if reach:
                drawing.bar(x.start, y, end - x.start, BAR, colour_of(k))
            drawing.words((end + 8, y + BAR / 2), words, 12, INK, "start", weight=600)
            drawing.end()
        return bottom + 34

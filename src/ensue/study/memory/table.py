"""A memory study as text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ensue.study.memory.study import MemoryReport, Trial

FORMAT = 1


def as_text(report: MemoryReport) -> str:
    """The budget, a line for each training, and the reach where it was measured."""
    budget = report.budget
    lines = [
        f"each cell: one layer of {budget.hidden} units, at most {budget.updates:,} updates of "
        f"{budget.rows} new rows, Adam, clip {budget.clip:g}, "
        f"{budget.start} start, seed {budget.seed}",
        "",
        *_aligned([HEAD, *(_cells_of(trial) for trial in report.trials)]),
    ]
    if len(report.lengths) > 1:
        lines += ["", *_aligned(_reaches(report))]
    lines += [f"{t.cell}, {t.task}, T {t.steps}: {t.failure}" for t in report.trials if t.failure]
    return "\n".join(lines)


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
    """The longest length tried is marked: the cell may reach further."""
    if not reach:
        return f"< {lengths[0]}"
    return f"≥ {reach}" if reach == lengths[-1] else str(reach)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def as_json(report: MemoryReport) -> dict[str, Any]:
    """Everything, the learning curves too."""
    found: dict[str, Any] = {"format": FORMAT, **asdict(report)}
    for trial in found["trials"]:
        trial["score"] = trial["score"] if math.isfinite(trial["score"]) else None
    if len(report.lengths) > 1:
        found["reach"] = {
            task: {cell: report.reach(task, cell) for cell in report.cells} for task in report.tasks
        }
    return found

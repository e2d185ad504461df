"""A selection as text: one table, and the winner's test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ensue.data.layout import score_text, size_text, time_text
from ensue.escape import in_shell
from ensue.study.selection.entries import TOGETHER

if TYPE_CHECKING:
    from ensue.study.selection.entries import Entry, Selection, WinnerVerdict

LEFT = 2  # columns of words; numbers stand at the right


def as_text(selection: Selection) -> str:
    head = (
        "", "model", f"validation {selection.measure}", "parameters", "size", "epochs",
        "time in all", "tokens/s",
    )  # fmt: skip
    rows = [_cells_of(k, row) for k, row in enumerate(selection.rows, 1) if not row.failure]
    lines = _aligned([head, *rows])
    lines += [f"{row.name} failed: {row.failure}" for row in selection.rows if row.failure]
    lines += _search_lines(selection)
    if selection.test:
        lines += ["", *_tested(selection.test)]
    return "\n".join(lines)


def _cells_of(rank: int, row: Entry) -> tuple[str, ...]:
    return (
        str(rank),
        row.title,
        score_text(row.score),
        "–" if row.parameters is None else f"{row.parameters:,}",
        size_text(row.size),
        str(row.epochs or "–"),
        time_text(row.seconds),
        "–" if row.speed is None else f"{row.speed:,.0f}",
    )


def _search_lines(selection: Selection) -> list[str]:
    """Of a search, how many trials were stopped, and which settings the winner has."""
    if not selection.search or selection.winner is None:
        return []
    winner, trials = selection.winner, [own for own in selection.rows if own.name != TOGETHER]
    stopped = sum(bool(own.stopped) for own in trials)
    verb = "was" if stopped == 1 else "were"
    lines = [f"{stopped} of {len(trials)} trials {verb} stopped early"] if stopped else []
    told = winner.what if winner.name == TOGETHER else _told(selection.changed(winner))
    return [*lines, "", f"{winner.name}: {told}"]


def _told(settings: Mapping[str, Any]) -> str:
    """Settings as a command has them."""
    said = " ".join(f"--set {in_shell(f'{key}={value}')}" for key, value in settings.items())
    return said or "the default settings"


def _tested(test: WinnerVerdict) -> list[str]:
    """The winner's score, what it must beat, and whether it does."""
    times = "once" if test.opened == 1 else f"{test.opened} times"
    lines = [
        f"{test.name} on the test part ({test.rows:,} rows, opened {times}): {test.measure} "
        f"{score_text(test.value)}, 95 % interval {score_text(test.low)} … {score_text(test.high)}",
    ]
    if test.baselines:
        others = ", ".join(f"{name} {score_text(v)}" for name, v in test.baselines.items())
        lines.append(f"for comparison, {test.measure}: {others}")
    sign = 1 if test.higher_is_better else -1
    better = [name for name, v in test.baselines.items() if sign * v >= sign * test.value]
    if better:
        lines.append(f"The winner does not beat the {', nor the '.join(better)}.")
    return lines


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            word.ljust(width) if k < LEFT else word.rjust(width)
            for k, (word, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]

"""A label curve as text: a line for each number of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ensue.data.layout import score_text, time_text

if TYPE_CHECKING:
    from ensue.study.labels.curve import LabelCurve, LabelPoint

HEAD = ("labels", "with the base", "without", "difference", "time with", "time without")


def as_text(curve: LabelCurve) -> str:
    """Scores are those of the validation part."""
    counts = sorted({point.rows for point in curve.points})
    rows = [HEAD, *(_cells(curve, count) for count in counts)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(word.rjust(width) for word, width in zip(row, widths, strict=True))
        for row in rows
    ]
    better = "higher" if curve.higher_is_better else "lower"
    lines += ["", f"{curve.measure} on {curve.validation:,} validation rows, {better} is better"]
    failed = [point for point in curve.points if point.failure]
    return "\n".join([*lines, *(f"{own.folder} failed: {own.failure}" for own in failed)])


def _cells(curve: LabelCurve, count: int) -> tuple[str, ...]:
    both = [_at(curve, count, base) for base in (True, False)]
    scores = [own.score for own in both]
    difference = "–"
    if scores[0] is not None and scores[1] is not None:
        difference = f"{scores[0] - scores[1]:+.4f}".replace("-", "−")
    times = [time_text(own.seconds) if own.score is not None else "–" for own in both]
    return (f"{count:,}", *map(score_text, scores), difference, *times)


def _at(curve: LabelCurve, count: int, base: bool) -> LabelPoint:
    return next(own for own in curve.points if (own.rows, own.base) == (count, base))

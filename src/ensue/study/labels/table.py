"""A label curve as a document: a line for each number of labels, and the picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ensue.drawing.chart import (
    MARGIN,
    WIDE,
    Axis,
    Key,
    Panel,
    colour_of,
    heading,
    legend,
    number_text,
)
from ensue.drawing.document import Document, Figure, Paragraph, Table
from ensue.drawing.layout import score_text, time_text
from ensue.drawing.svg import Drawing

if TYPE_CHECKING:
    from ensue.study.labels.curve import LabelCurve, LabelPoint

HEAD = ("labels", "with the base", "without", "difference", "time with", "time without")


def document(curve: LabelCurve) -> Document:
    """The document about a curve, with scores on the validation part."""
    counts = sorted({point.rows for point in curve.points})
    table = Table([_cells(curve, count) for count in counts], HEAD, left=0)
    better = "higher" if curve.higher_is_better else "lower"
    what = f"{curve.measure} on {curve.validation:,} validation rows, {better} is better"
    failed = [f"{point.folder} failed: {point.failure}" for point in curve.points if point.failure]
    has_scores = any(point.score is not None for point in curve.points)
    figures = [Figure(draw(curve))] if has_scores else []
    title = f"Labels for {curve.task}"
    return Document(title, "", [table, *map(Paragraph, [what, *failed]), *figures])


def _cells(curve: LabelCurve, count: int) -> tuple[str, ...]:
    both = [_at(curve, count, base) for base in (True, False)]
    scores = [point.score for point in both]
    difference = "–"
    if scores[0] is not None and scores[1] is not None:
        difference = f"{scores[0] - scores[1]:+.4f}".replace("-", "−")
    times = [time_text(point.seconds) if point.score is not None else "–" for point in both]
    return (f"{count:,}", *map(score_text, scores), difference, *times)


def _at(curve: LabelCurve, count: int, base: bool) -> LabelPoint:
    return next(point for point in curve.points if (point.rows, point.base) == (count, base))


HIGH, LEFT = 360.0, 58.0
SERIES = {True: "with the base", False: "without"}


def draw(curve: LabelCurve) -> str:
    """The picture as SVG."""
    drawing = Drawing()
    title = f"Labels for {curve.task}: the value of {curve.base}"
    better = "higher" if curve.higher_is_better else "lower"
    line = f"validation {curve.measure} of {curve.validation:,} rows ({better} is better)"
    top = heading(drawing, title, line)
    keys = [Key(name, colour_of(k), mark=k) for k, name in enumerate(SERIES.values())]
    top = legend(drawing, keys, MARGIN, top + 8, WIDE - MARGIN) + 44
    scored = [(point.rows, point.score) for point in curve.points if point.score is not None]
    x = Axis.over([n for n, _ in scored], MARGIN + LEFT, WIDE - MARGIN, logarithmic=True)
    y = Axis.over([score for _, score in scored], top + HIGH, top)
    panel = Panel(drawing, x, y)
    panel.axes(
        "labelled rows", curve.measure, [(n, number_text(n)) for n in sorted({*dict(scored)})]
    )
    for k, base in enumerate(SERIES):
        points = [(point.rows, point.score or 0.0) for point in curve.of(base)]
        for (count, score), at in zip(points, panel.curve(points, colour_of(k)), strict=True):
            drawing.begin(f"{count:,} labels, {SERIES[base]}: {score_text(score)}")
            drawing.mark(at, k, colour_of(k), 5.6)
            drawing.end()
    return drawing.svg(WIDE, top + HIGH + 64, title)

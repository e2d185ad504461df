"""An evaluation for a notebook: scores as bars beside the baselines, classes, mistakes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ensue.drawing.html import (
    SOFT,
    Markup,
    beside,
    between,
    block,
    heading,
    lines,
    quiet,
    table,
)
from ensue.drawing.inline import bar, heat_map
from ensue.drawing.svg import escape

if TYPE_CHECKING:
    from ensue.tasks.evaluation.report import Evaluation


def evaluation_html(found: Evaluation) -> str:
    return block(
        "Evaluation",
        quiet(found.size_line()),
        quiet(found.opened_line()),
        *(f"<div>{quiet(line)}</div>" for line in found.unknown_lines()),
        beside(_scores(found), _baselines(found)),
        quiet(found.beaten_line()),
        lines(found.notes) if found.notes else "",
        *(
            heading(own.title) + table(own.rows, own.head) + quiet(own.about)
            for own in found.own_tables()
        ),
        beside(_classes(found), _confusion(found)),
        _mistakes(found),
    )


def _scores(found: Evaluation) -> str:
    """Each score with its interval; those that no interval was made for below them."""
    rows: list[list[object]] = []
    for name, score in found.scores.items():
        ends = (score.low, score.high)
        drawn = bar(score.value, _most(score.value, *ends), ends)
        told = quiet(between(score.low, score.high))
        rows.append([_strong(name) if name == found.main else name, drawn, score.value, told])
    rows += [[name, "", value, ""] for name, value in found.others.items()]
    return table(rows, ("score", "", "value", "95 % interval"), most=len(rows))


def _baselines(found: Evaluation) -> str:
    """The score that counts beside that of models that a network must beat."""
    if not found.baselines:
        return ""
    own = found.scores[found.main].value
    most = _most(own, *found.baselines.values())
    rows: list[list[object]] = [[_strong("this model"), bar(own, most), own]]
    rows += [
        [name, bar(value, most, colour=SOFT), value] for name, value in found.baselines.items()
    ]
    better = "higher is better" if found.higher_is_better else "lower is better"
    head = (f"for comparison, {found.main}", "", better)
    return table(rows, head, most=len(rows))


def _most(*values: float) -> float:
    """The end of the scale: 1 for shares, else the greatest value."""
    finite = [value for value in values if math.isfinite(value)]
    greatest = max(finite, default=0.0)
    return 1.0 if 0 <= greatest <= 1 else greatest


def _strong(text: str) -> Markup:
    return Markup(f"<b>{escape(text)}</b>")


def _classes(found: Evaluation) -> str:
    shown = sorted(found.classes, key=lambda row: -row.support)
    if not shown:
        return ""
    rows = [
        [row.name, row.precision, row.recall, row.f1, bar(row.f1, 1.0), row.support]
        for row in shown
    ]
    return heading("classes") + table(rows, ("class", "precision", "recall", "F1", "", "rows"))


def _confusion(found: Evaluation) -> str:
    if found.can_be_drawn():
        names = [row.name for row in found.classes]
        shares = [[n / max(1, sum(row)) for n in row] for row in found.confusion]
        counts = [[f"{n:,}" if n else "" for n in row] for row in found.confusion]
        return heading("gold ↓ predicted →") + heat_map(names, names, shares, counts)
    pairs = [[count, gold, predicted] for count, gold, predicted in found.most_confused()]
    return heading("most confused") + table(pairs, ("rows", "gold", "predicted")) if pairs else ""


def _mistakes(found: Evaluation) -> str:
    """The surest of them; where nothing was predicted, what was least expected."""
    if wrong := found.wrong():
        rows = [[own.place, own.text, own.gold, own.predicted, own.probability] for own in wrong]
        head = ("where", "text", "gold", "predicted", "probability")
        return heading(found.mistakes) + table(rows, head)
    surprises = [[own.place, own.text, own.gold, own.probability] for own in found.worst]
    titles = ("where", "text before", "what came", "probability")
    return heading("greatest surprises") + table(surprises, titles) if surprises else ""

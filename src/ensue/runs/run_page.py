"""A run and a comparison of runs for a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ensue.drawing.html import Markup, between, block, figures, heading, quiet, table
from ensue.drawing.inline import span, sparkline
from ensue.drawing.layout import local_time, size_text, time_text
from ensue.runs.evaluations import Evaluated

if TYPE_CHECKING:
    from ensue.runs.compare import Comparison
    from ensue.runs.run import Run

MOST_NETWORKS = 5


def run_html(run: Run) -> str:
    found = run.summary()
    rows: list[tuple[str, object]] = [
        ("task", found.task),
        ("data", found.data),
        ("state", found.state),
        *_validation(run, found.watch, found.best),
        ("trained", f"{time_text(found.seconds)}, until {local_time(found.when)}"),
        ("size", size_text(found.size)),
    ]
    named = [(quiet(name), own) for name, own in rows]
    return block(f"Run {found.name}", table(named), *map(_evaluated, run.evaluations()))


def _validation(run: Run, watch: str, best: float | None) -> list[tuple[str, object]]:
    """The watched score of each network as a curve; of one that was solved, the score alone."""
    found: list[tuple[str, object]] = []
    networks = len(run.folder.members())
    for member in range(1, min(networks, MOST_NETWORKS) + 1):
        rows = [row for row in run.history(member) if watch in row.get("scores", {})]
        if not rows:
            continue
        at = max(k for k, row in enumerate(rows) if row["best"])
        told = f"best {figures(rows[at]['scores'][watch])}, at update {rows[at]['update']:,}"
        curve = sparkline([row["scores"][watch] for row in rows], at)
        title = f"validation {watch}" + f", network {member}" * (networks > 1)
        found.append((title, Markup(f"{curve} {quiet(told)}")))
    if not found and best is not None:
        found.append((f"validation {watch}", figures(best)))
    return found


def _evaluated(kept: Evaluated) -> Markup:
    """The scores of a part."""
    found = kept.evaluation
    files = ", ".join(Path(own.path).name for own in kept.files)
    shown = [(name, own.value, between(own.low, own.high)) for name, own in found.scores.items()]
    title = heading(f"{kept.part} part of {files}: {found.rows:,} rows, {kept.when[:10]}")
    return Markup(title + table(shown, ("score", "value", "95 % interval")))


def comparison_html(found: Comparison) -> str:
    """Scores side by side, and each difference on a scale around 0."""
    scores = [
        (name, *(own.scores[name].value for own in found.evaluations))
        for name in found.evaluations[0].scores
        if all(name in own.scores for own in found.evaluations)
    ]
    reach = dict[str, float]()
    for own in found.differences:
        reach[own.score] = max(reach.get(own.score, 0.0), *map(abs, own.interval))
    differences = [
        (
            own.run,
            own.score,
            span(*own.interval, (-(wide := reach[own.score] or 1.0), wide)),
            own.interval.value,
            between(own.interval.low, own.interval.high),
        )
        for own in found.differences
    ]
    head = ("run", "score", "", "difference", "95 % interval")
    return block(
        f"Comparison on the {found.part} part",
        quiet(f"{', '.join(found.files)}: {found.evaluations[0].rows:,} rows, {found.task}"),
        table(scores, ("score", *found.runs)),
        heading(f"difference from {found.runs[0]}, by paired bootstrap"),
        table(differences, head),
        *(f"<div>{quiet(told)}</div>" for told in found.verdicts()),
    )

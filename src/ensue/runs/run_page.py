"""A run as a document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ensue.drawing.document import Cell, Document, Section, Table
from ensue.drawing.layout import local_time, score_text, size_text, time_text
from ensue.runs.evaluations import Evaluated
from ensue.tasks.model_page import score_curve

if TYPE_CHECKING:
    from ensue.runs.run import Run

MOST_NETWORKS = 5


def run_document(run: Run) -> Document:
    found = run.summary()
    rows: list[tuple[str, Cell]] = [
        ("run", found.name),
        ("task", found.task),
        ("data", found.data),
        *_validation(run, found.watch, found.best),
        ("state", found.state),
        ("trained", f"{time_text(found.seconds)}, until {local_time(found.when)}"),
        ("size", size_text(found.size)),
    ]
    sections = map(_evaluated, run.evaluations())
    return Document(f"Run {found.name}", "", [Table(rows, left=2, room=10), *sections])


def _validation(run: Run, watch: str, best: float | None) -> list[tuple[str, Cell]]:
    """The watched score of each network as a curve; of one that was solved, the score alone."""
    found: list[tuple[str, Cell]] = []
    networks = len(run.folder.members())
    for member in range(1, min(networks, MOST_NETWORKS) + 1):
        rows = [row for row in run.history(member) if watch in row.get("scores", {})]
        if rows:
            scores = [(row["update"], row["scores"][watch], row["best"]) for row in rows]
            name = f"validation {watch}" + f", network {member}" * (networks > 1)
            found.append((name, score_curve(scores)))
    if not found and best is not None:
        found.append((f"validation {watch}", score_text(best)))
    return found


def _evaluated(kept: Evaluated) -> Section:
    """The scores of a part."""
    found = kept.evaluation
    files = ", ".join(Path(file.path).name for file in kept.files)
    rows = [
        (name, f"{value:.4f}", f"{low:.4f} … {high:.4f}")
        for name, (value, low, high) in found.scores.items()
    ]
    title = f"{kept.part} part of {files}: {found.rows:,} rows, {kept.when[:10]}"
    return Section(title, [Table(rows, ("score", "value", "95 % interval"))])

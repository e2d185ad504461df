"""test-openings.jsonl, beside the runs: each use of a test part, a line of a chain."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ensue.files.atomic_folder import finite
from ensue.files.chain import Lines, add_line
from ensue.files.run_folder import RunFolder
from ensue.tasks.evaluation.report import Evaluation

OPENINGS = "test-openings.jsonl"
MOST_NAMED = 5  # lines


@dataclass(frozen=True)
class Opening:
    """How often a test part has been looked at, by this run and by any run beside; digest: of the
    line of the last time; doubts: what is wrong with the file, a line each."""

    by_this_run: int
    by_all: int
    digest: str
    doubts: tuple[str, ...]


def record_opening(
    folder: RunFolder, test: str, found: Evaluation, known: Collection[str]
) -> Opening:
    """One more line, and what the file then says of this test part. test: its digest; known: those
    of the lines that this run has written of it before, as far as it remembers."""
    place = folder.path.resolve().parent / OPENINGS
    run = folder.path.resolve().name
    line = {
        "test": test,
        "run": run,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        found.main: found.scores[found.main].value,
    }
    lines, own = add_line(place, finite(line))
    same = [own.get("run") for own in lines.values if own.get("test") == test]
    doubts = _doubts(place, lines, {*known} - {*lines.digests})
    return Opening(same.count(run), len(same), own, tuple(doubts))


def _doubts(place: Path, lines: Lines, lost: Collection[str]) -> Iterator[str]:
    """Nothing of this changes a score, and nothing of it is left unsaid."""
    told = {
        "cut off by a kill, and not counted": lines.torn,
        "not as written: changed, or lines before it are missing; the count may be too low": (
            lines.wrong
        ),
    }
    for what, numbers in told.items():
        for number in numbers[:MOST_NAMED]:
            yield f"{place}:{number}: {what}"
    if lost:
        yield (
            f"{place}: this run has opened this test part before, and the line that says so is not "
            "there: it was removed, or the run was moved; the count is too low"
        )

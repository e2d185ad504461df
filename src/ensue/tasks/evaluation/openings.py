"""Counts of evaluations of a held-out part: for runs in test-openings.jsonl next to them, as a hash
chain with a line for each use; for models in memory, during the process."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ensue.errors import EnsueError
from ensue.files.atomic_folder import finite
from ensue.files.chain import Lines, add_line
from ensue.files.disk import OPENINGS
from ensue.files.run_folder import RunFolder
from ensue.tasks.evaluation.report import Evaluation, TimesOpened

MOST_NAMED = 5  # lines
IN_THIS_PROCESS: Counter[str] = Counter()  # evaluations by any model, by digest of the rows


class Openings:
    """The evaluations of one model. folder: the folder of its run, next to which the evaluations
    are recorded; learned_from: digests of its training and validation parts, which are not
    counted."""

    def __init__(
        self,
        folder: RunFolder | None = None,
        learned_from: Callable[[], Collection[str]] = frozenset,
    ) -> None:
        self.folder, self._learned_from = folder, learned_from
        self._by_model: Counter[str] = Counter()

    def count(self, digest: str, evaluation: Evaluation) -> Evaluation:
        """The evaluation with the number of times these rows have been evaluated."""
        if digest in self._learned_from():
            return evaluation
        self._by_model[digest] += 1
        IN_THIS_PROCESS[digest] += 1
        by_model, by_all = self._by_model[digest], IN_THIS_PROCESS[digest]
        if self.folder is not None:
            by_model, by_all = self._written_down(self.folder, digest, evaluation) or (
                by_model,
                by_all,
            )
        return evaluation.opened_as(TimesOpened(by_all, by_all - by_model))

    def _written_down(
        self, folder: RunFolder, digest: str, evaluation: Evaluation
    ) -> tuple[int, int] | None:
        """Records the evaluation. If the folder is not writable, warns and still returns the
        scores."""
        log = logging.getLogger("ensue")
        try:
            opening = record_opening(folder, digest, evaluation, ())
        except EnsueError as error:
            log.warning("this evaluation was not written down: %s", error)
            return None
        for doubt in opening.doubts:
            log.warning(doubt)
        return opening.by_this_run, opening.by_all


@dataclass(frozen=True)
class Opening:
    """Counts of evaluations of a test part, by this run and by all runs next to it; digest: the
    digest of the last line; doubts: problems of the file, a line each."""

    by_this_run: int
    by_all: int
    digest: str
    doubts: tuple[str, ...]


def record_opening(
    folder: RunFolder, test: str, evaluation: Evaluation, known: Collection[str]
) -> Opening:
    """Adds a line, and counts the lines on this test part. test: its digest; known: digests of
    earlier lines of this run on it."""
    place = folder.path.resolve().parent / OPENINGS
    run = folder.path.resolve().name
    line = {
        "test": test,
        "run": run,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        evaluation.main: evaluation.scores[evaluation.main].value,
    }
    lines, entry = add_line(place, finite(line))
    same = [each.get("run") for each in lines.values if each.get("test") == test]
    doubts = _doubts(place, lines, {*known} - {*lines.digests})
    return Opening(same.count(run), len(same), entry, tuple(doubts))


def _doubts(place: Path, lines: Lines, lost: Collection[str]) -> Iterator[str]:
    """The problems of the file. They affect no score; all are reported."""
    doubts = {
        "incomplete because the process was killed, and not counted": lines.torn,
        "not as written: changed, or lines before it are missing; the count may be too low": (
            lines.wrong
        ),
    }
    for what, numbers in doubts.items():
        for number in numbers[:MOST_NAMED]:
            yield f"{place}:{number}: {what}"
    if lost:
        yield (
            f"{place}: this run has opened this test part before, and the line about it is "
            "missing: it was removed, or the run was moved; the count is too low"
        )

"""Selection among models: each is trained, the best on validation is tested, and it alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ensue.errors import EnsueError, OptionError, RunError
from ensue.runs.config import RunConfig
from ensue.runs.messages import Message, Say, nobody
from ensue.runs.run import seconds_trained
from ensue.runs.train import attempted, complete, settle, train_run
from ensue.study.selection.candidates import Candidate, candidates_of
from ensue.study.selection.entries import Entry, Pace, Selection, entry_of
from ensue.study.selection.kept import begun, read, tested, write
from ensue.training import RunFolder, Watcher


def select_among(
    config: RunConfig,
    models: str,
    folder: Path | str,
    say: Say = nobody,
    watch: Callable[[RunConfig], Sequence[Watcher]] = lambda config: (),
) -> Selection:
    """Trains each of models ("ngram,gru,lstm:layers=1", "" the usual ones) in a run of its own
    below the folder, with the configuration's data and settings but for its own, and opens the
    test part for the best on validation. The same call goes on where it was interrupted.

    say: callback for messages; watch: the watchers of a configuration's training."""
    place = Path(folder)
    if RunFolder(place).config.exists():
        raise OptionError(f"{place}: this is the folder of one run; name another one with --run")
    config = complete(config, say)
    candidates = candidates_of(config, models)
    found = begun(config)
    before = read(place, found, say)
    for own in candidates:
        settle(RunFolder(place / own.folder), own.config)
    rows: list[Entry] = []
    for number, own in enumerate(candidates, 1):
        title = f"{number} of {len(candidates)}: {own.name}"
        row = _finished(place, own, before)
        if row is None:
            say(Message(title))
            row = _trained(place, own, found.measure, say, watch(own.config))
        told = row.failure or f"{found.measure} {row.score:.4f} on validation"
        say(Message(f"{title}: {told}", warning=bool(row.failure)))
        rows.append(row)
        write(place, _so_far(found, rows, before))
    found = found.ranked(rows)
    if found.winner is None:
        reasons = [f"  {row.name}: {row.failure}" for row in found.rows]
        raise RunError("\n".join(["no model could be trained", *reasons]))
    found = replace(found, test=tested(place, found.winner, config, before, say))
    write(place, found)
    return found


def _so_far(found: Selection, rows: Sequence[Entry], before: Selection | None) -> Selection:
    """These rows; of those that come later, and of the test, what an earlier call has found."""
    if before is None:
        return found.ranked(rows)
    names = {row.name for row in rows}
    later = [row for row in before.rows if row.name not in names]
    return replace(found.ranked([*rows, *later]), test=before.test)


def _finished(place: Path, candidate: Candidate, before: Selection | None) -> Entry | None:
    """What an earlier call has found of this candidate, if it came to its end."""
    for row in before.rows if before else ():
        whole = RunFolder(place / candidate.folder).model.is_dir()
        if row.name == candidate.name and row.score is not None and whole:
            return row
    return None


def _trained(
    place: Path, candidate: Candidate, measure: str, say: Say, watchers: Sequence[Watcher]
) -> Entry:
    folder, pace = RunFolder(place / candidate.folder), Pace()
    entry = Entry(candidate.name, candidate.folder)
    earlier, began = seconds_trained(folder.path), time.monotonic()
    try:
        with attempted(folder):
            trained = train_run(candidate.config, folder, [*watchers, pace], say)
    except EnsueError as error:
        seconds = earlier + time.monotonic() - began
        return replace(entry, seconds=seconds, failure=str(error))
    entry = replace(entry, seconds=earlier + time.monotonic() - began, speed=pace.speed)
    return entry_of(entry, trained, folder, measure)

"""`fit`: a training from its start or its newest checkpoint to its end."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import Any

from ensue.errors import RunError, TrainingError, no_memory, out_of_memory
from ensue.files.atomic_folder import Damaged
from ensue.files.chain import chained, last_of, present, read_history
from ensue.files.disk import CHECKPOINTS_STAND, disk_errors, sweep
from ensue.files.opening import HISTORY_FILE, append_to, read_plain, write_all
from ensue.files.run_folder import RunFolder
from ensue.signals import Interrupted, Signals, Stopped
from ensue.training import checkpoint, processes
from ensue.training.facts import RunSettings, check_allowed, check_same, facts
from ensue.training.loop import ended, train
from ensue.training.preflight import rehearse
from ensue.training.progress import Progress
from ensue.training.rows import CheckpointSaved, Finished, Notice, Row, Update, Validated, Watcher
from ensue.training.settings import TrainSettings
from ensue.training.trainee import Source, Trainee, Validation

EVERY = 10  # one in this many updates is recorded


NAMES = {Update: "update", Validated: "evaluation", CheckpointSaved: "saved"}  # in files


def recorded(row: Row) -> dict[str, Any] | None:
    """A row in the form of the history; None for rows that do not belong to it."""
    if isinstance(row, Update) and (row.update == 1 or row.update % EVERY == 0):
        entry = {"row": NAMES[Update], **asdict(row)}
        return entry if row.layers else {k: v for k, v in entry.items() if k != "layers"}
    if isinstance(row, Validated):
        return {"row": NAMES[Validated], **asdict(row)}
    return None


def _appended(path: Path) -> FileIO:
    """The file, opened for appending; every write is passed to the system at once."""
    with disk_errors(path, 0, stands=CHECKPOINTS_STAND):
        return append_to(path)


class History:
    """Appends rows, and knows length and sha256 of all it holds."""

    def __init__(self, path: Path) -> None:
        self.path, self._hash = path, sha256()
        self._file = _appended(path)
        self.length, self._last = 0, ""

    def begin(self, mark: Mapping[str, Any] | None) -> None:
        """Truncates the file to its length at a checkpoint. None: empties the file."""
        length = mark["length"] if mark else 0
        lines = read_history(self.path, mark)[:length]
        with disk_errors(self.path, 0, stands=CHECKPOINTS_STAND):
            self._file.truncate(length)
        self._hash, self.length, self._last = sha256(lines), length, last_of(lines)

    def add(self, row: Row) -> None:
        value = recorded(row)
        if value is not None:
            line, self._last = chained(value, self._last)
            with disk_errors(self.path, len(line), stands=CHECKPOINTS_STAND):
                write_all(self._file, line)
            self._hash.update(line)
            self.length += len(line)

    def mark(self) -> dict[str, Any]:
        """Flushes all rows so far to the disk; returns their length and sha256, for `begin`."""
        with disk_errors(self.path, self.length, stands=CHECKPOINTS_STAND):
            os.fsync(self._file.fileno())
        return {"length": self.length, "sha256": self._hash.hexdigest()}

    def close(self) -> None:
        self._file.close()


class Timing:
    """Writes when each row of the history was recorded: seconds since this process began to train,
    and the date and time in UTC."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _appended(path)
        content = read_plain(path, HISTORY_FILE)
        self._start = b"" if content.endswith(b"\n") or not content else b"\n"  # a truncated line
        self._last = last_of(content)
        self._began = time.monotonic()
        self._targets = 0.0

    def add(self, row: Row) -> None:
        if isinstance(row, Update):
            self._targets += row.targets
        if isinstance(row, CheckpointSaved) or recorded(row):
            assert isinstance(row, (Update, Validated, CheckpointSaved))
            value = {
                "row": NAMES[type(row)],
                "update": row.update,
                "seconds": round(time.monotonic() - self._began, 3),
                "targets": self._targets,
                "clock": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            }
            line, self._last = chained(value, self._last)
            with disk_errors(self.path, len(line), stands=CHECKPOINTS_STAND):
                write_all(self._file, self._start + line)
            self._start = b""

    def close(self) -> None:
        self._file.close()


@dataclass(frozen=True)
class Outcome:
    """The result of a training.

    reason: why it ended: "epochs", "updates" or "patience". scores, best_update: the scores and
    the update of the best weights, which the model now has (None without a validation). stale:
    number of evaluations since the watched score last improved."""

    updates: int
    epochs: int
    reason: str
    scores: Mapping[str, float] | None
    best_update: int | None
    stale: int = 0


@dataclass
class Keeper:
    """Writes the persistent state of a run: history, timing, checkpoints."""

    folder: RunFolder
    settings: TrainSettings
    facts: Mapping[str, Any]
    watchers: Sequence[Watcher]
    saved: tuple[int, bool] = (-1, False)  # update, and whether as the final one
    _saved_at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.history, self.timing = History(self.folder.history), Timing(self.folder.timing)

    def tell(self, row: Row) -> None:
        self.history.add(row)
        self.timing.add(row)
        for watcher in self.watchers:
            watcher(row)

    def resume(self, allow: Collection[str]) -> checkpoint.Checkpoint | None:
        """The newest intact checkpoint, if it may be continued; truncates the history to it."""
        folder = self.folder.checkpoints
        sweep(folder)
        had_checkpoints = bool(present(folder))
        newest = checkpoint.newest(folder, lambda text: self.tell(Notice(text)))
        if had_checkpoints and not newest:
            self.tell(Notice("no whole checkpoint is left: the training starts again"))
        with checkpoint.used(newest.path if newest else folder):
            check_allowed(allow, self.facts, newest.facts if newest else {})
            if newest:
                for line in check_same(self.folder.path, newest.facts, self.facts, allow):
                    self.tell(Notice(line))
                self.tell(Notice(f"continuing from {newest.path.name}", progress=True))
                self.saved = (newest.scalars["update"], newest.path.name.endswith("-final"))
            self.history.begin(newest.scalars["history"] if newest else None)
        return newest

    def wants(self, at: Progress) -> bool:
        """Whether to write a checkpoint now: before an evaluation, or because its time has come."""
        every, seconds = self.settings.checkpoint_updates, self.settings.checkpoint_seconds
        by_time = seconds is not None and time.monotonic() - self._saved_at >= seconds
        return at.due or by_time or (every is not None and at.update % every == 0)

    def save(self, trainee: Trainee, at: Progress, final: bool = False) -> None:
        """Writes a checkpoint of this moment, unless it already exists."""
        if self.saved == (at.update, final):
            return
        scalars = {**at.scalars(), "history": self.history.mark()}
        path = checkpoint.save(
            self.folder.checkpoints,
            at.update,
            at.tensors(trainee),
            scalars,
            self.facts,
            final=final,
            best=at.best_update,
        )
        self.saved, self._saved_at = (at.update, final), time.monotonic()
        self.tell(CheckpointSaved(at.update, path))

    def close(self) -> None:
        self.history.close()
        self.timing.close()


def fit(
    trainee: Trainee,
    source: Source,
    validation: Validation | None,
    settings: TrainSettings,
    folder: RunFolder | None = None,
    watchers: Sequence[Watcher] = (),
    *,
    config: Mapping[str, Any] | RunSettings | None = None,
    allow: Collection[str] = (),
) -> Outcome:
    """Trains, or continues from the folder's newest intact checkpoint. Afterwards the model has the
    best weights. A finished run returns at once.

    folder: None trains in memory. config: the whole configuration by `table.key`, which must not
    change within a run; allow: keys that may have changed. A signal ends the run after the current
    update: it writes a checkpoint and raises Stopped."""
    known, team, signals = RunSettings.of(config), processes.team(), Signals()
    at = Progress.begin(trainee, settings, known.layers)
    with ExitStack() as stack:
        keeper = None
        if folder is not None:
            stack.enter_context(signals)
            if team.first:
                stack.enter_context(folder.locked())
                now = facts(trainee, source, validation, settings, team, known.values)
                keeper = Keeper(folder, settings, now, watchers)
                stack.callback(keeper.close)
        try:
            if folder is not None:
                _resume(trainee, at, keeper, folder, allow)
            reason = _run(trainee, source, validation, settings, at, keeper, watchers, signals)
        except Interrupted:
            raise Stopped(signals.number, at.update) from None
        except (MemoryError, RuntimeError) as error:
            if not no_memory(error):
                raise
            raise TrainingError(
                f"update {at.update + 1}: {out_of_memory(error)} in another run; "
                "the last checkpoint stands"
            ) from error
    at.restore_best(trainee)
    # a checkpoint returns them by name: sorted, so that a resumed run has the same order
    scores = None if at.best_scores is None else dict(sorted(at.best_scores.items()))
    return Outcome(at.update, at.epoch, reason, scores, at.best_update, at.stale)


def _resume(
    trainee: Trainee,
    at: Progress,
    keeper: Keeper | None,
    folder: RunFolder,
    allow: Collection[str],
) -> None:
    """Restores every process from the newest checkpoint, which the first process found."""
    progress = keeper.resume(allow) if keeper else None
    name = processes.team().broadcast(progress.path.name if progress else "-")
    if keeper is None and name != "-":
        try:
            progress = checkpoint.read(folder.checkpoints / name)
        except Damaged as why:
            raise RunError(
                f"{folder.path}: this process cannot read {name}, which the first process has "
                f"read: {why}"
            ) from None
    if progress:
        with checkpoint.used(progress.path):
            at.load(trainee, progress.tensors, progress.scalars)


def _run(
    trainee: Trainee,
    source: Source,
    validation: Validation | None,
    settings: TrainSettings,
    at: Progress,
    keeper: Keeper | None,
    watchers: Sequence[Watcher],
    signals: Signals,
) -> str:
    """Trains from `at` to the end; returns the reason for stopping."""
    team, reason = processes.team(), ""
    alone = team.world == 1
    if at.due or not ended(at, settings):
        with signals.harmless(alone):
            place = keeper.folder.checkpoints if keeper else None
            rehearse(trainee, source, validation, settings, at, place)
    rows = train(trainee, source, validation, settings, at)
    while True:
        with signals.harmless(alone and at.due):  # these weights have been saved
            row = next(rows, None)
        if row is None:
            return reason
        if keeper:
            keeper.tell(row)
        elif team.first:
            for watcher in watchers:
                watcher(row)
        stop = team.most(signals.number)
        if isinstance(row, Finished):
            reason = row.reason
            if keeper:
                keeper.save(trainee, at, final=True)
        elif keeper and isinstance(row, Update) and (stop or keeper.wants(at)):
            keeper.save(trainee, at)
        if stop and not isinstance(row, Validated):  # next comes a checkpoint with its scores
            raise Stopped(stop, at.update)

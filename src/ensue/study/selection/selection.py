"""Selection among models: each is trained, and only the best on validation is tested."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ensue.cells import CELLS
from ensue.errors import ConfigError, EnsueError, OptionError, RunError, unknown
from ensue.runs.config import AnyTask, RunConfig, changed
from ensue.runs.messages import Message, MessageCallback, nobody
from ensue.runs.run import seconds_trained
from ensue.runs.train import attempted, complete, settle, train_run
from ensue.study.selection.entries import Entry, Pace, Selection, entry_of, failure_of
from ensue.study.selection.folder import begun, read, refuse_links, selecting, tested, write
from ensue.tasks.blocks.encoders import ENCODERS
from ensue.training import RunFolder, Watcher

RECURRENT = "recurrent"
USUAL_CELLS = ("rnn", "gru", "lstm")
OUTSIDE_LISTS = re.compile(r",(?![^\[\]]*\])")  # a comma outside lists
PATIENCE = 3  # default patience


@dataclass(frozen=True)
class Candidate:
    """A candidate. name: its name as written; config: the configuration of its run."""

    name: str
    config: RunConfig

    @property
    def folder(self) -> str:
        """The name of its run's folder: lstm:layers=1 → lstm-layers=1."""
        return re.sub(r"[^\w.=+]+", "-", self.name)


def known_models(task: AnyTask) -> dict[str, dict[str, str]]:
    """The settings of each name: every family or encoder of this task's models, and every cell for
    the recurrent one (or the default, if none has this name); `model` if there is only one kind,
    distinguished by settings."""
    fields = task.settings.model_fields
    tables: dict[str, Mapping[str, object]] = {"family": task.families, "encoder": ENCODERS}
    key = next((table for table in tables if table in fields), "")
    kinds = tuple(tables[key]) if key else ()
    models = {kind: {key: kind} for kind in kinds if kind != RECURRENT}
    if "cell" in fields:
        recurrent = {key: RECURRENT} if RECURRENT in kinds else {}
        models |= {name.lower(): {**recurrent, "cell": name} for name in CELLS}
        models["rnn"] = models["simplernn"]
    return models or {"model": {}}


def usual_models(task: AnyTask) -> list[str]:
    """The default candidates: each family, and the best-known cells."""
    cells = {name.lower() for name in CELLS} | {"rnn"}
    known = known_models(task)
    return [name for name in known if name not in cells] + [n for n in USUAL_CELLS if n in known]


def split_names(models: str) -> list[str]:
    """
    >>> split_names("ngram:order=3, lstm:layers=1,hidden_size=400, gru")
    ['ngram:order=3', 'lstm:layers=1,hidden_size=400', 'gru']
    >>> split_names("model, model:hidden=[32, 16],init=positive")
    ['model', 'model:hidden=[32, 16],init=positive']
    """
    names: list[str] = []
    for piece in map(str.strip, OUTSIDE_LISTS.split(models)):
        head, equals, _ = piece.partition("=")
        if equals and ":" not in head and names:  # a further setting of the previous name
            names[-1] += f",{piece}"
        elif piece:
            names.append(piece)
    return names


def candidates_of(config: RunConfig, models: str) -> list[Candidate]:
    """The configuration with each model in it; by default, the usual models of the task. All
    mistakes raise errors before any training."""
    task = config.description
    names = split_names(models) if models.strip() else usual_models(task)
    has_patience = "patience" in config.train.model_fields_set or config.train.patience is not None
    early = [] if has_patience else [f"train.patience={PATIENCE}"]
    candidates: list[Candidate] = []
    for name in names:
        candidate = Candidate(name, _configured(config, name, known_models(task), early))
        for other in candidates:
            if candidate.config == other.config or candidate.folder == other.folder:
                raise OptionError(
                    f"--models: {other.name} and {candidate.name} are the same model; "
                    "name each once"
                )
        candidates.append(candidate)
    if len(candidates) < 2:
        raise OptionError(
            f"--models: expected two models or more to select from, got {names[0]}; "
            "`ensue train` trains one"
        )
    return candidates


def _configured(
    config: RunConfig, name: str, known: Mapping[str, dict[str, str]], early: Sequence[str]
) -> RunConfig:
    model, _, rest = name.partition(":")
    if model.strip().lower() not in known:
        raise unknown("model", model.strip(), known)
    stands_for = known[model.strip().lower()]
    pieces = OUTSIDE_LISTS.split(rest)
    settings = [_setting(name, piece, config.description) for piece in pieces if piece.strip()]
    words = [f"model.{key}={value}" for key, value in stands_for.items()]
    try:
        tables = changed(config.tables(), [*early, *words, *settings])
        return RunConfig.of(tables).with_named_cells()
    except ConfigError as error:
        raise ConfigError(f"--models {name}: {error}") from None


def _setting(name: str, setting: str, task: AnyTask) -> str:
    """A setting `key=value` of [model]; raises an error for settings that all candidates must
    share."""
    key, equals, value = (part.strip() for part in setting.partition("="))
    if not equals or not key:
        raise OptionError(
            f"--models {name}: expected name:key=value,key=value, such as "
            f"lstm:hidden_size=400,train.rate=0.002, got {setting.strip()!r}"
        )
    key = key if "." in key or key == "members" else f"model.{key}"
    table = key.partition(".")[0]
    if {table, key} & {*task.compared_on, "train.watch"}:
        raise OptionError(
            f"--models {name}: {key} must be the same for all, or their scores could not be "
            f"compared; give it with --set {key}={value}"
        )
    return f"{key}={value}"


def select_among(
    config: RunConfig,
    models: str,
    folder: Path | str,
    say: MessageCallback = nobody,
    watchers: Sequence[Watcher] = (),
) -> Selection:
    """Trains each of models ("ngram,gru,lstm:layers=1", "" for the default ones) in a subfolder,
    with the configuration's data and settings, except model settings. Evaluates the best one on
    validation on the test part. The same call resumes an interrupted selection.

    say: callback for messages; watchers: callbacks for every training."""
    place = Path(folder)
    with selecting(place):
        return _selected(config, models, place, say, watchers)


def _selected(
    config: RunConfig,
    models: str,
    place: Path,
    say: MessageCallback,
    watchers: Sequence[Watcher],
) -> Selection:
    config = complete(config, say)
    candidates = candidates_of(config, models)
    selection = begun(config)
    before = read(place, selection)
    refuse_links(place, [candidate.folder for candidate in candidates])
    for candidate in candidates:
        settle(RunFolder(place / candidate.folder), candidate.config)
    rows: list[Entry] = []
    for number, candidate in enumerate(candidates, 1):
        title = f"{number} of {len(candidates)}: {candidate.name}"
        row = _finished(place, candidate, before)
        if row is None:
            say(Message(title))
            row = _trained(place, candidate, selection.measure, say, watchers)
        message = row.failure or f"{selection.measure} {row.score:.4f} on validation"
        say(Message(f"{title}: {message}", warning=bool(row.failure)))
        rows.append(row)
        write(place, _so_far(selection, rows, before))
    selection = selection.ranked(rows)
    if selection.winner is None:
        reasons = [f"  {row.name}: {row.failure}" for row in selection.rows]
        raise RunError("\n".join(["no model could be trained", *reasons]))
    selection = replace(selection, test=tested(place, selection.winner, config, before, say))
    write(place, selection)
    return selection


def _so_far(selection: Selection, rows: Sequence[Entry], before: Selection | None) -> Selection:
    """A selection with these rows; later rows and the test are taken from an earlier call."""
    if before is None:
        return selection.ranked(rows)
    names = {row.name for row in rows}
    later = [row for row in before.rows if row.name not in names]
    return replace(selection.ranked([*rows, *later]), test=before.test)


def _finished(place: Path, candidate: Candidate, before: Selection | None) -> Entry | None:
    """The result of an earlier call for this candidate, if it was completed."""
    for row in before.rows if before else ():
        whole = RunFolder(place / candidate.folder).model.is_dir()
        if row.name == candidate.name and row.score is not None and whole:
            return row
    return None


def _trained(
    place: Path,
    candidate: Candidate,
    measure: str,
    say: MessageCallback,
    watchers: Sequence[Watcher],
) -> Entry:
    folder, pace = RunFolder(place / candidate.folder), Pace()
    entry = Entry(candidate.name, candidate.folder)
    earlier, began = seconds_trained(folder.path), time.monotonic()
    try:
        with attempted(folder):
            trained = train_run(candidate.config, folder, [*watchers, pace], say)
    except EnsueError as error:
        seconds = earlier + time.monotonic() - began
        return replace(entry, seconds=seconds, failure=failure_of(error, candidate.name))
    entry = replace(entry, seconds=earlier + time.monotonic() - began, speed=pace.speed)
    return entry_of(entry, trained, folder, measure)

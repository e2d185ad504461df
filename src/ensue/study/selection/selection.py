"""Selection among models: each is trained, the best on validation is tested, and it alone."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ensue.data.fingerprint import digest_of
from ensue.drawing import write as write_picture
from ensue.errors import DataError, EnsueError, OptionError, RunError
from ensue.files.atomic_folder import Damaged, finite, or_infinite, sealed, unsealed
from ensue.files.disk import write_whole
from ensue.files.opening import read_plain
from ensue.metrics.table import METRICS
from ensue.runs.config import RunConfig
from ensue.runs.evaluate import EvaluationRequest, evaluate_run
from ensue.runs.load import Loading
from ensue.runs.messages import Message, Say, nobody
from ensue.runs.run import seconds_trained
from ensue.runs.train import attempted, complete, settle, train_run
from ensue.study.selection.candidates import Candidate, candidates_of
from ensue.training import RunFolder, Update, Watcher
from ensue.training.rows import Row

UNSEALED, SEALED = 1, 2  # formats of the file
FILE, PICTURE = "selection.json", "selection.svg"


@dataclass(frozen=True)
class Entry:
    """What became of one candidate. score: on validation, of an ensemble the mean over its
    networks; parameters: of networks; size: bytes of the weights, or of all that was counted;
    seconds: all it took, however often it was interrupted; speed: tokens a second while weights
    were learned; failure: why there is no score, "" if there is one."""

    name: str
    folder: str
    what: str = ""
    parameters: int | None = None
    size: int = 0
    score: float | None = None
    epochs: int = 0
    seconds: float = 0.0
    speed: float | None = None
    failure: str = ""


@dataclass(frozen=True)
class WinnerVerdict:
    """The winner on the test part, with the 95 % interval, beside what it must beat; opened: how
    often this test part has been looked at by any run of this selection."""

    name: str
    measure: str
    rows: int
    value: float
    low: float
    high: float
    baselines: Mapping[str, float]
    opened: int


@dataclass(frozen=True)
class Selection:
    """rows: the best first, those that failed last; data: digest of all files."""

    task: str
    measure: str
    data: str
    rows: tuple[Entry, ...] = ()
    test: WinnerVerdict | None = None

    @property
    def higher_is_better(self) -> bool:
        return METRICS[self.measure].higher_is_better

    @property
    def winner(self) -> Entry | None:
        return self.rows[0] if self.rows and self.rows[0].score is not None else None

    def ranked(self, rows: Sequence[Entry]) -> Selection:
        """These rows by their scores; of equals the first stays first."""
        sign = -1 if self.higher_is_better else 1

        def place(row: Entry) -> tuple[bool, float]:
            return row.score is None, sign * (row.score or 0.0)

        return replace(self, rows=tuple(sorted(rows, key=place)))

    def as_json(self) -> dict[str, Any]:
        winner = self.winner.name if self.winner else None
        rows = [asdict(row) for row in self.rows]
        return {"format": SEALED, **asdict(self), "rows": rows, "winner": winner}

    def picture(self) -> str:
        """Quality against size and against time, as SVG."""
        from ensue.study.selection.picture import draw

        return draw(self)

    def __str__(self) -> str:
        from ensue.study.selection.table import as_text

        return as_text(self)


class Pace:
    """A watcher that measures tokens a second, evaluations and checkpoints left out."""

    def __init__(self) -> None:
        self._tokens = self._seconds = 0.0
        self._last = time.monotonic()

    def __call__(self, row: Row) -> None:
        now = time.monotonic()
        if isinstance(row, Update):
            self._tokens += row.tokens
            self._seconds += now - self._last
        self._last = now

    @property
    def speed(self) -> float | None:
        return self._tokens / self._seconds if self._tokens and self._seconds else None


def select(
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
    files = [*config.data.train, *config.data.validation, *config.data.test]
    found = Selection(config.task, config.train.watch, digest_of(files))
    before = _read(place, found, say)
    for own in candidates:
        settle(RunFolder(place / own.folder), own.config)
    rows: list[Entry] = []
    for number, own in enumerate(candidates, 1):
        title = f"{number} of {len(candidates)}: {own.name}"
        row = _finished(place, own, before)
        if row is None:
            say(Message(title))
            row = _trained(place, own, say, watch(own.config))
        told = row.failure or f"{found.measure} {row.score:.4f} on validation"
        say(Message(f"{title}: {told}", warning=bool(row.failure)))
        rows.append(row)
        write(place, _so_far(found, rows, before))
    found = found.ranked(rows)
    if found.winner is None:
        reasons = [f"  {row.name}: {row.failure}" for row in found.rows]
        raise RunError("\n".join(["no model could be trained", *reasons]))
    found = replace(found, test=_tested(place, found.winner, config, before, say))
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


def _trained(place: Path, candidate: Candidate, say: Say, watchers: Sequence[Watcher]) -> Entry:
    folder, pace = RunFolder(place / candidate.folder), Pace()
    entry = Entry(candidate.name, candidate.folder)
    earlier, began = seconds_trained(folder.path), time.monotonic()
    try:
        with attempted(folder):
            trained = train_run(candidate.config, folder, [*watchers, pace], say)
    except EnsueError as error:
        seconds = earlier + time.monotonic() - began
        return replace(entry, seconds=seconds, failure=str(error))
    weights = [p for network in trained.model.networks for p in network.parameters()]
    watched = [(own.scores or {})[candidate.config.train.watch] for own in trained.outcomes]
    size = sum(own.numel() * own.element_size() for own in weights)
    score, seconds = sum(watched) / len(watched), earlier + time.monotonic() - began
    if not math.isfinite(score):
        told = f"{candidate.config.train.watch} on validation is not a finite number"
        return replace(entry, seconds=seconds, failure=told)
    return replace(
        entry,
        what=trained.model.summary().splitlines()[0].partition(": ")[2],
        parameters=sum(own.numel() for own in weights) or None,
        size=size or sum(file.stat().st_size for file in folder.model.iterdir()),
        score=score,
        epochs=max(own.epochs for own in trained.outcomes),
        seconds=seconds,
        speed=pace.speed,
    )


def _tested(
    place: Path, winner: Entry, config: RunConfig, before: Selection | None, say: Say
) -> WinnerVerdict | None:
    """The winner's test, opened once; the others' stays sealed."""
    if before and before.test and before.test.name == winner.name:
        return before.test
    if config.data.validation and not config.data.test:
        say(Message("there is no test part: give one with --test", warning=True))
        return None
    try:
        request = EvaluationRequest(loading=Loading(device=config.train.device))
        opened = evaluate_run(RunFolder(place / winner.folder), request, say)
    except DataError as error:
        say(Message(f"not tested: {error}", warning=True))
        return None
    if opened.not_kept is not None:
        say(Message(str(opened.not_kept), warning=True))
    found = opened.evaluation
    main = found.scores[found.main]
    return WinnerVerdict(
        winner.name,
        found.main,
        found.rows,
        main.value,
        main.low,
        main.high,
        dict(found.baselines),
        opened.by_all,
    )


# --- as a file -----------------------------------------------------------------------------


def write(place: Path, selection: Selection) -> None:
    """selection.json, sealed by a digest of itself, and the picture, each whole or not at all."""
    write_whole(place / FILE, sealed(finite(selection.as_json()), sort=False))
    if selection.winner:
        write_picture(selection.picture(), place / PICTURE)


def _read(place: Path, now: Selection, say: Say) -> Selection | None:
    """What an earlier call wrote, if it was of the same data and measure."""
    path = place / FILE
    try:
        facts = _facts(path, say)
        rows = tuple(Entry(**row) for row in facts["rows"])
        test = None if facts["test"] is None else _verdict(facts["test"])
        before = Selection(facts["task"], facts["measure"], facts["data"], rows, test)
    except FileNotFoundError:
        return None
    except (OSError, Damaged, ValueError, KeyError, TypeError, RecursionError):
        raise RunError(
            f"{path}: this is not what Ensue wrote; put it back as it was, or move it away and the "
            "models are ranked anew, or name another --run"
        ) from None
    for key, what in {"task": "task", "measure": "train.watch", "data": "content of files"}.items():
        was, new = getattr(before, key), getattr(now, key)
        if was != new:
            raise RunError(
                f"{path}: the {what} of this selection was {was}, now it is {new}; models can be "
                "compared on the same only: undo the change, or name another --run"
            )
    return before


def _facts(path: Path, say: Say) -> dict[str, Any]:
    """What the file holds; Damaged where one bit differs."""
    data = read_plain(path)
    facts = json.loads(data)
    if facts["format"] == UNSEALED and "sha256" not in facts:
        say(
            Message(
                f"{path}: not sealed, as versions up to 0.2.0 wrote it, and taken as it is; it is "
                "sealed now",
                warning=True,
            )
        )
        return dict(facts)
    if facts["format"] != SEALED:
        raise Damaged(f"expected format {SEALED}, got {facts['format']!r}")
    return unsealed(data, path.name)


def _verdict(facts: Mapping[str, Any]) -> WinnerVerdict:
    """A number that JSON has not got, null, is infinite."""
    numbers = {name: or_infinite(facts[name]) for name in ("value", "low", "high")}
    baselines = {name: or_infinite(value) for name, value in facts["baselines"].items()}
    return WinnerVerdict(**{**facts, **numbers, "baselines": baselines})

"""The results of a selection: a ranked entry for each model, and the winner's test."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ensue.drawing.document import Document, Printed
from ensue.errors import (
    ConfigError,
    DataError,
    EnsueError,
    EquationError,
    OptionError,
    ShapeError,
    TrainingError,
)
from ensue.files.attempt import add_note
from ensue.files.format import FORMAT
from ensue.metrics.table import METRICS
from ensue.tasks.declarations import NOT_SAVED
from ensue.training import Update
from ensue.training.rows import Row

if TYPE_CHECKING:
    from ensue.runs.train import Trained
    from ensue.tasks.any_model import AnyModel
    from ensue.training import RunFolder

TRIAL = "trial-"
TOGETHER = "together"  # name of the ensemble of a selection


@dataclass(frozen=True)
class Entry:
    """The result of one candidate. score: validation score of the combined model; network: the
    score of the networks alone, for comparison with stopped trials; parameters: number of
    parameters of the networks; size: bytes of the weights, or of the model's files if there are
    none; seconds: total time, over interruptions; speed: tokens per second in training; failure:
    why the score is missing, else "".

    Only for trials: settings: the proposed ones, by key; rungs: the best score at each share of its
    training; stopped: why it was stopped early, else ""; around: seconds before its first update
    and after its last one; updates: number of updates when its time was over, else 0; after:
    seconds from its last update to its model; outputs: sha256 of the file with its answers for the
    validation part, "" without one."""

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
    settings: Annotated[Mapping[str, Any], NOT_SAVED] = field(default_factory=dict, hash=False)
    rungs: Mapping[str, float] = field(default_factory=dict, hash=False)
    stopped: str = ""
    around: float = 0.0
    updates: int = 0
    network: float | None = None
    after: float = 0.0
    outputs: str = ""

    @property
    def short(self) -> str:
        """The name next to a mark: 7 for trial-007."""
        number = self.name.removeprefix(TRIAL)
        return str(int(number)) if self.settings and number.isdigit() else self.name

    @property
    def title(self) -> str:
        """The name in a table; for a trial or an ensemble with its description."""
        if not self.settings and self.name != TOGETHER:
            return self.name
        return f"{self.name}  {self.what or ('stopped early' if self.stopped else '')}".rstrip()


FROM_SETTINGS = (ConfigError, DataError, EquationError, OptionError, ShapeError, TrainingError)


def failure_of(error: EnsueError, name: str) -> str:
    """The verdict on a candidate whose training failed by its settings and data. Raises the error
    again if it may pass: a full disk, a lock, too little memory, a killed process."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError | MemoryError) or (
            cause is error and not isinstance(cause, FROM_SETTINGS)
        ):
            add_note(error, f"This says nothing about {name}: the same command tries it again.")
            raise error
        hidden = None if cause.__suppress_context__ else cause.__context__
        cause = cause.__cause__ or hidden
    return str(error)


@dataclass(frozen=True)
class WinnerVerdict:
    """The winner on the test part, with the 95 % interval and baselines; opened: how often runs of
    this selection were evaluated on this test part; higher_is_better: for the measure, which may
    differ from the one for ranking."""

    name: str
    measure: str
    rows: int
    value: float
    low: float
    high: float
    baselines: Mapping[str, float]
    opened: int
    higher_is_better: bool


@dataclass(frozen=True)
class Selection(Printed):
    """The result of a selection.

    rows: finished trainings first, the best at the top, then stopped and failed ones; data: digest
    of all files; search: facts of the search, {} for named models; place: the folder, if known;
    label_type: type of the labels in its data frame."""

    task: str
    measure: str
    data: str
    rows: tuple[Entry, ...] = ()
    test: WinnerVerdict | None = None
    search: Mapping[str, Any] = field(default_factory=dict)
    place: Path | None = field(default=None, compare=False)
    label_type: str = field(default="", compare=False)

    def with_labels(self, label_type: str) -> Selection:
        """The same selection; its model answers data frames with labels of this type."""
        return replace(self, label_type=label_type)

    @property
    def model(self) -> AnyModel:
        """The winner, loaded from its run folder."""
        from ensue.runs.load import load

        if self.place is None or self.winner is None:
            raise OptionError(
                "this selection has no winner in a folder; `search` returns one that has"
            )
        winner = load(self.place / self.winner.folder)
        winner.label_type = winner.label_type or self.label_type
        return winner

    @property
    def higher_is_better(self) -> bool:
        return METRICS[self.measure].higher_is_better

    @property
    def winner(self) -> Entry | None:
        return self.rows[0] if self.rows and self.rows[0].score is not None else None

    def ranked(self, rows: Sequence[Entry]) -> Selection:
        """These rows by score; equal ones keep their order."""
        sign = -1 if self.higher_is_better else 1

        def place(row: Entry) -> tuple[bool, bool, float]:
            return row.score is None, bool(row.stopped), sign * (row.score or 0.0)

        return replace(self, rows=tuple(sorted(rows, key=place)))

    def changed(self, row: Entry) -> dict[str, Any]:
        """The settings of a trial that differ from the default, which is the first trial."""
        default = next((row.settings for row in self.rows if row.name == f"{TRIAL}000"), {})
        return {
            key: setting for key, setting in row.settings.items() if default.get(key) != setting
        }

    def as_json(self) -> dict[str, Any]:
        winner = self.winner.name if self.winner else None
        rows = [asdict(row) for row in self.rows]
        facts = asdict(replace(self, place=None))
        del facts["place"], facts["label_type"]
        return {"format": FORMAT, **facts, "rows": rows, "winner": winner}

    def picture(self) -> str:
        """Scores by size and by time, as SVG."""
        from ensue.study.selection.table import draw

        return draw(self)

    def document(self) -> Document:
        from ensue.study.selection.table import document

        return document(self)


class Pace:
    """A watcher that measures tokens per second, without evaluations and checkpoints."""

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


def entry_of(entry: Entry, trained: Trained, folder: RunFolder, measure: str) -> Entry:
    """The result of a finished training. Its score is the score of the combined model. For one
    network, or a task without a combined score, it is the score of the best weights."""
    weights = [p for network in trained.model.networks for p in network.parameters()]
    scores = [(outcome.scores or {}).get(measure, math.nan) for outcome in trained.outcomes]
    size = sum(weight.numel() * weight.element_size() for weight in weights)
    network = sum(scores) / len(scores)
    score = trained.answer.get(measure, network)
    if not math.isfinite(score):
        return replace(entry, failure=f"{measure} on validation is not a finite number")
    return replace(
        entry,
        what=trained.model.summary().splitlines()[0].partition(": ")[2],
        parameters=sum(weight.numel() for weight in weights) or None,
        size=size or sum(file.stat().st_size for file in folder.model.iterdir()),
        score=score,
        network=network if math.isfinite(network) else None,
        epochs=max(outcome.epochs for outcome in trained.outcomes),
    )

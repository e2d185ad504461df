"""`Run`: the facts of a run folder, read without loading the model."""

from __future__ import annotations

import os
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ensue.data.parallel import BETWEEN, sides_of
from ensue.drawing.document import Cell, Document, Printed, Section, Table
from ensue.drawing.layout import local_time, score_text, size_text, time_text
from ensue.errors import EnsueError, RunError
from ensue.escape import in_shell
from ensue.files.atomic_folder import Damaged, digest, unsealed
from ensue.files.attempt import failure_of
from ensue.files.chain import Lines, history_seen, newest_scalars, read_history
from ensue.files.format import check_format
from ensue.files.opening import HISTORY_FILE, read_plain
from ensue.files.run_folder import RunFolder
from ensue.files.seal import seal_folder, seal_in, sealed_config
from ensue.runs.evaluations import Evaluated, current_evaluations

if TYPE_CHECKING:
    from ensue.runs.compare import Comparison
    from ensue.runs.config import RunConfig
    from ensue.tasks.any_model import AnyModel
    from ensue.tasks.evaluation.report import Evaluation

# Errors that reading invalid files may raise.
FAULTS = (KeyError, TypeError, ValueError, AttributeError, OSError, RecursionError)
MOST_NETWORKS = 5  # whose curves are drawn
SKIPPED = ("checkpoints", "members", "refit", "model", "learned", "evaluation-rows")


class Tested(NamedTuple):
    """The main score on a test part; rows: the size of that part."""

    score: str
    value: float
    rows: int


@dataclass(frozen=True)
class RunSummary:
    """A run in one line. data: names of the training files; best: validation score of the combined
    model; tested: latest score on the test part; when: the time of the last write by training, UTC;
    seconds: total training time, over interruptions; size: bytes on the disk."""

    name: str
    task: str
    data: str
    watch: str
    best: float | None
    tested: Tested | None
    state: str
    when: str
    seconds: float
    size: int

    def cells(self) -> tuple[str, ...]:
        """The cells of the run's row in a table; see HEAD."""
        best = "–" if self.best is None else f"{self.watch} {score_text(self.best)}"
        test = self.tested
        tested = "–" if test is None else f"{test.score} {score_text(test.value)}"
        when = local_time(self.when)
        trained = time_text(self.seconds) if self.seconds else "–"
        return (
            self.name, self.task, self.data, best, tested, self.state, when, trained,
            size_text(self.size),
        )  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        tested = None if self.tested is None else self.tested._asdict()
        return {**asdict(self), "tested": tested}


HEAD = ("run", "task", "data", "validation", "test", "state", "when", "trained", "size")


class Run(Printed):
    """A run folder.

        run = Run("dates")
        run.state, run.best, run.evaluation()
        run.model().predict(["le 3 mai 1997"])

    >>> Run.below(".")  # this folder has no runs
    []
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = RunFolder(folder)
        if not self.folder.config.is_file():
            raise RunError(
                f"{self.path}: there is no run here; train one: "
                f"`ensue train FILE --run {in_shell(self.path)}`"
            )

    @classmethod
    def below(cls, folder: Path | str = ".") -> list[Run]:
        """The runs in a folder and in the folders below it, by name."""
        place = Path(folder)
        if not place.is_dir():
            raise RunError(f"{place}: there is no such folder")
        return [cls(folder) for folder in sorted(_run_folders(place))]

    @property
    def path(self) -> Path:
        return self.folder.path

    # ------------------------------------------------------------- what it follows from
    @property
    def config(self) -> RunConfig:
        """The whole configuration."""
        from ensue.runs.config import RunConfig

        return RunConfig.of_text(self._config_text(), self.folder.config)

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """The tables of config.toml; verifies that the run was trained with them."""
        try:
            return tomllib.loads(self._config_text().decode())
        except (OSError, ValueError, RecursionError) as error:
            raise RunError(f"{self.folder.config}: this is not TOML: {error}") from None

    def _config_text(self) -> bytes:
        """The sealed text of config.toml; the file itself while the run is being trained."""
        self.folder.check_weights()
        place = None if self.folder.holder() else seal_folder(self.folder)
        if place is None:
            return read_plain(self.folder.config)
        try:
            return sealed_config(self.folder, place, seal_in(place))[0]
        except Damaged as why:
            raise RunError(f"{place}: this is not what Ensue wrote: {why}") from None

    def setting(self, table: str, key: str) -> Any:
        values = self.settings.get(table)
        if not isinstance(values, dict) or key not in values:
            raise RunError(f"{self.folder.config}: expected {table}.{key}, got nothing")
        return values[key]

    @property
    def task(self) -> str:
        return str(self.settings.get("task", ""))

    # ------------------------------------------------------------- how it went
    def history(self, member: int = 1) -> list[dict[str, Any]]:
        """The rows of history.jsonl, updates and evaluations in their order, of a network."""
        folder, known = self._network(member), self._ended().get("histories", [])
        place, lines = folder.history, history_seen(folder.checkpoints)
        rows = list(_lines(place))  # names the changed line, if possible
        if len(known) < member:
            read_history(place, lines)
        elif digest(read_plain(place, HISTORY_FILE)) != known[member - 1]:
            raise RunError(f"{place}: changed since the training ended. Restore it")
        return rows

    def timing(self, member: int = 1) -> list[dict[str, Any]]:
        """The rows of timing.jsonl: when each row of the history was written, over all
        resumptions."""
        return list(_lines(self._network(member).timing))

    def _network(self, member: int) -> RunFolder:
        return self.folder if member == 1 else self.folder.member(member)

    @property
    def best(self) -> float | None:
        """The validation score of the combined model; if there is none, the mean of the networks'
        scores."""
        watch = self.setting("train", "watch")
        scores = [outcome["scores"] for outcome in self._outcomes() if outcome["scores"]]
        known = [each[watch] for each in scores if each.get(watch) is not None]
        return sum(known) / len(known) if known else None

    def _outcomes(self) -> list[dict[str, Any]]:
        """The best validation of each network, from training.json or else from the history."""
        if ended := self._ended():
            answer = ended.get("answer", {})
            return (
                [{"scores": answer}]
                if self.setting("train", "watch") in answer
                else ended["networks"]
            )
        rows = [self.history(k) for k, _ in enumerate(self.folder.members(), 1)]
        best = [[row for row in rows_of_member if row.get("best")] for rows_of_member in rows]
        return [
            {"scores": rows_of_member[-1]["scores"] if rows_of_member else None}
            for rows_of_member in best
        ]

    def _ended(self) -> dict[str, Any]:
        """The content of training.json if the run is finished, else {}."""
        place = self.folder.training
        if not place.is_file() or self.folder.learned.is_dir():
            return {}
        try:
            facts = unsealed(read_plain(place), place.name)
            check_format(facts.get("format"), place)
            return facts
        except (OSError, Damaged) as why:
            raise RunError(f"{self.path}: {why}; train it again") from None

    @property
    def state(self) -> str:
        """finished, running, failed, stopped at epoch 3 of 10, not started."""
        folder = self.folder
        if folder.holder():
            return f"running, {self._reached()}" if self.history() else "running"
        if (failure := failure_of(folder)) is not None:
            return f"failed: {failure.reason}"
        if folder.model.is_dir() and not folder.learned.is_dir():
            return "finished"
        if folder.has_weights():
            return f"stopped, {self._reached()}"
        return "not started"

    def _reached(self) -> str:
        """The progress of the network that is currently trained."""
        members, of = self.folder.members(), int(self.settings.get("members", 1))
        rows = self.history(len(members))
        epoch = max(rows[-1]["epoch"] if rows else 0, _saved_epoch(members[-1]))
        which = f" of network {len(members)} of {of}" if of > 1 else ""
        return f"epoch {epoch} of {self.setting('train', 'epochs')}{which}"

    @property
    def seconds(self) -> float:
        """Total training time, over all resumptions."""
        return seconds_trained(self.path)

    @property
    def when(self) -> str:
        """The last moment of training, UTC."""
        clocks = [row["clock"] for row in self.timing() if "clock" in row]
        if clocks:
            return str(clocks[-1])
        place = self.folder.training if self.folder.training.exists() else self.folder.config
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(place.stat().st_mtime))

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return sum(file.lstat().st_size for file in self.path.rglob("*") if file.is_file())

    # ------------------------------------------------------------- what came of it
    def evaluations(self) -> list[Evaluated]:
        """The stored evaluations of the run's current model, latest last."""
        return current_evaluations(self.folder)

    def evaluation(self, part: str = "test") -> Evaluation | None:
        """The latest evaluation of a part, test or validation; None if there is none."""
        from ensue.tasks import TASKS

        kind = TASKS[self.task].evaluation_class
        evaluations = [
            evaluation
            for evaluation in current_evaluations(self.folder, kind)
            if evaluation.part == part
        ]
        return evaluations[-1].evaluation if evaluations else None

    def evaluate(
        self,
        part: str = "test",
        *,
        test: Sequence[Path | str] = (),
        trust: bool | str | Sequence[str] = False,
        device: str = "auto",
        **options: Any,
    ) -> Evaluation:
        """Like `ensue evaluate`: evaluates the test or validation part, stores the result in the
        folder, and records that the test part was opened. test: files instead of the run's own;
        trust, device: as in `ensue.load`; options: options of the task, such as beam=5."""
        from ensue.runs.evaluate import evaluate_in_python
        from ensue.runs.load import Loading
        from ensue.tasks.saved_cells import Trust

        files, how = [str(file) for file in test], Loading(Trust(trust), device)
        return evaluate_in_python(self.folder, part, files, options, how)

    def model(self, **how: Any) -> AnyModel:
        """The model; how: keyword arguments of `ensue.load`."""
        from ensue.runs.load import load

        return load(self.path, **how)

    def compare(self, *others: Run | Path | str, part: str = "test") -> Comparison:
        """Compares with other runs on the rows that all were evaluated on. part: "test", which each
        run must have evaluated; or "validation", which is evaluated now if necessary."""
        from ensue.runs.compare import compare_runs
        from ensue.runs.evaluate import evaluate_validation

        folders = [run.path if isinstance(run, Run) else run for run in (self, *others)]
        return compare_runs(folders, part, evaluate_validation)

    # ------------------------------------------------------------- to be looked at
    def summary(self, name: str = "") -> RunSummary:
        """A summary of the run. name: the default is the name of its folder."""
        self.folder.check_weights()
        tests = [evaluation for evaluation in self.evaluations() if evaluation.part == "test"]
        tested = None
        if tests:
            evaluation = tests[-1].evaluation
            tested = Tested(
                evaluation.main, evaluation.scores[evaluation.main].value, evaluation.rows
            )
        files = [
            BETWEEN.join(Path(side).name for side in sides_of(path))
            for path in self.setting("data", "train")
        ]
        return RunSummary(
            name=name or self.path.resolve().name,
            task=self.task,
            data=", ".join(files),
            watch=str(self.setting("train", "watch")),
            best=self.best,
            tested=tested,
            state=self.state,
            when=self.when,
            seconds=self.seconds,
            size=self.size,
        )

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    def document(self) -> Document:
        """The state of the run, the course of validation, and its evaluations."""
        return _document(self)


def name_below(path: Path, folder: Path) -> str:
    """The name of a run in a list of the runs in and below a folder."""
    name = str(path.relative_to(folder))
    return path.resolve().name if name == "." else name


def _run_folders(place: Path) -> Iterator[Path]:
    """Folders with a configuration and another file of a run, at any depth. Links are not followed,
    and folders that cannot be read are left out."""
    waiting = [str(place)]
    while waiting:
        folder, entries = waiting.pop(), list[os.DirEntry[str]]()
        with suppress(OSError), os.scandir(folder) as opened:
            entries = list(opened)
        below = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
        names = {entry.name for entry in entries}
        has_config = os.path.isfile(os.path.join(folder, "config.toml"))
        if has_config and {"model", "checkpoints", "lock"} & names:
            below = [entry for entry in below if entry.name not in SKIPPED]
            yield Path(folder)
        waiting += [entry.path for entry in below if not entry.name.startswith(".")]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file of JSON lines, without a truncated last line."""
    try:
        lines = Lines.of(read_plain(path, HISTORY_FILE))
    except FileNotFoundError:
        return
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error}") from None
    if lines.wrong:
        raise RunError(
            f"{path}:{lines.wrong[0]}: not as written: changed, or lines before it are missing. "
            "Restore the file"
        )
    yield from lines.values


def _saved_epoch(folder: RunFolder) -> int:
    """The epoch of the newest checkpoint, from 1; 0 if none can be read. (The history has only some
    of the updates.)"""
    at = newest_scalars(folder.checkpoints)
    try:
        return int(at["epoch"]) + int(at["position"] > 0)
    except (KeyError, TypeError, ValueError):
        return 0  # resuming reports the problem


def seconds_trained(folder: Path) -> float:
    """Total training time of a run and its members; each resumption counts from zero."""
    total = last = 0.0
    for file in sorted(folder.rglob("timing.jsonl")):
        for row in _lines(file):
            seconds = float(row["seconds"])
            total += last if seconds < last else 0.0
            last = seconds
        total, last = total + last, 0.0
    return total


@dataclass(frozen=True)
class Listed(Printed):
    """The runs below a folder, and a line for each that cannot be read."""

    runs: list[RunSummary]
    broken: list[str]

    def as_json(self) -> dict[str, Any]:
        return {"runs": [run.as_json() for run in self.runs], "broken": self.broken}

    def document(self) -> Document:
        rows = [run.cells() for run in self.runs]
        return Document("Runs", "", [Table(rows, HEAD, left=len(HEAD) - 2)])


def list_runs(folder: Path | str) -> Listed:
    place = Path(folder)
    runs, broken = [], []
    for run in Run.below(place):
        try:
            runs.append(run.summary(name_below(run.path, place)))
        except EnsueError as error:
            broken.append(str(error).partition("\n")[0])
        except FAULTS as error:
            broken.append(f"{run.path}: this is not a run written by Ensue: {error!r}")
    return Listed(runs, broken)


# --- as a document ---------------------------------------------------------------------------


def _document(run: Run) -> Document:
    summary = run.summary()
    rows: list[tuple[str, Cell]] = [
        ("run", summary.name),
        ("task", summary.task),
        ("data", summary.data),
        *_validation(run, summary.watch, summary.best),
        ("state", summary.state),
        ("trained", f"{time_text(summary.seconds)}, until {local_time(summary.when)}"),
        ("size", size_text(summary.size)),
    ]
    sections = map(_evaluated, run.evaluations())
    return Document(f"Run {summary.name}", "", [Table(rows, left=2, room=10), *sections])


def _validation(run: Run, watch: str, best: float | None) -> list[tuple[str, Cell]]:
    """The watched score of each network as a curve; for a solved network only the score."""
    from ensue.tasks.model_page import score_curve

    validation: list[tuple[str, Cell]] = []
    networks = len(run.folder.members())
    for member in range(1, min(networks, MOST_NETWORKS) + 1):
        rows = [row for row in run.history(member) if watch in row.get("scores", {})]
        if rows:
            scores = [(row["update"], row["scores"][watch], row["best"]) for row in rows]
            name = f"validation {watch}" + f", network {member}" * (networks > 1)
            validation.append((name, score_curve(scores)))
    if not validation and best is not None:
        validation.append((f"validation {watch}", score_text(best)))
    return validation


def _evaluated(evaluated: Evaluated) -> Section:
    """The scores of a part."""
    evaluation = evaluated.evaluation
    files = ", ".join(Path(file.path).name for file in evaluated.files)
    rows = [
        (name, f"{value:.4f}", f"{low:.4f} … {high:.4f}")
        for name, (value, low, high) in evaluation.scores.items()
    ]
    title = f"{evaluated.part} part of {files}: {evaluation.rows:,} rows, {evaluated.when[:10]}"
    return Section(title, [Table(rows, ("score", "value", "95 % interval"))])

"""What faults are done to: a small run of every task, trained by the command line, and its data.

Each is made when a case first asks for it, kept in the work folder, and copied before use."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import task_data
import toy_task
from made_once import made_once
from task_laws import FILED, TABLE, Row
from test_task_laws import SOURCE, has_cell

import ensue
from ensue.tasks import TASKS
from ensue.training import checkpoint
from faults import processes
from faults.events import count_events
from faults.journal import code_digest

CELL = "mine.py"
# What holds times or the number of a process, and what `evaluate` adds.
OTHERS = ("timing.jsonl", "lock", "card.md", "evaluation.json")
ROWS = "evaluation-rows"


@dataclass(frozen=True)
class Subject:
    """A command that trains. cell: with a custom cell, from a file; split: all parts are split
    off one file."""

    row: Row
    cell: bool = False
    split: bool = False

    def __str__(self) -> str:
        more = " of its own cell" * self.cell + " split" * self.split
        return f"{self.row}{more}".replace(" ", "-")

    def words(self, folder: Path) -> list[str]:
        """The arguments of `ensue train`, after its files are written into a folder."""
        words = self.row.write(folder)
        if self.split:
            rows = [row for part in self.row.parts() for row in part]
            name = self.row.data.write(folder / f"all{self.row.data.suffix}", rows)
            words = [name, *self.row.train_options()]
        if self.cell:
            (folder / CELL).write_text(SOURCE, "utf-8")
            words += ["--set", f"model.cell={CELL}:MyCell"]
        return words

    @property
    def questions(self) -> str:
        """The file of questions."""
        return f"asked{self.row.data.suffix}"


def _has_files(row: Row) -> bool:
    return bool(row.data.names) or isinstance(row.data, task_data.PictureFolders)


OWN_CELLS, SPLIT = ("classify", "translate", "forecast"), ("classify", "table", "label", "regress")
SUBJECTS = [
    *(Subject(row) for row in TABLE if row.filed or (row.members > 1 and _has_files(row))),
    *(Subject(row, cell=True) for row in FILED if has_cell(row) and row.task in OWN_CELLS),
    *(Subject(row, split=True) for row in FILED if row.task in SPLIT),
]


def chosen(draw: random.Random, fits: Callable[[Subject], bool] = lambda subject: True) -> Subject:
    return draw.choice([subject for subject in SUBJECTS if fits(subject)])


def make_ready() -> None:
    """In a process that forks commands: it knows the custom task, and is warm."""
    if toy_task.TASK.name not in TASKS:
        TASKS.register(toy_task.TASK)
    processes.warm()


@cache
def material_code() -> str:
    """Of the code that makes the folders: those of other code are of no use."""
    return code_digest("src")[:12]


class Material:
    """A folder made from a subject: its files, `words.json`, and run/, finished and evaluated. On
    demand also stopped/, in the middle of its training, and model/, saved from Python."""

    def __init__(self, work: Path, subject: Subject) -> None:
        self.subject, self.place = subject, work / "material" / material_code() / str(subject)
        with made_once(self.place) as half:
            if half is not None:
                self._make(half)

    def _make(self, folder: Path) -> None:
        words = self.subject.words(folder)
        (folder / "words.json").write_text(json.dumps(words))
        begun, log = time.monotonic(), folder / "log"
        done(processes.forked(
            folder, ["train", *words, "--run", "run"], log, lambda: count_events(folder / "events")
        ), log)  # fmt: skip
        (folder / "seconds").write_text(str(time.monotonic() - begun))
        done(processes.forked(folder, ["evaluate", "run", *self.trust], log), log)

    def _stop(self, folder: Path) -> None:
        self.copy(folder, "")
        words, log = ["train", *self.words, "--run", "stopped"], folder / "log"
        code = processes.wait(processes.forked(folder, words, log, _stop_after_a_checkpoint))
        assert code == 128 + signal.SIGTERM, processes.tail(log)

    def _save(self, folder: Path) -> None:
        def save() -> None:
            ensue.load(self.place / "run", trust=True).save(folder / "model")
            os._exit(0)

        done(processes.forked(folder, [], folder / "log", save), folder / "log")

    def _part(self, name: str) -> Path:
        """Where run, stopped or model is."""
        if name == "run":
            return self.place / name
        place = self.place.with_name(f"{self.place.name}-{name}")
        with made_once(place) as half:
            if half is not None:
                {"stopped": self._stop, "model": self._save}[name](half)
        return place / name

    @property
    def trust(self) -> list[str]:
        return ["--trust-cell"] * self.subject.cell

    @cached_property
    def words(self) -> list[str]:
        return list(json.loads((self.place / "words.json").read_text()))

    @cached_property
    def seconds(self) -> float:
        return float((self.place / "seconds").read_text())

    @cached_property
    def events(self) -> int:
        """How often an undisturbed training changed something on the disk."""
        return int((self.place / "events").read_text())

    @cached_property
    def state(self) -> dict[str, str]:
        """What every run of this command must end with."""
        return state(self.place / "run")

    def copy(self, folder: Path, part: str = "") -> Path:
        """A new folder with the data, and run, stopped or model."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.place, folder, ignore=shutil.ignore_patterns("run", "log", "events"))
        if part:
            shutil.copytree(self._part(part), folder / part)
        return folder


def done(process: int, log: Path) -> None:
    assert processes.wait(process) == 0, processes.tail(log)


def _stop_after_a_checkpoint() -> None:
    """In a child: asks the training to end once it is under way; the first checkpoint is the one
    that is tried before the first update."""
    save, saved = checkpoint.save, [0]

    def save_and_stop(*arguments: Any, **named: Any) -> Path:
        folder = save(*arguments, **named)
        saved[0] += 1
        if saved[0] == 3:
            signal.raise_signal(signal.SIGTERM)
        return folder

    checkpoint.save = save_and_stop


def state(run: Path) -> dict[str, str]:
    """sha256 of what must not depend on how often a run was stopped, members included: weights,
    what else was learned, history, configuration, and the final checkpoint."""
    digests = {}
    for path in sorted(run.rglob("*")):
        name = str(path.relative_to(run))
        inside = "checkpoints" in path.parts and not path.parent.name.endswith("-final")
        if path.is_file() and path.name not in OTHERS and not inside and ROWS not in path.parts:
            digests[name] = sha256(path.read_bytes()).hexdigest()
    return digests

"""The folders that commands are tried on, and the table of those commands.

A command joins the campaigns by a row of `COMMANDS`. A command of `ensue` that has no row stands in
`IN_NO_CAMPAIGN` with the reason; a test compares both with the commands of the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from made_once import made_once
from test_transfer import reviews

from faults import material, processes
from faults.material import Material, Subject, done, state

# commands of seconds, and how often they are run
SLOW, SLOW_SHARE = ("export", "study", "suggest", "generate", "--workers", "pretrain"), 0.25
PYTHON, PROGRAM = "load and predict", "exported program"
SMALL = (
    *("--epochs", "1", "--set", "train.device=cpu"),
    *("--set", "text.level=words", "--set", "text.min_count=1"),
)
SIZES = ("--hidden-size", "4", "--set", "model.embedding_size=4")
TINY = (*SMALL, *SIZES, "--set", "model.batch_rows=8")
LETTERS = (
    *("--task", "language", "--epochs", "1", *SIZES, "--set", "text.level=characters"),
    *("--set", "model.columns=4", "--set", "model.steps=20"),
)
EVERYWHERE = ("canaries", "flips", "folders", "kills", "streams")
READING = ("canaries", "flips", "folders", "streams")  # of commands that write nothing to continue
SUBJECTS = "the run of every task"
CLOCKED = ("optuna.db", "selection.", "test-openings")  # files of a selection
TIMES = ("seconds", "speed", "around", "after")  # of a trial, by the clock


@dataclass(frozen=True)
class Command:
    """name: as the help has it, with the option that matters; scene: the folder that it is tried
    in; words: {…} is filled in from the files of a subject; writes: what it makes, which is the
    same however often the command was killed and started again; answers: on standard output."""

    name: str
    scene: str
    words: tuple[str, ...]
    writes: str = ""
    campaigns: tuple[str, ...] = READING

    @property
    def verb(self) -> str:
        """Without its option.

        >>> Command("train --base", "bases", ()).verb
        'train'
        """
        return self.name.partition(" --")[0]

    @property
    def is_slow(self) -> bool:
        return any(word in SLOW for word in self.words)


REVIEWS = ("train", "rows.csv", *SMALL)
TAGS = ("train", "tags.conll", *TINY)
BOTH = ("--base", "forward", "--base", "backward")
SELECT = ("select", "rows.csv", *TINY, "--quiet", "--run", "chosen")
COMMANDS = (
    Command("runs", SUBJECTS, ("runs", ".")),
    Command("compare", SUBJECTS, ("compare", "run", "run"), campaigns=("canaries", "folders")),
    Command("train", SUBJECTS, ("train", "--run", "run"), "run", EVERYWHERE),
    Command("evaluate", SUBJECTS, ("evaluate", "run", "--json")),
    Command("evaluate --best-so-far", SUBJECTS, ("evaluate", "run", "--best-so-far")),
    Command("predict", SUBJECTS, ("predict", "run", "{questions}", "--json")),
    Command(
        "predict --workers", SUBJECTS, ("predict", "run", "{questions}", "--workers", "2"),
        campaigns=("canaries", "folders"),
    ),
    Command("explain", SUBJECTS, ("explain", "run", "{questions}"), campaigns=("canaries",)),
    Command("flow", SUBJECTS, ("flow", "run"), campaigns=("canaries",)),
    Command("generate", SUBJECTS, ("generate", "run", "--tokens", "3"), campaigns=("canaries",)),
    Command("fill", SUBJECTS, ("fill", "run", "--text", "a ___ b"), campaigns=("canaries",)),
    Command(
        "study labels", SUBJECTS, ("study", "labels", "run", "--labels", "8"),
        campaigns=("canaries",),
    ),
    Command(
        "export", SUBJECTS, ("export", "run", "model.js", "--unchecked"), "model.js",
        ("canaries", "folders"),
    ),
    Command(
        "export", SUBJECTS, ("export", "run", "model.onnx", "--unchecked"),
        campaigns=("canaries",),
    ),
    # bases
    Command(
        "train --base", "bases", (*REVIEWS, "--base", "lm", "--run", "new"), "new", EVERYWHERE
    ),
    Command("train --base", "bases", (*REVIEWS, "--base", "lm", "--run", "reviews")),
    Command("train --base", "bases", (*REVIEWS, "--base", "reviews", "--run", "newer"),
            campaigns=("canaries", "folders")),
    Command(
        "pretrain", "bases",
        ("pretrain", "texts.txt", "--base", "lm", "--epochs", "1", "--run", "language"),
        "language", EVERYWHERE,
    ),
    Command("train --base", "bases", (*TAGS, *BOTH, "--run", "tags"),
            campaigns=("canaries", "flips", "folders")),
    Command("train --base", "bases", (*TAGS, *BOTH, "--run", "new-tags"), "new-tags",
            ("canaries", "folders", "kills")),
    Command("evaluate", "bases", ("evaluate", "tags"), campaigns=("canaries", "folders")),
    Command("predict", "bases", ("predict", "tags", "tags.conll")),
    Command("export", "bases", ("export", "reviews", "reviews.js", "--unchecked"), "reviews.js",
            ("canaries", "flips", "folders", "kills")),
    Command("study labels", "bases", ("study", "labels", "reviews", "--labels", "8"),
            "reviews-labels", EVERYWHERE),
    Command("explain", "bases", ("explain", "tags", "tags.conll")),
    Command("generate", "bases", ("generate", "lm", "--tokens", "3")),
    Command("fill", "bases", ("fill", "lm", "--text", "a ___ film"),
            campaigns=("canaries", "folders")),
    Command("flow", "bases", ("flow", "reviews", "--updates", "0"),
            campaigns=("canaries", "folders")),
    Command(PYTHON, "bases", (PYTHON, "tags"), campaigns=("canaries", "folders")),
    Command(PYTHON, "bases", (PYTHON, "lm"), campaigns=("canaries", "folders")),
    # selections
    Command("select", "selection", (*SELECT, "--trials", "2", "--together"), "chosen", EVERYWHERE),
    Command("select", "selection", (*SELECT, "--trials", "3"), campaigns=("canaries", "folders")),
    Command("runs", "selection", ("runs", "chosen")),
    Command("compare", "selection",
            ("compare", "chosen/trial-000", "chosen/trial-001", "--validation")),
    Command("evaluate", "selection", ("evaluate", "chosen/trial-000"),
            campaigns=("canaries", "folders")),
    Command("predict", "selection", ("predict", "chosen/trial-001", "rows.csv")),
    Command("predict", "selection", ("predict", "chosen/together", "rows.csv"),
            campaigns=("canaries", "folders")),
    Command("train", "selection", ("train", "--run", "chosen/trial-000"),
            campaigns=("canaries", "folders")),
    Command(PYTHON, "selection", (PYTHON, "chosen/together"), campaigns=("canaries", "folders")),
    # several networks
    Command(
        "train --workers", "members",
        (*REVIEWS, *SIZES, "--members", "2", "--workers", "2", "--run", "several"),
        "several", EVERYWHERE,
    ),
    Command(
        "predict --workers", "members",
        ("predict", "several", "rows.csv", "--workers", "2", "--out", "answers.csv"),
        "answers.csv", EVERYWHERE,
    ),
    # exports
    Command("export", "export", ("export", "run", "export/model.onnx", "--unchecked"),
            "export/model.onnx", EVERYWHERE),
    Command("predict", "export", ("predict", "export", "rows.csv"),
            campaigns=("canaries", "folders")),
    Command("train --base", "export",
            ("train", "rows.csv", *TINY, "--base", "export", "--run", "new"),
            campaigns=("canaries", "folders")),
    Command("runs", "export", ("runs", "export"), campaigns=("canaries", "folders")),
)  # fmt: skip
# What is asked of no campaign, by command, and why.
IN_NO_CAMPAIGN = {
    "demo": "reads no file of others: it makes its data, and trains as `train` does",
    "doctor": "reads no file",
    "settings": "prints a table of the source",
    "init": "reads data files, as the campaign `files` does, and writes one configuration",
    "data check": "the campaign `files` reads mutated files with it",
    "data show": "the campaign `files` reads mutated files with it",
    "data make": "writes data of its own",
    "data ngrams": "reads data files, as the campaign `files` does, and counts",
    "suggest": "asks for lines typed; tests/test_streams.py loses each of its streams",
    "backprop": "computes an example of its own, or a cell that a person names",
    "graph": "draws an equation that a person types",
    "positions": "draws a table of the source",
    "lab": "trains on data of its own",
    "memory": "trains on data of its own, with cells that a person names",
    "cell list": "prints a table of the source",
    "cell show": "reads the file of a cell that a person names, which runs with all rights",
    "bench": "measures the engine, or a cell that a person names",
}


# --- the folders ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Scene:
    """make: fills a folder; planted: the folders in it whose files are changed."""

    name: str
    make: Callable[[Path, Path], object]
    planted: Sequence[str]
    subject: Subject | None = None

    def __str__(self) -> str:
        return self.name

    def commands(self, campaign: str) -> list[Command]:
        scene = SUBJECTS if self.subject else self.name
        rows = [row for row in COMMANDS if row.scene == scene and campaign in row.campaigns]
        return [self._filled(row) for row in rows]

    def _filled(self, row: Command) -> Command:
        if self.subject is None:
            return row
        words = tuple(word.replace("{questions}", self.subject.questions) for word in row.words)
        return Command(row.name, row.scene, words, row.writes, row.campaigns)

    def every_command(self, folder: Path, campaign: str) -> list[list[str]]:
        """The words of all of them, with those that follow from the files of the folder."""
        words = [list(command.words) for command in self.commands(campaign)]
        if self.subject is not None:
            training = json.loads((folder / "words.json").read_text())
            words += [
                ["train", *training, "--run", "run"],
                ["train", *training, "--run", "new", "--base", "run"],
                [PYTHON, "run"],
                [PYTHON, "run/model"],
            ]
        scripts = folder.glob("export/**/*.py") if self.name == "export" else ()
        programs = [[PROGRAM, str(script.relative_to(folder))] for script in scripts]
        return [*words, *(program for program in programs if "canary.py" not in program[1])]


def of_subject(subject: Subject) -> Scene:
    def make(work: Path, folder: Path) -> None:
        Material(work, subject).copy(folder, "run")

    return Scene(str(subject), make, ["run"], subject)


def _ensue(folder: Path, words: Sequence[str]) -> None:
    done(processes.forked(folder, words, folder / "log"), folder / "log")


def _rows(folder: Path) -> None:
    rows = reviews(40)
    (folder / "rows.csv").write_text("\n".join(["text,label", *(f"{t},{y}" for t, y in rows)]))
    (folder / "texts.txt").write_text("\n".join(text for text, _ in rows))
    tagged = [[f"{word}\t{'X' if len(word) > 3 else 'Y'}" for word in t.split()] for t, _ in rows]
    (folder / "tags.conll").write_text("\n\n".join("\n".join(lines) for lines in tagged) + "\n")


def _bases(work: Path, folder: Path) -> None:
    _rows(folder)
    for way in ("forward", "backward"):
        ways = ["--set", f"model.direction={way}", "--run", way]
        _ensue(folder, ["train", "texts.txt", *LETTERS, *ways])
    _ensue(folder, ["train", "texts.txt", "--task", "language", *SMALL, *SIZES, "--run", "lm"])
    _ensue(folder, [*REVIEWS, "--base", "lm", "--run", "reviews"])
    _ensue(folder, [*TAGS, *BOTH, "--run", "tags"])


def _selection(work: Path, folder: Path) -> None:
    _rows(folder)
    _ensue(folder, [*SELECT, "--trials", "2", "--together"])


def _members(work: Path, folder: Path) -> None:
    _rows(folder)
    _ensue(folder, [*REVIEWS, *SIZES, "--members", "2", "--run", "several"])


def _export(work: Path, folder: Path) -> None:
    _rows(folder)
    _ensue(folder, ["train", "rows.csv", *TINY, "--run", "run"])
    (folder / "export").mkdir()
    _ensue(folder, ["export", "run", "export/model.onnx"])


FURTHER = (
    Scene("bases", _bases, ("lm", "reviews", "tags", "forward")),
    Scene("selection", _selection, ("chosen",)),
    Scene("members", _members, ("several",)),
    Scene("export", _export, ("run", "export")),
)


def further() -> tuple[Scene, ...]:
    """Those that are no run of the material."""
    return FURTHER


def scenes() -> list[Scene]:
    """Every run of the material, and more than once what has the more ways in."""
    return [
        *map(of_subject, material.SUBJECTS),
        *FURTHER * max(1, len(material.SUBJECTS) // 6),
    ]


def ready(work: Path, scene: Scene) -> Path:
    """The folder of a scene, made once for all workers."""
    folder = work / "scenes" / material.material_code() / str(scene)
    with made_once(folder) as half:
        if half is not None:
            scene.make(work, half)
    return folder


# --- what a command has made ---------------------------------------------------------------


def result(folder: Path, writes: str) -> dict[str, str]:
    """sha256 of what a command has written, without the times in it."""
    place = folder / writes
    if not place.is_dir():
        return {writes: sha256(place.read_bytes()).hexdigest()} if place.exists() else {}
    digests = state(place)
    for name in [name for name in digests if name.startswith(CLOCKED)]:
        del digests[name]
    if (listed := place / "selection.json").exists():
        facts = _timeless(json.loads(listed.read_text()))
        digests["selection.json"] = sha256(json.dumps(facts).encode()).hexdigest()
    return digests


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        left = value.keys() - {*TIMES, "sha256", "opened"}
        return {key: _timeless(value[key]) for key in sorted(left)}
    return [_timeless(inside) for inside in value] if isinstance(value, list) else value

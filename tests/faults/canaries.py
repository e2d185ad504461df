"""References to code inside saved files: a canary file that leaves a mark when it is imported is
named at a string of a run, a base, an export or a selection, under valid digests. Whatever is done
with the folder, the canary is never imported."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from canary import Canary, plant, strings_in
from made_once import made_once
from test_transfer import reviews

import ensue
from ensue.errors import EnsueError
from faults import material, processes
from faults.campaign import FINE, HANG, RAN, TRACEBACK, Campaign, Case, Outcome
from faults.folders import asked_to_stop
from faults.inside import command, without_syncing
from faults.limits import Hangs, processor_seconds
from faults.material import Material, Subject, done, make_ready

SECONDS = 30.0  # of processor time for one command
TRAINED = 3.0  # seconds after which a training is asked to stop
SLOW, SLOW_SHARE = ("export", "--workers"), 0.25  # commands of seconds, and how often they are run
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


@dataclass(frozen=True)
class Scene:
    """make: fills a folder; planted: the folders in it whose files are changed; commands: what is
    done with them then, each on a fresh copy."""

    name: str
    make: Callable[[Path, Path], object]
    planted: Sequence[str]
    commands: Callable[[Path], list[list[str]]]

    def __str__(self) -> str:
        return self.name


# --- the run of every task -----------------------------------------------------------------


def _subject(subject: Subject) -> Scene:
    def make(work: Path, folder: Path) -> None:
        Material(work, subject).copy(folder, "run")

    def commands(folder: Path) -> list[list[str]]:
        words = json.loads((folder / "words.json").read_text())
        return [
            ["runs", "."],
            ["compare", "run", "run"],
            ["train", "--run", "run"],
            ["train", *words, "--run", "run"],
            ["train", *words, "--run", "new", "--base", "run"],
            ["evaluate", "run", "--json"],
            ["evaluate", "run", "--best-so-far"],
            ["predict", "run", subject.questions, "--json"],
            ["predict", "run", subject.questions, "--workers", "1"],
            ["explain", "run", subject.questions],
            ["flow", "run"],
            ["generate", "run"],
            ["fill", "run", "--text", "a ___ b"],
            ["study", "labels", "run", "--labels", "8"],
            ["export", "run", "model.js", "--unchecked"],
            ["export", "run", "model.onnx", "--unchecked"],
            [PYTHON, "run"],
            [PYTHON, "run/model"],
        ]

    return Scene(str(subject), make, ["run"], commands)


# --- bases, selections, exports ------------------------------------------------------------


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
    _ensue(folder, ["train", "rows.csv", *SMALL, "--base", "lm", "--run", "reviews"])
    both = ["--base", "forward", "--base", "backward", "--run", "tags"]
    _ensue(folder, ["train", "tags.conll", *TINY, *both])


def _base_commands(folder: Path) -> list[list[str]]:
    reviews, tags = ["train", "rows.csv", *SMALL], ["train", "tags.conll", *TINY]
    letters = ["--base", "forward", "--base", "backward"]
    return [
        [*reviews, "--base", "lm", "--run", "reviews"],
        [*reviews, "--base", "lm", "--run", "new"],
        [*reviews, "--base", "reviews", "--run", "newer"],
        ["pretrain", "texts.txt", "--base", "lm", "--epochs", "1", "--run", "language"],
        [*tags, *letters, "--run", "tags"],
        [*tags, *letters, "--run", "new-tags"],
        ["evaluate", "tags"],
        ["predict", "tags", "tags.conll"],
        ["export", "tags", "tags.js", "--unchecked"],
        ["study", "labels", "reviews", "--labels", "8"],
        ["explain", "tags", "tags.conll"],
        [PYTHON, "tags"],
        [PYTHON, "lm"],
    ]


def _selection(work: Path, folder: Path) -> None:
    _rows(folder)
    _ensue(folder, ["select", "rows.csv", *TINY, "--trials", "2", "--together", "--run", "chosen"])


def _selection_commands(folder: Path) -> list[list[str]]:
    again = ["select", "rows.csv", *TINY, "--run", "chosen"]
    return [
        [*again, "--trials", "2", "--together"],
        [*again, "--trials", "3"],
        ["runs", "chosen"],
        ["compare", "chosen/trial-000", "chosen/trial-001", "--validation"],
        ["evaluate", "chosen/trial-000"],
        ["predict", "chosen/trial-000", "rows.csv"],
        ["predict", "chosen/together", "rows.csv"],
        ["train", "--run", "chosen/trial-000"],
        [PYTHON, "chosen/together"],
    ]


def _export(work: Path, folder: Path) -> None:
    _rows(folder)
    _ensue(folder, ["train", "rows.csv", *TINY, "--run", "run"])
    (folder / "export").mkdir()
    _ensue(folder, ["export", "run", "export/model.onnx"])


def _export_commands(folder: Path) -> list[list[str]]:
    return [
        *([PROGRAM, str(script.relative_to(folder))] for script in folder.glob("export/**/*.py")),
        ["export", "run", "export/model.onnx", "--unchecked"],
        ["predict", "export", "rows.csv"],
        ["train", "rows.csv", *TINY, "--base", "export", "--run", "new"],
        ["runs", "export"],
    ]


def scenes() -> list[Scene]:
    """Every run of the material, and more than once what has the more ways in."""
    others = [
        Scene("bases", _bases, ("lm", "reviews", "tags", "forward"), _base_commands),
        Scene("selection", _selection, ("chosen",), _selection_commands),
        Scene("export", _export, ("export",), _export_commands),
    ]
    return [*map(_subject, material.SUBJECTS), *others * max(1, len(material.SUBJECTS) // 6)]


# --- what is done with them ----------------------------------------------------------------


def _done(folder: Path, words: list[str]) -> None:
    verb, *rest = words
    if verb == PYTHON:
        try:
            ensue.load(folder / rest[0]).predict(["a text"])
        except (EnsueError, TypeError, ValueError, IndexError, AttributeError):
            return  # questions of another task: the model was loaded before
    elif verb == PROGRAM:
        subprocess.run(
            [sys.executable, rest[0]],
            cwd=folder,
            input=b"a text\n",
            capture_output=True,
            timeout=60,
            check=False,
        )
    else:
        command(folder, words)


def used(folder: Path, words: list[str]) -> Outcome:
    try:
        with processor_seconds(SECONDS), asked_to_stop(TRAINED):
            _done(folder, words)
    except Hangs:
        return Outcome(HANG, f"{words[0]}: over {SECONDS:.0f} s of processor time")
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        return Outcome(TRACEBACK, f"{words[0]}: {type(error).__name__} at {where}: {error}"[:300])
    return Outcome(FINE, "")


def begin(work: Path, place: Path) -> Case:
    make_ready()
    without_syncing()

    def ready(scene: Scene) -> Path:
        """The folder of a scene, made once for all workers."""
        scenes_folder = work / "scenes" / material.material_code() / str(scene)
        with made_once(scenes_folder) as half:
            if half is not None:
                scene.make(work, half)
        return scenes_folder

    def case(draw: random.Random) -> Outcome:
        scene = draw.choice(scenes())
        whole, folder, canary = ready(scene), place / "case", Canary(place / "canary")
        canary.mark.unlink(missing_ok=True)
        planted = draw.choice(scene.planted)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        at, reference = draw.choice(strings_in(folder / planted)), draw.choice(canary.references)
        plant(folder / planted, at, reference)
        what = f"{scene} {planted}/{at}"
        for words in scene.commands(folder):
            if any(word in SLOW for word in words) and draw.random() > SLOW_SHARE:
                continue  # they load the model as the others do
            outcome = used(folder, words)
            if canary.sang:
                return Outcome(RAN, f"{what}: {' '.join(words)}")
            if outcome.kind != FINE:
                return outcome._replace(what=f"{what}: {outcome.what}")
        return Outcome(FINE, what)

    return case


CANARIES = Campaign("canaries", 1200, 240.0, begin)

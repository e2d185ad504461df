"""Runs that version 0.1.0 wrote load, go on and answer as they did, wherever their folders now lie.

The cases in version_0_1_0/ were made by 0.1.0 (see version_0_1_0/make.py) at a place that is not
there any more. Each is copied as a whole, with its data beside the run. Numbers are compared within
tolerances, for their last bits differ between processors."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
import torch
from commands import Ensue, commands_in
from version_0_1_0.weights import summary

CASES = sorted(path.parent for path in Path(__file__).parent.glob("version_0_1_0/*/case.json"))
TASKS = {"classify", "label", "language", "translate", "forecast", "table", "image", "caption"}
SOLVED = 5e-3  # the same of baselines that are solved anew: rounding decides when iterations end
ANSWERED = 1e-4  # relative and absolute: how far answers and scores may be from those of 0.1.0
TRAINED = 1e-3  # the same for what was trained further
# of an evaluation: these name files, libraries, and how often the test part was opened
NOT_COMPARED = {"worst", "notes", "opened", "opened_by_this_run"}


def differences(was: Any, now: Any, tolerance: float, at: str = "") -> Iterator[str]:
    """Where two JSON values differ by more than the tolerance; keys may have been added."""
    number = not isinstance(was, bool) and isinstance(was, int | float)
    if isinstance(was, dict) and isinstance(now, dict):
        sure = was.get("low") == was.get("high") in (0, 1)  # 0.1.0 had no doubt in few rows
        for key, own in was.items():
            if sure and key in ("low", "high"):
                continue
            yield from differences(own, now.get(key), tolerance, f"{at}.{key}")
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for k, (one, other) in enumerate(zip(was, now, strict=True)):
            yield from differences(one, other, tolerance, f"{at}[{k}]")
    elif number and isinstance(now, int | float):
        if not math.isclose(was, now, rel_tol=tolerance, abs_tol=tolerance):
            yield f"{at}: was {was}, now {now}"
    elif was != now:
        yield f"{at}: was {was!r}, now {now!r}"


def with_plain_names(value: Any) -> Any:
    """The same with keys such as macro-F1, "log loss" and R² as macro_f1, log_loss and r2: 0.1.0
    spelt the names of scores in several ways."""
    if isinstance(value, dict):
        names = {key: re.sub(r"\W+", "_", normalize("NFKC", key)).lower() for key in value}
        return {names[key]: with_plain_names(own) for key, own in value.items()}
    return [with_plain_names(own) for own in value] if isinstance(value, list) else value


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a case."""
    return Path(shutil.copytree(request.param, tmp_path / request.param.name))


@pytest.fixture
def ensue(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(folder, capsys, monkeypatch)


def printed(ensue: Ensue, *arguments: str) -> str:
    """What a command printed that ended well."""
    code, out, err = ensue(*arguments)
    assert code == 0, err
    return out


def commands(folder: Path) -> dict[str, list[str]]:
    """The arguments that the run was trained with, and those it was asked with."""
    return dict(json.loads((folder / "case.json").read_text("utf-8")))


def allowed(run: Path) -> list[str]:
    """Another torch than the one a run began with has to be allowed."""
    manifests = (json.loads(path.read_text("utf-8")) for path in run.rglob("step-*/manifest.json"))
    other = any(own["torch"] != torch.__version__ for own in manifests)
    return ["--allow", "torch"] if other else []


def learned(run: Path) -> dict[str, bytes]:
    """The files of a run that training it further would change."""
    paths = [*run.rglob("history.jsonl"), *run.rglob("checkpoints/*/*")]
    return {str(path.relative_to(run)): path.read_bytes() for path in paths}


def test_every_task_has_a_case_and_one_that_was_stopped() -> None:
    def tasks(cases: list[Path]) -> set[str]:
        return {case.name.partition("-")[0] for case in cases}

    assert tasks(CASES) == TASKS
    assert tasks([case for case in CASES if (case / "stopped").is_dir()]) == TASKS


def test_answers_are_the_same(folder: Path, ensue: Ensue) -> None:
    found = printed(ensue, "predict", "run", *commands(folder)["predict"], "--json")
    was = (folder / "predicted.jsonl").read_text("utf-8")
    before, now = ([json.loads(line) for line in text.splitlines()] for text in (was, found))
    assert len(before) >= 3
    if folder.name.startswith("table"):  # whose rows were lists of cells, "column<tab>text"
        for answer in before:
            answer["input"] = dict(cell.split("\t") for cell in answer["input"])
    assert list(differences(before, now, ANSWERED)) == []


def test_scores_are_the_same_and_openings_are_counted_on(folder: Path, ensue: Ensue) -> None:
    found = json.loads(printed(ensue, "evaluate", "run", "--json"))
    was = json.loads((folder / "evaluated.json").read_text("utf-8"))
    compared = {key: value for key, value in was.items() if key not in NOT_COMPARED}
    compared, now = with_plain_names(compared), with_plain_names(found)
    assert list(differences(compared, now, ANSWERED)) == []
    assert (found["opened"], found["opened_by_this_run"]) == (2, 2)


@pytest.mark.parametrize("with_files", [False, True], ids=["run alone", "whole command"])
def test_a_finished_run_stays_as_it_is(folder: Path, ensue: Ensue, with_files: bool) -> None:
    run = folder / "run"
    before, weights = learned(run), summary(run / "model")
    given = commands(folder)["train"] if with_files else []
    printed(ensue, "train", *given, "--run", "run", *allowed(run))
    assert learned(run) == before
    now = summary(run / "model")
    assert now.keys() - weights.keys() <= {"arrays/shifts"}  # quantiles, which came later
    assert weights.keys() <= now.keys()
    for name, own in weights.items():
        tolerance = SOLVED if name.startswith("arrays/linear") else ANSWERED
        assert list(differences(own, now[name], tolerance, name)) == []


@pytest.mark.parametrize(
    "folder", [case for case in CASES if (case / "stopped").is_dir()], ids=lambda c: c.name,
    indirect=True,
)  # fmt: skip
def test_a_stopped_run_goes_on_to_the_same_end(folder: Path, ensue: Ensue) -> None:
    run = folder / "stopped"
    timings = {path: len(path.read_bytes()) for path in run.rglob("timing.jsonl")}
    stopped_at = {path: _newest_update(path.parent) for path in timings}
    assert not (run / "model").exists()
    printed(ensue, "train", "--run", "stopped", *allowed(run))
    for path, length in timings.items():  # it went on, and did not begin anew
        rows = [json.loads(line) for line in path.read_bytes()[length:].splitlines()]
        assert all(row["update"] >= stopped_at[path] for row in rows)
    was = json.loads((folder / "continued.json").read_text("utf-8"))
    scores = json.loads(printed(ensue, "evaluate", "stopped", "--validation", "--json"))["scores"]
    before, now = with_plain_names(was["scores"]), with_plain_names(scores)
    assert list(differences(before, now, TRAINED)) == []
    assert list(differences(was["weights"], summary(run / "model"), TRAINED)) == []


def _newest_update(run: Path) -> int:
    """That of its newest checkpoint, step-000123 or step-000123-final."""
    return max(int(path.name.split("-")[1]) for path in run.glob("checkpoints/step-*"))


LOADED = """
import sys
from pathlib import Path
import ensue
for folder in sys.argv[1:]:
    ensue.load(Path(folder, "run"))
    assert "torch._dynamo" not in sys.modules, folder
"""


def test_no_model_needs_torchs_compiler_to_be_loaded() -> None:
    """It takes a second to import, and was, for every answer that a command gave."""
    folders = [str(case) for case in CASES]
    run = subprocess.run(
        [sys.executable, "-c", LOADED, *folders], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr

"""Runs of format 3 load, answer, are evaluated, go on and are saved as they were: format_3/make.py
has made them. Numbers are compared within tolerances, for their last bits differ between
processors."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import safetensors.numpy
import torch
from commands import Ensue, commands_in

from ensue import Run, load
from ensue.tasks import TASKS

HERE = Path(__file__).parent / "format_3"
ARCHIVES = sorted(HERE.glob("*.zip"))
ANSWERED = 1e-4  # relative and absolute: how far answers and scores may be from those that were
SOLVED = 5e-3  # the same of linear models that are solved again: rounding decides when they end
LARGEST = 300_000  # bytes of all archives


def differences(was: Any, now: Any, tolerance: float, at: str = "") -> Iterator[str]:
    """Where two JSON values differ by more than the tolerance; keys may have been added."""
    number = not isinstance(was, bool) and isinstance(was, int | float)
    if isinstance(was, dict) and isinstance(now, dict):
        for key, value in was.items():
            yield from differences(value, now.get(key), tolerance, f"{at}.{key}")
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for k, (one, other) in enumerate(zip(was, now, strict=True)):
            yield from differences(one, other, tolerance, f"{at}[{k}]")
    elif number and isinstance(now, int | float):
        if not math.isclose(was, now, rel_tol=tolerance, abs_tol=tolerance):
            yield f"{at}: was {was}, now {now}"
    elif was != now:
        yield f"{at}: was {was!r}, now {now!r}"


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.stem)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A case, at a place where its run was never trained."""
    with ZipFile(request.param) as file:
        file.extractall(tmp_path / request.param.stem)
    return tmp_path / request.param.stem


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


def case_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "case.json").read_text("utf-8")))


def arrays_of(model: Path) -> dict[str, dict[str, Any]]:
    """The numbers of a saved model by file and name."""
    return {
        path.name: {
            name: array.tolist() for name, array in safetensors.numpy.load_file(path).items()
        }
        for path in sorted(model.glob("*.safetensors"))
    }


def allowed(run: Path) -> list[str]:
    """Another torch than the one a run began with has to be allowed."""
    manifests = [json.loads(path.read_text("utf-8")) for path in run.rglob("step-*/manifest.json")]
    assert manifests
    other = any(manifest["torch"] != torch.__version__ for manifest in manifests)
    return ["--allow", "torch"] if other else []


def test_every_task_has_a_case() -> None:
    assert {path.stem for path in ARCHIVES} == {*TASKS}
    assert sum(path.stat().st_size for path in ARCHIVES) <= LARGEST


def test_answers_are_the_same(folder: Path, ensue: Ensue) -> None:
    case = case_of(folder)
    output = printed(ensue, "predict", "run", *case["predict"], "--json")
    assert case["answers"]
    answers = [json.loads(line) for line in output.splitlines()]
    assert list(differences(case["answers"], answers, ANSWERED)) == []


def test_scores_are_the_same(folder: Path, ensue: Ensue) -> None:
    case = case_of(folder)
    stored = Run("run").evaluation()
    assert stored is not None
    assert list(differences(case["scores"], stored.as_json()["scores"], 0.0)) == []
    evaluation = json.loads(printed(ensue, "evaluate", "run", "--json"))
    assert list(differences(case["scores"], evaluation["scores"], ANSWERED)) == []
    assert "run" in printed(ensue, "runs")


@pytest.mark.parametrize("with_files", [False, True], ids=["run alone", "whole command"])
def test_a_finished_run_stays_as_it_is(folder: Path, ensue: Ensue, with_files: bool) -> None:
    run = folder / "run"
    paths = [run / "history.jsonl", *run.rglob("checkpoints/*/*")]
    before = {path: path.read_bytes() for path in paths}
    arrays, state = arrays_of(run / "model"), Run(run).state
    words = case_of(folder)["train"] if with_files else []
    printed(ensue, "train", *words, "--run", "run", *allowed(run))
    assert {path: path.read_bytes() for path in paths} == before
    assert state == Run(run).state == "finished"
    now = arrays_of(run / "model")
    assert now.keys() == arrays.keys()
    assert list(differences(arrays, now, SOLVED)) == []


def test_a_model_is_saved_as_it_was(folder: Path, ensue: Ensue) -> None:
    model = load("run")
    model.save("saved")
    assert arrays_of(folder / "saved") == arrays_of(folder / "run" / "model")
    for name in ("model.json", "vocabularies.json"):
        was, now = (
            json.loads((folder / place / name).read_text("utf-8"))
            for place in ("run/model", "saved")
        )
        was.pop("ensue", None)
        assert list(differences(was, now, 0.0)) == []
    assert str(load("saved")) == str(model)

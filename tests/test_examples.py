"""The examples: one for each task, short, quick, and better than what they are compared with."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from ensue import Evaluation, Model
from ensue.tasks import ROOMS

FOLDER = Path(__file__).resolve().parent.parent / "examples"
MOST_LINES = 60
# of a mixture that answers: it need not beat its parts, and must not be worse beyond chance
PARTS = {"network alone", "linear chain"}
PUBLIC = {"ensue", "ensue.data.tasks", "ensue.data.tasks.series"}


def source(task: str) -> str:
    return (FOLDER / f"{task}.py").read_text("utf-8")


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> list[Evaluation]:
    """Those that a script makes."""
    recorded: list[Evaluation] = []
    evaluate = Model.evaluate

    def noted(model: Any, data: Any, **options: Any) -> Evaluation:
        recorded.append(evaluate(model, data, **options))
        return recorded[-1]

    monkeypatch.setattr(Model, "evaluate", noted)
    return recorded


def run(task: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    runpy.run_path(str(FOLDER / f"{task}.py"), run_name="__main__")


@pytest.mark.parametrize("task", ROOMS)
def test_an_example_runs_and_beats_its_baselines(
    task: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    evaluations: list[Evaluation],
) -> None:
    run(task, tmp_path, monkeypatch)
    out, _ = capsys.readouterr()
    (evaluation,) = evaluations
    assert evaluation.as_text() in out, "with its baselines"
    score = evaluation.scores[evaluation.main]
    parts = {name: evaluation.baselines[name] for name in PARTS & evaluation.baselines.keys()}
    others = [baseline for name, baseline in evaluation.baselines.items() if name not in parts]
    if evaluation.higher_is_better:
        assert score.low > max(others)
        assert all(score.high >= part for part in parts.values())
    else:
        assert score.high < min(others)
        assert all(score.low <= part for part in parts.values())
    assert re.search(r"the same answers? after loading: True", out)
    assert (tmp_path / "example-models" / task / "model.json").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["example-models"]


def test_an_example_prints_the_same_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where its models are there already."""
    outputs = []
    for _ in range(2):
        run("forecast", tmp_path, monkeypatch)
        lines = capsys.readouterr().out.splitlines()
        outputs.append([line for line in lines if line and "have been evaluated" not in line])
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("task", ROOMS)
def test_an_example_is_short_and_uses_public_names(task: str) -> None:
    text = source(task)
    assert text.count("\n") < MOST_LINES
    assert f"`python examples/{task}.py`" in (ast.get_docstring(ast.parse(text)) or "")
    assert "Larger: " in text
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    ours = {node.module: {alias.name for alias in node.names} for node in imports}
    ours = {module: names for module, names in ours.items() if str(module).startswith("ensue")}
    assert ours.keys() <= PUBLIC
    assert "load" in ours["ensue"]


def test_the_list_of_examples_is_complete() -> None:
    listed = re.findall(r"^\| \[(\w+)\.py\]\(\1\.py\) \|", (FOLDER / "README.md").read_text(), re.M)
    scripts = {path.stem for path in FOLDER.glob("*.py")}
    assert set(listed) == scripts
    assert scripts >= set(ROOMS)
    assert len(listed) == len(scripts)

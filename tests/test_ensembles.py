"""Ensembles of trials: forward selection on validation, and a run folder that every verb knows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Ensue, commands_in
from job_machines import Here
from task_laws import FILED, Row

import ensue as package
from ensue.errors import OptionError, RunError
from ensue.jobs import MACHINES
from ensue.runs.load import load, load_run
from ensue.study.selection.ensemble import MOST, forward_selected, write_ensemble
from ensue.tasks import TASKS
from ensue.tasks.evaluation.openings import OPENINGS
from ensue.training import RunFolder

AVERAGED = [row for row in FILED if row.task in TASKS and TASKS[row.task].averages is not None]
of_all = pytest.mark.parametrize("row", AVERAGED, ids=lambda row: row.task)


# --- forward selection -----------------------------------------------------------------------


def distance(outputs: Sequence[Any]) -> float:
    """Of the mean from 1."""
    return float(abs(np.mean(outputs) - 1))


def test_whatever_makes_the_mean_best_is_added() -> None:
    outputs = {"near": [np.array(1.3)], "below": [np.array(0.5)], "far": [np.array(9.0)]}
    counts, score = forward_selected(outputs, distance, higher_is_better=False)
    assert counts == {"near": 2, "below": 1}
    assert score == pytest.approx(1 / 30)
    higher, best = forward_selected(
        outputs, lambda weights: -distance(weights), higher_is_better=True
    )
    assert higher == counts
    assert best == pytest.approx(-1 / 30)


def test_the_best_alone_stays_alone() -> None:
    outputs = {"best": [np.array(1.1)], "worse": [np.array(1.2)], "same": [np.array(1.1)]}
    assert forward_selected(outputs, distance, False)[0] == {"best": 1}
    endless = {"a": [np.array(0.0)]}
    selection = forward_selected(endless, lambda members: float(len(members)), True)
    assert selection[0] == {"a": MOST}


# --- run folders -----------------------------------------------------------------------------


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


ROWS = {"train": 48, "validation": 16}


def trained(row: Row, ensue: Ensue, folder: Path, *seeds: int) -> list[RunFolder]:
    """A run for each seed."""
    words = row.write(folder)
    for seed in seeds:
        code, _, err = ensue("train", *words, "--seed", str(seed), "--run", f"r{seed}", "--quiet")
        assert code == 0, err
    return [RunFolder(folder / f"r{seed}") for seed in seeds]


@of_all
def test_an_ensemble_is_a_run(row: Row, ensue: Ensue, tmp_path: Path) -> None:
    """Of one run twice, it is that run. It is asked, tested and loaded like any other, and moved
    without the runs."""
    (run,) = trained(row, ensue, tmp_path, 1)
    input_files = [f"asked{row.data.suffix}"] if TASKS[row.task].needs_input else []
    written = write_ensemble(RunFolder(tmp_path / "both"), [run, run], [2, 1], ROWS, {"cost": 0.5})
    code, out, err = ensue("predict", "both", *input_files)
    assert code == 0, err
    if row.task != "label":  # whose one network looks for the best labels of a row together
        assert out == ensue("predict", "r1", *input_files)[1]
    code, scores, err = ensue("evaluate", "both", "--json")
    assert code == 0, err
    assert json.loads(scores)["opened_by_this_run"] == 1
    model = load(tmp_path / "both")
    assert model.summary() == written.summary()
    assert "the mean of 2 models" in model.summary()
    (tmp_path / "both").rename(tmp_path / "moved")
    (tmp_path / "r1").rename(tmp_path / "gone")
    assert ensue("predict", "moved", *input_files)[1] == out


def test_the_mean_of_outputs_answers(
    ensue: Ensue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = next(row for row in AVERAGED if row.task == "classify")
    runs = trained(row, ensue, tmp_path, 1, 2)
    write_ensemble(RunFolder(tmp_path / "both"), runs, [2, 1], ROWS, {})
    texts = row.questions()
    one, two, both = (load(tmp_path / name).predict(texts) for name in ("r1", "r2", "both"))
    for first, second, mean in zip(one, two, both, strict=True):
        for label, p in mean.probabilities.items():
            expected = (2 * first.probabilities[label] + second.probabilities[label]) / 3
            assert p == pytest.approx(expected)
    alone = ensue("predict", "both", "asked.csv")
    monkeypatch.setitem(MACHINES, "local", lambda workers, threads: Here(workers, last_first=True))
    assert ensue("predict", "both", "asked.csv", "--workers", "2") == alone


def test_what_an_ensemble_is_not_for(ensue: Ensue, tmp_path: Path) -> None:
    row = next(row for row in AVERAGED if row.task == "table")
    (run,) = trained(row, ensue, tmp_path, 1)
    folder = RunFolder(tmp_path / "both")
    write_ensemble(folder, [run, run], [1, 1], ROWS, {})
    code, _, err = ensue("train", "--run", "both")
    assert code == 2
    assert "both: this folder holds an ensemble, which is not trained: its models were" in err
    code, _, err = ensue("export", "both", "out.onnx")
    assert code == 2
    assert "export: table: an ensemble of several models cannot be exported" in err
    with pytest.raises(OptionError, match=r"this is an ensemble of models: ensue\.load loads it"):
        package.TableModel.load(folder.path)
    with pytest.raises(OptionError, match="an ensemble is not trained"):
        load(folder.path).fit([])
    model = folder.model / "member-2-model.json"
    model.write_bytes(model.read_bytes().replace(b"table", b"tablf"))
    with pytest.raises(RunError, match=r"member-2-model\.json differs from what Ensue wrote"):
        load_run(folder)


# --- selection -------------------------------------------------------------------------------


def noisy(path: Path, rows: int, seed: int) -> str:
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, 3))
    cells = np.column_stack([x, x[:, 0] * x[:, 1] + draw.normal(size=rows)])
    lines = ["a,b,c,y", *(",".join(f"{number:.3f}" for number in row) for row in cells)]
    path.write_text("\n".join(lines) + "\n")
    return path.name


def test_several_trials_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Better than each on validation, in the first place, tested once, and the model."""
    monkeypatch.chdir(tmp_path)
    quick = ["train.epochs=12", "model.target=number", "train.watch=mae", "train.rate=0.05"]
    names = ("validation", "test")
    parts = {name: [noisy(tmp_path / f"{name}.csv", 200, k)] for k, name in enumerate(names)}
    options: Any = {"task": "table", "label": "y", "trials": 4, "settings": quick, **parts}
    rows = noisy(tmp_path / "rows.csv", 80, 5)
    selection = package.select(rows, "s", together=True, **options)
    first, *others = selection.rows
    assert first.name == "together"
    assert {trial.name for trial in others} == {f"trial-00{k}" for k in range(4)}
    assert first.score < min(trial.score for trial in others if not trial.stopped)
    assert selection.test is not None
    assert selection.test.name == "together"
    assert len((tmp_path / "s" / OPENINGS).read_text().splitlines()) == 1
    assert "the mean of" in selection.model.summary()
    run = package.Run(tmp_path / "s" / "together")
    assert (run.best, run.state) == (first.score, "finished")
    again = package.select(rows, "s", together=True, **options)
    assert again.test == selection.test
    assert len((tmp_path / "s" / OPENINGS).read_text().splitlines()) == 1
    assert f"together: {first.what}" in str(selection)
    assert "together: the default" not in str(selection)


def test_answers_that_have_no_mean_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("the dog runs\n" * 40)
    with pytest.raises(OptionError) as caught:
        package.select(path, tmp_path / "s", task="language", together=True)
    message = "--together: models to language cannot be averaged; expected "
    assert str(caught.value).startswith(message)
    assert not (tmp_path / "s").exists()

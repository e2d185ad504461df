"""Defaults that follow from the training part: settings override them, the configuration shows
them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from commands import Ensue, commands_in
from toy_task import TASK

from ensue import Regressor
from ensue.tasks import TASKS
from ensue.tasks.task import Recipe

ROWS = [(f"aab {k} c" * (k % 5 + 1), k % 5) for k in range(60)]
WHY = "a recipe for few rows"


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    lines = [f"{text},{count}" for text, count in ROWS]
    Path(tmp_path, "r.csv").write_text("\n".join(["text,label", *lines]))
    monkeypatch.setattr(TASKS["regress"], "adapts", True, raising=False)
    monkeypatch.setattr(type(TASKS["regress"]), "fitted_settings", _recipe)
    return commands_in(tmp_path, capsys, monkeypatch)


def _recipe(task: Any, train: Any, model: Any) -> Recipe:
    small = {"hidden_size": 4 + len(train) % 2, "embedding_size": 3}
    return Recipe({"model": small, "train": {"epochs": 2}}, WHY)


def config(run: str = "run") -> Any:
    return tomllib.loads(Path(run, "config.toml").read_text())


TRAIN = ("train", "r.csv", "--task", "regress", "--label", "label")


def test_what_was_not_told_follows_from_the_training_part(ensue: Ensue) -> None:
    code, _, err = ensue(*TRAIN, "--set", "model.embedding_size=5")
    assert code == 0, err
    assert WHY in err
    settings = config()
    assert settings["train"]["epochs"] == 2
    assert settings["model"]["hidden_size"] in (4, 5)
    assert settings["model"]["embedding_size"] == 5


def test_a_run_goes_on_with_its_file_and_the_same_command_chooses_the_same(
    ensue: Ensue, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ensue(*TRAIN, "--epochs", "1")[0] == 0
    before = Path("run", "config.toml").read_bytes()
    assert ensue(*TRAIN, "--epochs", "1")[0] == 0
    monkeypatch.setattr(
        type(TASKS["regress"]),
        "fitted_settings",
        lambda *arguments: Recipe({"model": {"hidden_size": 99}}, "never"),
    )
    code, _, err = ensue("train", "--run", "run")
    assert code == 0, err
    assert "never" not in err
    assert Path("run", "config.toml").read_bytes() == before


def test_init_and_dry_run_show_what_train_takes(ensue: Ensue) -> None:
    assert ensue("init", *TRAIN[1:], "--run", "a")[0] == 0
    code, printed, _ = ensue(*TRAIN, "--dry-run")
    assert code == 0
    assert ensue(*TRAIN, "--run", "b")[0] == 0
    assert config("a") == config("b")
    assert {k: v for k, v in tomllib.loads(printed).items() if k != "data"} == {
        k: v for k, v in config("b").items() if k != "data"
    }


def test_python_takes_the_same_and_the_next_fit_begins_without(ensue: Ensue) -> None:
    messages: list[str] = []

    def watcher(row: Any) -> None:
        messages.extend([row.text] if hasattr(row, "text") else [])

    model = Regressor(model={"embedding_size": 5})
    model.fit(ROWS, watchers=[watcher])
    assert (model.train.epochs, model.settings.embedding_size) == (2, 5)
    assert WHY in messages
    first = model.settings.hidden_size
    model.fit(ROWS[:-1])
    assert {first, model.settings.hidden_size} <= {4, 5}
    assert model.config()["train.epochs"] == 2


def test_a_task_that_says_nothing_keeps_its_defaults() -> None:
    assert not TASK.adapts
    assert TASK.fitted_settings(None, None) == Recipe()  # type: ignore[arg-type]

"""--quick and --best: less and more effort than the default, for every task."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Ensue, commands_in
from task_laws import FILED, Row

from ensue import Classifier, LanguageModel
from ensue.errors import EnsueError
from ensue.runs.config import RunConfig
from ensue.runs.infer import infer
from ensue.tasks import TASKS
from ensue.tasks.recipes import recipes_of
from ensue.training import TrainSettings

TINY = {"most_updates": 2, "epochs": 1}


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


@pytest.mark.parametrize("task", TASKS)
def test_quick_is_less_and_best_is_more_than_the_default(task: str) -> None:
    kind = TASKS[task].model_class
    usual, quick, best = kind(), kind(recipe="quick"), kind(recipe="best")
    assert quick.train.epochs < usual.train.epochs < best.train.epochs
    assert quick.train.most_updates is not None
    assert quick.members == usual.members == 1
    assert best.members > 1 or TASKS[task].family(best.settings) is not None
    for model in (quick, best):
        assert model.settings == usual.settings, "a recipe of less or more effort is the same model"


@pytest.mark.parametrize("row", [row for row in FILED if row.task in TASKS], ids=str)
def test_a_recipe_trains(row: Row) -> None:
    train, validation, *_ = row.parts()
    recipe, train_settings = ("best", "quick")[len(row.task) % 2], {**row.train, **TINY}
    model = TASKS[row.task].model_class(
        row.text, row.model, train_settings, recipe=recipe, members=1
    )
    model.fit(train, validation, **row.data.columns)
    assert len(model.networks) == 1
    assert model.train.epochs == 1, "a recipe leaves explicit settings unchanged"


def test_a_recipe_stands_in_the_configuration(tmp_path: Path, ensue: Ensue) -> None:
    rows = "".join(f"some words {k},{'ab'[k % 2]}\n" for k in range(60))
    (tmp_path / "r.csv").write_text(f"text,label\n{rows}")
    assert ensue("init", "r.csv", "--quick", "--run", "r")[0] == 0
    quick = RunConfig.read(tmp_path / "r" / "config.toml")
    recipe = recipes_of(TASKS["classify"])["quick"]
    assert {key: quick.flat()[key] for key in recipe} == dict(recipe)
    config, messages = infer(
        {"train": [str(tmp_path / "r.csv")]}, None, ["train.epochs=7"], {"members": 2}, "best"
    )
    assert (config.train.epochs, config.members) == (7, 2)
    assert any(message.text.startswith("best: members=") for message in messages)
    assert "recipe" not in config.flat()


def test_recipes_that_cannot_be(tmp_path: Path, ensue: Ensue) -> None:
    (tmp_path / "r.csv").write_text("text,label\na b c,x\n")
    assert (
        "--quick and --best: expected one of them"
        in (ensue("train", "r.csv", "--quick", "--best")[2])
    )
    with pytest.raises(EnsueError, match="unknown recipe 'quik': did you mean 'quick'"):
        Classifier(recipe="quik")


def test_a_solved_family_has_one_network_by_every_recipe() -> None:
    solved = LanguageModel(model={"family": "ngram"}, recipe="best")
    assert solved.members == 1
    assert Classifier(train=TrainSettings(epochs=3), recipe="quick").train.epochs == 3

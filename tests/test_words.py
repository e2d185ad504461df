"""Words that people try first: each stands for a setting, whatever a task calls it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from commands import Ensue, commands_in
from reviews import reviews
from task_laws import FILED

from ensue.cli.request import default, meaning
from ensue.errors import OptionError
from ensue.runs.config import RunConfig, changed
from ensue.runs.known_settings import known_settings, shown_value
from ensue.setting_words import WORDS
from ensue.tasks import TASKS

pytestmark = pytest.mark.usefixtures("ninth_task")
NAMES = sorted({row.task for row in FILED})
every_name = pytest.mark.parametrize("name", NAMES)
# What is typed after each word, and the value that the setting has then.
SAID: dict[str, tuple[str, Any]] = {
    "epochs": ("3", 3),
    "rate": ("0.01", 0.01),
    "batch_size": ("48", 48),
    "cell": ("GRU", "GRU"),
    "hidden_size": ("12", 12),
    "layers": ("2", 2),
    "dropout": ("0.25", 0.25),
    "patience": ("off", "off"),
    "members": ("2", 2),
    "seed": ("7", 7),
}


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


@every_name
def test_every_word_reaches_the_settings_of_a_task(name: str) -> None:
    known = known_settings(name)
    word_values = {word: value for word, (_, value) in SAID.items() if word in known.words}
    tables = {"task": name, "data": {"train": ["a.csv"]}}
    flat = RunConfig.of(changed(tables, known.as_settings(word_values))).flat()
    for word, value in word_values.items():
        for key in known.words[word]:
            assert flat[key] == value
    usual = RunConfig.of(tables).flat()
    changed_keys = {key for word in word_values for key in known.words[word]}
    assert {key for key in usual if usual[key] != flat[key]} <= changed_keys


@every_name
def test_a_word_that_a_task_has_not_is_told_with_what_it_has(name: str) -> None:
    known = known_settings(name)
    for word in WORDS.values():
        if word.name in known.words:
            continue
        with pytest.raises(OptionError) as error:
            known.as_settings({word.name: 1})
        assert str(error.value).startswith(f"{word.flag}: {name} has no such setting: ")
        if word.name in known.instead:
            assert f"--set {known.instead[word.name]}=" in str(error.value)
        else:
            having = [name for name in TASKS if word.name in known_settings(name).words]
            assert f"the tasks {', '.join(having)}; `ensue settings {name}`" in str(error.value)


@every_name
def test_help_shows_the_default_of_each_task(name: str) -> None:
    known, values = known_settings(name), dict(known_settings(name))
    for word in WORDS.values():
        shown_meaning = meaning(word)
        if word.name in known.words:
            default_shown = default(word, known)
            assert f"{default_shown} for " in shown_meaning or f"[{default_shown}" in shown_meaning
            for key in known.words[word.name]:
                assert shown_value(values[key].default) in default_shown.split("/")
        else:
            assert name not in shown_meaning.partition("[")[2]


def test_words_are_settings_of_the_configuration(ensue: Ensue, tmp_path: Path) -> None:
    reviews(tmp_path / "reviews.csv")
    words = [part for name, (typed, _) in SAID.items() for part in (WORDS[name].flag, typed)]
    code, out, err = ensue("train", "reviews.csv", *words, "--dry-run")
    assert code == 0, err
    keys = known_settings(tomllib.loads(out)["task"]).words
    sets = [
        part for name, (typed, _) in SAID.items() for key in keys[name]
        for part in ("--set", f"{key}={typed}")
    ]  # fmt: skip
    assert ensue("train", "reviews.csv", *sets, "--dry-run")[1] == out


def test_other_spellings(ensue: Ensue, tmp_path: Path) -> None:
    reviews(tmp_path / "reviews.csv")
    spelt = ["--lr", "0.1", "--batch_size", "8", "--device", "cpu", "--out", "made"]
    assert ensue("init", "reviews.csv", *spelt)[:2] == (0, "made/config.toml\n")
    config = RunConfig.read(tmp_path / "made" / "config.toml")
    assert (config.train.rate, config.flat()["model.batch_rows"]) == (0.1, 8)
    assert config.train.device == "cpu"
    assert ensue("init", "reviews.csv", "--output", "other", "--learning-rate", "0.2")[0] == 0
    assert RunConfig.read(tmp_path / "other" / "config.toml").train.rate == 0.2


CLASHES = [
    ("--epochs 3 --set train.epochs=5", "--epochs and --set train.epochs"),
    ("--epochs 3 --set train.epochs=3", "--epochs and --set train.epochs"),
    ("--dropout 0.1 --set model.dropout_layers=0.2", "--dropout and --set model.dropout_layers"),
    ("--batch-size 8 --set model.columns=3", "--batch-size and --set model.columns"),
    ("--members 2 --set members=3", "--members and --set members"),
    ("--target a --horizon 3 --set model.horizon=5", "--horizon and --set model.horizon"),
    ("--text review --set data.text=film", "--text and --set data.text"),
    ("--skip-bad --set data.skip_bad=false", "--skip-bad and --set data.skip_bad"),
    ("--device cpu --set train.device=cuda", "--device and --set train.device"),
    ("--task label --set task=classify", "--task and --set task"),
    ("--set data.train=['a.csv']", "the files and --set data.train"),
]


@pytest.mark.parametrize(("words", "message"), CLASHES)
def test_a_setting_given_in_two_ways_is_refused(ensue: Ensue, words: str, message: str) -> None:
    Path("a.csv").touch()
    assert ensue("train", "a.csv", *words.split()) == (
        2,
        "",
        f"OptionError: {message}: two values for one setting; give one of them\n",
    )


def test_words_beside_a_run_without_files(ensue: Ensue, tmp_path: Path) -> None:
    reviews(tmp_path / "reviews.csv")
    assert ensue("init", "reviews.csv", "--run", "r")[0] == 0
    code, _, err = ensue("train", "--run", "r", "--epochs", "3")
    assert code == 2
    assert err.startswith("OptionError: r: without files the run continues as r/config.toml says; ")


def test_a_word_of_a_named_task_is_refused_before_files_are_read(ensue: Ensue) -> None:
    Path("a.csv").touch()
    code, _, err = ensue("train", "a.csv", "--task", "table", "--layers", "3")
    assert code == 2
    assert "--layers: table has no such setting: model.hidden comes closest" in err

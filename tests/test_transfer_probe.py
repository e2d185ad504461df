"""`base.recipe = auto`: settled by what a base tells of the labels before it learns, once."""

from __future__ import annotations

import random
import re
import shutil
import signal
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import commands_in

from ensue import Classifier, Regressor, load
from ensue.tasks import TASKS
from ensue.tasks.baselines import ridge
from ensue.tasks.baselines.ridge import explained
from ensue.tasks.transfer import rows
from ensue.tasks.transfer.unfreezing import FROM_THE_TOP
from ensue.training import Notice, Stopped, Update

WORDS = {mood: [f"{mood}{k}" for k in range(40)] for mood in ("up", "down", "so")}
TEXT = {"level": "words", "min_count": 1}
SMALL = {"linear": "alone", "batch_rows": 16}
QUICK = {"epochs": 3, "rate": 0.02, "device": "cpu"}
TOLD = r"of the variance of the labels the layers of the base explain (\d+)% before they learn"
TOLD += r", the words alone (\d+)%"
KINDS: dict[str, Any] = {"classify": Classifier, "regress": Regressor}


def texts_of(count: int, seed: int) -> list[tuple[str, int]]:
    """Texts of eight words, each with how many of them are up, less those that are down."""
    draw = random.Random(seed)
    labelled = []
    for number in range(count):
        side = ("up", "down")[number % 2]
        moods = [draw.choice([side, side, "so"]) for _ in range(8)]
        mood = moods.count("up") - moods.count("down")
        labelled.append((" ".join(draw.choice(WORDS[word_mood]) for word_mood in moods), mood))
    return labelled


def rows_of(task: str, count: int, seed: int) -> list[tuple[str, Any]]:
    if task == "regress":
        return [(text, float(mood)) for text, mood in texts_of(count, seed)]
    return [(text, "good" if mood > 0 else "bad") for text, mood in texts_of(count, seed)]


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """For each task a model that knows it, and one of the same layers whose weights are noise."""
    folders = {}
    for task, kind in KINDS.items():
        model = kind(
            text=TEXT,
            model={**SMALL, "hidden_size": 6, "embedding_size": 5, "bidirectional": False},
            train={**QUICK, "epochs": 12, "patience": 12},
        ).fit(rows_of(task, 400, 3), rows_of(task, 40, 4), watchers=[])
        for name in ("knows", "noise"):
            folders[task, name] = tmp_path_factory.mktemp("bases") / f"{task}-{name}"
            model.save(folders[task, name])
            with torch.random.fork_rng(), torch.no_grad():
                torch.manual_seed(1)
                for parameter in model.networks[0].parameters():
                    parameter.copy_(torch.randn_like(parameter))
    return folders


class StopAfter:
    def __init__(self, updates: int) -> None:
        self.left = updates

    def __call__(self, row: Any) -> None:
        self.left -= isinstance(row, Update)
        if not self.left:
            signal.raise_signal(signal.SIGTERM)


def fitted(base: Any, task: str = "classify", folder: Path | None = None, *heard: Any) -> Any:
    model = KINDS[task](base=base, text={"min_count": 1}, model=SMALL, train=QUICK)
    parts = rows_of(task, 120, 1), rows_of(task, 24, 2)
    return model.fit(*parts, folder=folder, watchers=list(heard))


def lines_to(lines: list[str]) -> Callable[[Any], None]:
    return lambda row: lines.append(row.text) if isinstance(row, Notice) else None


def never(*arguments: Any) -> Any:
    raise AssertionError("the base was probed")


# --- what is chosen ----------------------------------------------------------------------------


@pytest.mark.parametrize("task", KINDS)
@pytest.mark.parametrize(
    ("base", "recipe", "decay"), [("knows", "gradual", 2.6), ("noise", "whole", 1.0)]
)
def test_layers_that_know_the_labels_learn_gradually_and_noise_learns_as_a_whole(
    bases: dict[tuple[str, str], Path], task: str, base: str, recipe: str, decay: float
) -> None:
    messages = list[str]()
    model = fitted(bases[task, base], task, None, lines_to(messages))
    assert (model.base.recipe, model.base.rate_decay) == (recipe, decay)
    (line,) = [message for message in messages if message.startswith("base.recipe")]
    assert line.startswith(f"base.recipe: {recipe}")
    assert ("base.rate_decay: 1.0" in line) == (recipe == "whole")
    match = re.search(TOLD, line)
    assert match is not None
    layers, words = map(int, match.groups())
    assert 0 < words <= 100
    assert (layers >= words / 2) == (recipe == "gradual")
    again = list[str]()
    torch.rand(3)
    assert fitted(bases[task, base], task, None, lines_to(again)).base == model.base
    assert line in again, "the same whatever was drawn before"


def test_what_a_person_says_is_not_asked(
    bases: dict[tuple[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = str(bases["classify", "noise"])
    decayed = fitted({"path": noise, "recipe": "auto", "rate_decay": 2.0})
    assert (decayed.base.recipe, decayed.base.rate_decay) == ("whole", 2.0)
    monkeypatch.setattr(rows, "probe", never)
    for recipe in ("gradual", "whole", "frozen"):
        model = fitted({"path": noise, "recipe": recipe})
        assert (model.base.recipe, model.base.rate_decay) == (recipe, 2.6)


def test_words_that_the_network_does_not_see_tell_nothing(
    bases: dict[tuple[str, str], Path],
) -> None:
    messages = list[str]()
    far = [(f"so1 so2 so3 {text}", label) for text, label in rows_of("classify", 120, 1)]
    text_settings = {"min_count": 1, "max_length": 3}
    model = Classifier(
        base=bases["classify", "noise"], text=text_settings, model=SMALL, train=QUICK
    )
    model.fit(far, far[:8], watchers=[lines_to(messages)])
    (line,) = [message for message in messages if message.startswith("base.recipe: gradual")]
    assert re.search(TOLD, line).groups() == ("0", "0")  # type: ignore[union-attr]


def test_few_rows_tell_nothing(
    bases: dict[tuple[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "probe", never)
    model = Classifier(base=bases["classify", "noise"], model=SMALL, train=QUICK)
    few, messages = rows_of("classify", 60, 1), list[str]()
    assert model.fit(few, few[:8], watchers=[lines_to(messages)]).base.recipe == "gradual"
    assert "base.recipe: gradual" in messages


@pytest.mark.parametrize("name", [name for name in TASKS if name not in KINDS])
def test_other_tasks_unfreeze_from_the_top(name: str) -> None:
    assert TASKS[name].transfers.unfreezing(None, None) == FROM_THE_TOP  # type: ignore[arg-type]


# --- runs: settled once ------------------------------------------------------------------------


def test_a_run_goes_on_as_it_was_settled_without_base_and_probe(
    bases: dict[tuple[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = fitted(bases["classify", "noise"])
    base = Path(shutil.copytree(bases["classify", "noise"], tmp_path / "base"))
    with pytest.raises(Stopped):
        fitted(base, "classify", tmp_path / "run", StopAfter(10))
    shutil.rmtree(base)
    monkeypatch.setattr(rows, "probe", never)
    again = fitted(base, "classify", tmp_path / "run")
    assert again.base.recipe == "whole"
    mine, other = (model.networks[0].state_dict() for model in (again, expected))
    assert all(torch.equal(mine[name], other[name]) for name in other)
    assert load(tmp_path / "run").base.recipe == "whole"


def test_a_run_that_was_not_asked_for_auto_stays_gradual(
    bases: dict[tuple[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = str(bases["classify", "noise"])
    base_settings = {"path": noise, "recipe": "gradual"}
    with pytest.raises(Stopped):
        fitted(base_settings, "classify", tmp_path / "run", StopAfter(10))
    monkeypatch.setattr(rows, "probe", never)
    assert fitted(noise, "classify", tmp_path / "run").base.recipe == "gradual"


def test_the_configuration_of_a_run_has_what_was_settled(
    bases: dict[tuple[str, str], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ensue = commands_in(tmp_path, capsys, monkeypatch)
    shutil.copytree(bases["classify", "noise"], tmp_path / "noise")
    lines = [f"{text},{label}" for text, label in rows_of("classify", 160, 1)]
    (tmp_path / "rows.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    words = ("train", "rows.csv", "--base", "noise", "--run", "run", "--set", "model.linear=alone")
    code, printed, errors = ensue(*words, "--dry-run")
    assert code == 0, errors
    code, _, errors = ensue(*words, "--epochs", "2")
    assert code == 0, errors
    assert re.search(rf"base\.recipe: whole, base\.rate_decay: 1\.0 \({TOLD}\)", errors)
    config = tomllib.loads((tmp_path / "run/config.toml").read_text())["base"]
    assert (config["recipe"], config["rate_decay"]) == ("whole", 1.0)
    assert tomllib.loads(printed)["base"]["recipe"] == "whole"
    monkeypatch.setattr(rows, "probe", never)
    shutil.rmtree(tmp_path / "noise")
    assert ensue("train", "--run", "run")[0] == 0
    assert ensue(*words, "--epochs", "2")[0] == 0
    again = tomllib.loads((tmp_path / "run/config.toml").read_text())["base"]
    assert again == config


# --- what is measured --------------------------------------------------------------------------


@pytest.mark.parametrize("outputs", [1, 3])
def test_errors_of_left_out_rows_are_those_of_fits_without_them(
    outputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(17, 5, generator=draw, dtype=torch.float64)
    y = x[:, :outputs] + torch.randn(17, outputs, generator=draw, dtype=torch.float64)
    errors = {}
    for share in (0.05, 3.0):
        centred = x - x.mean(0)
        strength = share * float(centred.square().sum()) / len(x)
        errors[share] = sum(
            _error_without(row, x, y, strength) / _error_without(None, x, y, strength)
            for row in range(len(x))
        )
        monkeypatch.setattr(ridge, "LEFT_OUT_STRENGTHS", (share,))
        assert explained(x @ x.T, y) == pytest.approx(1 - errors[share], abs=1e-9)
    monkeypatch.setattr(ridge, "LEFT_OUT_STRENGTHS", tuple(errors))
    assert explained(x @ x.T, y) == pytest.approx(1 - min(errors.values()), abs=1e-9)


def _error_without(row: int | None, x: torch.Tensor, y: torch.Tensor, strength: float) -> float:
    """The squared error on a row of a ridge regression on the others; of None, that of the means
    of the others, of all rows together."""
    if row is None:
        others = [torch.arange(len(x)) != index for index in range(len(x))]
        return sum(
            float((y[~rows_without] - y[rows_without].mean(0)).square().sum())
            for rows_without in others
        )
    others = torch.arange(len(x)) != row
    mean, level = x[others].mean(0), y[others].mean(0)
    a = x[others] - mean
    weights = torch.linalg.solve(
        a.T @ a + strength * torch.eye(x.shape[1], dtype=x.dtype), a.T @ (y[others] - level)
    )
    return float((y[row] - level - (x[row] - mean) @ weights).square().sum())


def test_targets_that_nothing_tells_of_are_not_explained() -> None:
    draw = torch.Generator().manual_seed(1)
    x, y = torch.randn(60, 30, generator=draw), torch.randn(60, 2, generator=draw)
    assert explained(x @ x.T, y) < 0.05
    assert explained(torch.zeros(60, 60), y) == pytest.approx(0, abs=1e-9)

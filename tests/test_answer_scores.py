"""Training shows the validation score of the combined model, and next to it the network's."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from commands import Ensue, commands_in

from ensue import Forecaster, Run, TableModel

FILLERS = ["the", "a", "film", "story", "cast", "plot", "it", "was", "very", "of", "in", "to"]
WORDS = {"good": ("great", "fine", "warm"), "bad": ("dull", "poor", "cold")}


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


def texts(path: Path, number: bool) -> None:
    """Texts whose label is one of their words: nothing for a network of one epoch."""
    draw, lines = random.Random(5), ["text,label"]
    for k in range(200):
        label = ("good", "bad")[k % 2]
        words = [draw.choice(FILLERS) for _ in range(6)]
        words[draw.randrange(6)] = draw.choice(WORDS[label])
        value = f"{(label == 'good') + draw.random() / 10:.3f}" if number else label
        lines.append(f"{' '.join(words)},{value}")
    path.write_text("\n".join(lines) + "\n")


def rows(path: Path) -> None:
    draw, lines = random.Random(5), ["a,b,label"]
    for _ in range(200):
        a, b = draw.gauss(0, 1), draw.gauss(0, 1)
        lines.append(f"{a:.3f},{b:.3f},{'good' if a > b else 'bad'}")
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("task", ["classify", "regress", "table"])
def test_the_score_of_what_answers_is_shown_beside_the_network_s(
    task: str, ensue: Ensue, tmp_path: Path
) -> None:
    """0.35, the network's own score, was shown with a test score of 0.86 of the linear model."""
    if task == "table":
        rows(tmp_path / "r.csv")
    else:
        texts(tmp_path / "r.csv", task == "regress")
    code, out, err = ensue("train", "r.csv", "--task", task, "--epochs", "1", "--run", "own")
    assert code == 0, err
    watch = {"regress": "mae"}.get(task, "accuracy")
    facts = json.loads((tmp_path / "own" / "training.json").read_text())
    main = {"regress": "rmse"}.get(task, "accuracy")
    match = re.search(
        rf"\n  {main} +([\d.]+)  95 % interval .*\n  network alone +([\d.]+)\n", out, re.S
    )
    assert match is not None, out
    together, alone = map(float, match.groups())
    assert together == pytest.approx(facts["answer"][main], abs=1e-4)
    assert alone == pytest.approx(facts["networks"][0]["scores"][main], abs=1e-4)
    together, alone = facts["answer"][watch], facts["networks"][0]["scores"][watch]
    assert together < alone if task == "regress" else together > alone
    run = Run(tmp_path / "own")
    assert run.best == facts["answer"][run.setting("train", "watch")]
    assert "validation, combined model: " in (tmp_path / "own" / "card.md").read_text()
    if task == "table":  # the linear model has learned from the training part alone
        code, out, err = ensue("evaluate", "own", "--validation", "--json")
        assert code == 0, err
        assert json.loads(out)["scores"][watch]["value"] == pytest.approx(together, abs=1e-4)


def test_the_score_of_several_networks_is_that_of_their_mean() -> None:
    """For the same rows and the same networks."""
    rows = [({"a": float(k % 7), "b": float(k % 5)}, float(k % 7 + k % 5)) for k in range(120)]
    table = [{**inputs, "y": value} for inputs, value in rows]
    number, watched = {"hidden": [4], "target": "number"}, {"epochs": 2, "watch": "mae"}
    model = TableModel(model=number, train=watched, members=2)
    model.fit(table[:90], table[90:], target="y")
    answers = model.predict([inputs for inputs, _ in rows[90:]])
    wrong = [abs(answer.value - y) for answer, (_, y) in zip(answers, rows[90:], strict=True)]
    assert model.answered.scores["mae"] == pytest.approx(sum(wrong) / len(wrong))


@pytest.mark.parametrize("family", ["mixed", "direct"])
def test_what_learns_from_the_validation_part_at_the_end_changes_no_score(family: str) -> None:
    """The solved members of a mixed forecast, and networks that are trained again, learn from it
    once the score is there."""
    values = [10 + k % 4 + 0.1 * (k * 7 % 5) for k in range(80)]
    scores = []
    for refit in (False, True):
        settings = {
            "family": family,
            "horizon": 2,
            "look_back": 4,
            "hidden_size": 4,
            "refit": refit,
        }
        model = Forecaster(model=settings, train={"epochs": 1})
        model.fit({"y": values[:64]}, {"y": values[64:]}, target="y")
        scores.append(model.answered.scores)
    assert scores[0] == scores[1]
    assert {*scores[0]} == {"mae", "error"}
    assert model.learned.out_of_sample is not None

"""Thresholds and abstaining: which class is answered, and when none is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from commands import Ensue, commands_in

from ensue import Classifier, TableModel
from ensue.data.vocabulary import Vocabulary
from ensue.errors import EnsueError, OptionError
from ensue.tasks.targets.classes import ClassTarget
from ensue.tasks.targets.decision import Decision
from ensue.tasks.targets.target import Abstained

SMALL = {"model": {"hidden_size": 4, "embedding_size": 4}, "train": {"epochs": 2, "rate": 0.05}}
WORDS = ["the", "film", "was", "a", "long", "story", "of", "some", "town"]


def rows(count: int) -> list[tuple[str, str]]:
    """Texts of which every third tells nothing of its label."""
    draw = np.random.default_rng(1)
    labelled = []
    for k in range(count):
        text = " ".join(draw.choice(WORDS, 5))
        label = ("good", "bad")[k % 2]
        labelled.append(
            (f"{text} {'fine' if label == 'good' else 'dull'}" if k % 3 else text, label)
        )
    return labelled


@pytest.fixture(scope="module")
def model() -> Classifier:
    return Classifier(**SMALL).fit(rows(120), rows(140)[120:])


# --- of probabilities ------------------------------------------------------------------------


def names(*labels: str, rare: bool = True) -> Vocabulary:
    return Vocabulary.closed({label: 30 if rare and k else 100 for k, label in enumerate(labels)})


P = np.array([[0.2, 0.8], [0.4, 0.6], [0.65, 0.35]])


@pytest.mark.parametrize("threshold", [0.7, "0.7", "yes=0.7", {"yes": 0.7}])
def test_a_class_is_answered_from_its_threshold_on_and_only_then(threshold: Any) -> None:
    decision = Decision.of({"threshold": threshold}, names("no", "yes"))
    assert decision.classes(P, P.argmax(1)).tolist() == [1, 0, 0]
    lower = Decision.of({"threshold": {"yes": 0.35}}, names("no", "yes"))
    assert lower.classes(P, P.argmax(1)).tolist() == [1, 1, 1]
    assert decision.lines() == ["answered with 'yes' from probability 0.70 on"]


def test_of_several_thresholds_the_likeliest_that_is_reached_is_answered() -> None:
    labels = Vocabulary.closed({"a": 3, "b": 2, "c": 1})
    p = np.array([[0.5, 0.3, 0.2], [0.1, 0.3, 0.6], [0.2, 0.45, 0.35]])
    decision = Decision.of({"threshold": "b=0.3,c=0.5"}, labels)
    assert decision.classes(p, p.argmax(1)).tolist() == [1, 2, 1]
    every = Decision.of({"threshold": "a=0.9,b=0.9,c=0.9"}, labels)
    assert every.classes(p, p.argmax(1)).tolist() == p.argmax(1).tolist()


def test_abstaining_leaves_what_a_threshold_asks_for() -> None:
    """A threshold of 0.2 and no answer below 0.6: every answer below 0.6 was left empty, and so
    were nearly all answers that the threshold was for."""
    p = np.array([[0.70, 0.30], [0.79, 0.21], [0.85, 0.15], [0.99, 0.01], [0.2, 0.8]])
    decision = Decision.of({"threshold": {"yes": 0.2}, "abstain_below": 0.6}, names("no", "yes"))
    guess = decision.classes(p, p.argmax(1))
    assert guess.tolist() == [1, 1, 0, 0, 1]
    assert decision.answered(p, guess).tolist() == [True, False, False, True, True]
    assert decision.lines()[1] == "no answer below probability 0.60, counted from the threshold"
    half = Decision.of({"threshold": {"yes": 0.5}, "abstain_below": 0.6}, names("no", "yes"))
    plain = Decision.of({"abstain_below": 0.6}, names("no", "yes"))
    assert (half.answered(P, P.argmax(1)) == plain.answered(P, P.argmax(1))).all()
    target = ClassTarget(names("no", "yes"), 0.2)  # the threshold of a model, not of a question
    answers = target.answers([torch.from_numpy(p).log()], {"abstain_below": 0.6})
    assert [answer.label for answer in answers] == ["yes", "", "", "no", "yes"]


def test_each_of_several_labels_has_the_threshold() -> None:
    p = np.array([[0.6, 0.8], [0.3, 0.55]])
    labels = names("a", "b")
    assert Decision.of({}, labels, True).marks(p, 0.5).tolist() == [[1, 1], [0, 1]]
    assert Decision.of({"threshold": 0.7}, labels, True).marks(p, 0.5).tolist() == [[0, 1], [0, 0]]
    marks = Decision.of({"threshold": "a=0.3"}, labels, True).marks(p, 0.5)
    assert marks.tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    ("options", "labels", "message"),
    [
        ({"threshold": 0.7}, names("good", "bad", rare=False), "Write its label, bad=0.7 or good"),
        ({"threshold": 0.7}, names("a", "b", "c"), "which of the 3 classes is it for?"),
        (
            {"threshold": 1.7},
            names("no", "yes"),
            "from 0 to 1, or label=0.7, got 1.7",
        ),
        ({"threshold": "high"}, names("no", "yes"), "got 'high'"),
        ({"threshold": "yse=0.7"}, names("no", "yes"), "did you mean 'yes'?"),
        ({"abstain_below": -1}, names("no", "yes"), "abstain-below: expected a probability"),
    ],
)
def test_what_is_no_threshold_is_told(
    options: dict[str, Any], labels: Vocabulary, message: str
) -> None:
    with pytest.raises(EnsueError, match=message.replace("?", r"\?")):
        Decision.of(options, labels)


def test_several_labels_do_not_abstain() -> None:
    with pytest.raises(OptionError, match="several labels here"):
        Decision.of({"abstain_below": 0.6}, names("a", "b"), several=True)


# --- of a model ------------------------------------------------------------------------------


def test_doubtful_answers_are_left_empty_and_the_others_stay(model: Classifier) -> None:
    texts = [text for text, _ in rows(60)]
    usual = model.predict(texts)
    limit = float(np.median([answer.probability for answer in usual]))
    answers = model.predict(texts, abstain_below=limit)
    empty = [answer for answer in answers if isinstance(answer, Abstained)]
    assert 0 < len(empty) < len(answers)
    for before, after in zip(usual, answers, strict=True):
        assert after.probabilities == before.probabilities
        assert after.label == (before.label if before.probability >= limit else "")
    assert empty[0].as_row() == {"label": None, "probability": empty[0].probability}
    assert empty[0].as_line("a film").startswith("\t0.")


def test_an_evaluation_has_coverage_and_the_accuracy_of_what_is_answered(
    model: Classifier,
) -> None:
    gold, answers = rows(60), model.predict([text for text, _ in rows(60)])
    limit = float(np.median([answer.probability for answer in answers]))
    evaluation = model.evaluate(gold, abstain_below=limit)
    right = [
        (answer.label == label)
        for answer, (_, label) in zip(answers, gold, strict=True)
        if answer.probability >= limit
    ]
    assert evaluation.others["coverage"] == len(right) / len(gold)
    assert evaluation.others["accuracy answered"] == pytest.approx(np.mean(right))
    assert evaluation.scores == model.evaluate(gold).scores
    assert "coverage" not in model.evaluate(gold).others
    none = model.evaluate(gold, abstain_below=1.0)
    assert (none.others["coverage"], "accuracy answered" in none.others) == (0.0, False)


def test_a_threshold_changes_scores_as_it_changes_answers(model: Classifier) -> None:
    gold = rows(60)
    answers = model.predict([text for text, _ in gold], threshold={"good": 0.9})
    right = [answer.label == label for answer, (_, label) in zip(answers, gold, strict=True)]
    evaluation = model.evaluate(gold, threshold={"good": 0.9})
    assert evaluation.scores["accuracy"].value == pytest.approx(np.mean(right))
    assert "answered with 'good' from probability 0.90 on" in evaluation.as_text()
    assert {answer.label for answer in model.predict(["a town"], threshold="good=0")} == {"good"}


def test_frames_have_nothing_where_nothing_is_answered() -> None:
    frame = pd.DataFrame({"x": [0.0, 1.0] * 20, "y": [0, 1] * 20})
    model = TableModel(model={"hidden": [2], "target": "class"}, train={"epochs": 1})
    model.fit(frame, target="y")
    sure = model.predict(frame)["probability"]
    answers = model.predict(frame, abstain_below=float(sure.max()))
    assert answers["label"].isna().sum() == (sure < sure.max()).sum() > 0
    assert {*answers["label"].dropna()} <= {0, 1}
    assert model.evaluate(frame, abstain_below=0.0).others["coverage"] == 1.0


def test_numbers_have_no_probability_to_decide_by() -> None:
    houses = [{"area": float(k), "price": 2.5 * k} for k in range(40)]
    model = TableModel(model={"hidden": [2]}, train={"epochs": 1}).fit(houses, target="price")
    with pytest.raises(OptionError, match="threshold: the answers of this model are numbers"):
        model.predict(houses[:2], threshold=0.5)
    with pytest.raises(OptionError, match="abstain-below: the answers of this model are numbers"):
        model.evaluate(houses, target="price", abstain_below=0.5)


# --- as commands -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("decisions")
    lines = "".join(f"{text},{label}\n" for text, label in rows(120))
    (folder / "films.csv").write_text(f"text,label\n{lines}")
    return folder


def test_commands_leave_doubtful_answers_empty_and_count_them(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ensue: Ensue = commands_in(run, capsys, monkeypatch)
    small = ("--set", "model.hidden_size=4", "--set", "model.embedding_size=4", "--epochs", "1")
    assert ensue("train", "films.csv", "--run", "r", *small)[0] == 0
    code, out, err = ensue("predict", "r", "films.csv", "--abstain-below", "1")
    assert (code, "abstained: 120 of 120 rows" in err) == (0, True)
    assert all(line.startswith("\t0.") for line in out.splitlines())
    code, out, err = ensue("predict", "r", "films.csv", "--threshold", "good=0", "--json")
    assert (code, "answered with 'good' from probability 0.00 on" in err) == (0, True)
    assert {json.loads(line)["label"] for line in out.splitlines()} == {"good"}
    assert ensue("evaluate", "r")[0] == 0
    content = (run / "r" / "evaluation.json").read_bytes()
    code, out, err = ensue("evaluate", "r", "--abstain-below", "0.99")
    assert "not saved in r: scores with --abstain-below hold for this call only" in err
    assert (run / "r" / "evaluation.json").read_bytes() == content, "the model's own scores stay"
    assert (code, "coverage" in out) == (0, True)
    code, _, err = ensue("predict", "r", "films.csv", "--threshold", "0.7")
    assert (code, "which of the 2 classes" in err) == (2, True)

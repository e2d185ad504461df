"""A text and the columns next to it, in one model."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import Ensue, commands_in

import ensue as package
from ensue import Classifier, Regressor
from ensue.errors import ConfigError, DataError, EnsueError, OptionError
from ensue.runs.config import RunConfig

SMALL = {"model": {"hidden_size": 4, "embedding_size": 4}, "train": {"epochs": 3, "rate": 0.05}}
ROLES: dict[str, Any] = {"text": "review", "label": "stars", "columns": ["price", "country"]}
SAID = ("--text", "review", "--label", "stars", "--columns", "price,country")
TINY = ("--set", "model.hidden_size=4", "--set", "model.embedding_size=4", "--epochs", "1")


def films(count: int, seed: int = 1) -> pd.DataFrame:
    """Texts that tell nothing; good is what is dear and not from fr. Cells are empty at times."""
    draw, rows = random.Random(seed), []
    for k in range(count):
        good = draw.random() < 0.5
        price = None if draw.random() < 0.1 else round(draw.gauss(30 if good else 10, 4), 2)
        country = draw.choice(["nl", "de", None] if good else ["fr", "de"])
        text = " ".join(draw.choices(["the", "film", "was", "a", "long", "story"], k=6))
        rows.append((f"f{k}", text, price, country, "good" if good else "bad"))
    return pd.DataFrame(rows, columns=["id", "review", "price", "country", "stars"])


@pytest.fixture(scope="module")
def model() -> Classifier:
    return Classifier(**SMALL).fit(films(200), **ROLES)


def test_columns_tell_what_the_text_does_not(model: Classifier) -> None:
    test = films(200, seed=2)
    evaluation = model.evaluate(test)
    assert evaluation.scores["accuracy"].low > 0.85
    for alone in ("network alone", "linear n-grams"):  # both read the columns
        assert evaluation.baselines[alone] > 0.8
    text = Classifier(**SMALL).fit(films(200), text="review", label="stars").evaluate(test)
    assert text.scores["accuracy"].high < 0.75
    assert "price, country next to the text" in model.summary()


def test_frames_rows_and_files_are_answered_alike(model: Classifier, tmp_path: Path) -> None:
    test = films(20, seed=3)
    framed = model.predict(test)
    test.drop(columns="stars").to_csv(tmp_path / "new.csv", index=False)
    objects = [
        json.loads(line) for line in test.to_json(orient="records", lines=True).split("\n") if line
    ]
    (tmp_path / "new.jsonl").write_text("\n".join(map(json.dumps, objects)))
    assert any(row["price"] is None for row in objects)
    for inputs in (str(tmp_path / "new.csv"), str(tmp_path / "new.jsonl"), objects):
        answers = model.predict(inputs)
        assert [answer.label for answer in answers] == framed["label"].tolist()
        assert [answer.probability for answer in answers] == pytest.approx(framed["probability"])


def test_a_category_that_training_has_not_is_like_any_other_new_one(model: Classifier) -> None:
    row = {"review": "a film", "price": 20.0}
    one, other = model.predict([{**row, "country": name} for name in ("zz", "qq")])
    assert one.probabilities == pytest.approx(other.probabilities, abs=1e-6)


def test_explanations_leave_the_columns_as_they_are(model: Classifier) -> None:
    row = {"review": "the film was long", "price": 20.0, "country": "nl"}

    def odds(text: str) -> float:
        (answer,) = model.predict([{**row, "review": text}])
        return float(np.log(answer.probabilities["good"] / answer.probabilities["bad"]))

    (explanation,) = model.explain(row, method="occlusion", label="good").answers
    left = ["film was long", "the was long", "the film long", "the film was"]
    assert explanation.scores == pytest.approx(
        [odds(row["review"]) - odds(text) for text in left], abs=1e-5
    )
    (linear,) = model.explain(row, method="gradient", label="good").linear
    part = model.reader.questions([row])
    scores = model.learned.linear.scores(part)[0]
    good = list(model.learned.target.labels.tokens).index("good")
    assert linear.output == pytest.approx(float(scores[good] - scores[1 - good]), rel=1e-5)
    assert linear.output == pytest.approx(linear.bias + sum(linear.scores))
    with pytest.raises(DataError, match="expected price, country next to the text"):
        model.explain("the film was long")


def test_numbers_can_be_predicted_from_both() -> None:
    frame = films(150)
    dear = frame["price"].fillna(20.0)
    frame["score"] = dear / 10 + np.random.default_rng(1).normal(0, 0.2, len(frame))
    roles = {"text": "review", "label": "score", "columns": ["price"]}
    evaluation = Regressor(**SMALL).fit(frame, **roles).evaluate(frame)
    assert evaluation.scores["rmse"].value < 0.5 * evaluation.baselines["mean"]


def test_a_sequence_of_vectors_can_have_columns_beside_it() -> None:
    steps = [
        {"patient": k, "pulse": 60 + t + k % 7, "sex": "fm"[k % 2], "ill": "yn"[k % 2]}
        for k in range(40)
        for t in range(3)
    ]
    roles = {"sequence": "patient", "features": ["pulse"], "label": "ill", "columns": ["sex"]}
    slow = {"model": {"hidden_size": 4}, "train": {"epochs": 20, "rate": 0.05}}
    frame = pd.DataFrame(steps)
    evaluation = Classifier(**slow).fit(frame, **roles).evaluate(frame)
    assert evaluation.scores["accuracy"].value == 1.0


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["price", "review"], "columns=: 'review' is the text already; leave it out"),
        (["stars"], "columns=: 'stars' is the label already"),
        (["id"], "columns=: 'id' holds an identifier: it says nothing about new rows"),
        (["prize"], "unknown column 'prize': did you mean 'price'?"),
        (["note"], "columns=: 'note' holds texts, 4 words on average: one text is read"),
        (["day"], "columns=: 'day' holds dates: write the part that matters"),
        (["nick"], "columns: 'nick' has a different value in almost"),
    ],
)
def test_columns_that_cannot_be_read_beside_a_text(columns: list[str], message: str) -> None:
    frame = films(60)
    frame["note"] = [f"seen on day {k}" for k in range(60)]
    frame["day"] = pd.date_range("2024-01-01", periods=60).strftime("%Y-%m-%d")
    names = random.Random(1).sample([a + b + c for a in "bdf" for b in "aeiou" for c in "lmnr"], 60)
    frame["nick"] = [name * (1 + k % 3) for k, name in enumerate(names)]
    with pytest.raises(EnsueError) as error:
        Classifier(**SMALL).fit(frame, **{**ROLES, "columns": columns})
    assert message in str(error.value)


def test_questions_without_the_columns_are_told_which(model: Classifier, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected price, country next to the text, as in training"):
        model.predict(["a film"])
    with pytest.raises(DataError, match="unknown column 'country'"):
        model.predict(films(3).drop(columns="country"))
    with pytest.raises(DataError, match="row:1: expected a column 'country' next to the text"):
        model.predict([{"review": "a film", "price": 3}])
    (tmp_path / "new.txt").write_text("a film\n")
    with pytest.raises(DataError, match="unknown column 'price'"):
        model.predict(str(tmp_path / "new.txt"))
    with pytest.raises(DataError, match="column 'price': expected a finite number, got 'dear'"):
        model.predict([{"review": "a film", "price": "dear", "country": "nl"}])


def test_rows_in_a_list_need_names_for_columns() -> None:
    with pytest.raises(OptionError, match="expected rows by column name"):
        Classifier(**SMALL).fit([("a film", "good")] * 9, **ROLES)
    with pytest.raises(OptionError, match='which column is what, text="review"'):
        Classifier(**SMALL).fit([{"review": "a film", "stars": "good"}] * 9)


def test_only_tasks_of_a_text_take_columns() -> None:
    tables = {"task": "label", "data": {"train": ["a.csv"], "columns": ["price"]}}
    with pytest.raises(ConfigError, match=r"data\.columns: only classify and regress read"):
        RunConfig.of(tables)


# --- as commands -----------------------------------------------------------------------------


def test_commands_read_the_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ensue: Ensue = commands_in(tmp_path, capsys, monkeypatch)
    films(120).to_csv("films.csv", index=False)
    assert ensue("train", "films.csv", *SAID, "--run", "r", *TINY)[0] == 0
    assert package.load(tmp_path / "r").roles["columns"] == ["price", "country"]
    code, out, _ = ensue("predict", "r", "films.csv", "--json")
    assert (code, len(out.splitlines())) == (0, 120)
    first = json.loads(out.splitlines()[0])
    row = films(120).iloc[0].to_dict()
    line = json.dumps({key: row[key] for key in ("review", "price", "country")})
    code, out, _ = ensue("predict", "r", "--json", stdin=line.encode())
    assert code == 0
    assert json.loads(out)["probabilities"] == pytest.approx(first["probabilities"])
    code, _, err = ensue("predict", "r", stdin=b"a film\n")
    assert (code, "expected a row as JSON" in err) == (2, True)
    code, _, err = ensue("train", "films.csv", *SAID, "--task", "table", "--run", "s")
    assert code == 2
    assert "--columns: expected a run of task regress or classify, got --task table" in err

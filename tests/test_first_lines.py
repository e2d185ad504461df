"""The first lines that a newcomer types do what they expect."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from commands import commands_in
from sklearn.model_selection import cross_val_score

import ensue
from ensue.errors import EnsueError

GOOD, BAD = (
    ["a fine film", "so lovely", "warm and clever"],
    ["dull and long", "far too loud", "flat"],
)
SMALL = {"hidden_size": 8, "embedding_size": 8}
QUICK = {"epochs": 8, "rate": 0.05}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rows = [(text, stars) for texts, stars in ((GOOD, "good"), (BAD, "bad")) for text in texts]
    return pd.DataFrame(rows * 10, columns=["review", "stars"])


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> ensue.Classifier:
    classifier = ensue.Classifier(model=SMALL, train=QUICK)
    return classifier.fit(frame, text="review", label="stars")


def test_import_ensue_and_look_around() -> None:
    for name in (
        "Classifier",
        "Forecaster",
        "load",
        "Cell",
        "Matrix",
        "Vector",
        "LSTM",
        "Recurrent",
    ):
        assert name in dir(ensue)
        assert getattr(ensue, name)


def test_fit_a_frame_and_predict_a_text(model: ensue.Classifier) -> None:
    assert model.predict(["lovely film"])[0].label == "good"
    assert model.predict(["dull"])[0].label == "bad"


def test_predict_a_frame(model: ensue.Classifier, frame: pd.DataFrame) -> None:
    predictions = model.predict(frame[:4])
    assert isinstance(predictions, pd.DataFrame)
    assert list(predictions.columns) == ["review", "stars", "label", "probability"]
    assert list(predictions.index) == list(frame[:4].index)


def test_evaluate_a_frame(model: ensue.Classifier, frame: pd.DataFrame) -> None:
    assert model.evaluate(frame).scores["accuracy"].value == 1


def test_save_and_load(model: ensue.Classifier, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    assert ensue.load(tmp_path / "m").predict(["lovely"])[0] == model.predict(["lovely"])[0]


def test_fit_x_y_is_told_where_it_belongs() -> None:
    with pytest.raises(EnsueError) as error:
        ensue.Classifier().fit(GOOD + BAD, ["good"] * 3 + ["bad"] * 3)
    assert "zip" in str(error.value)
    assert "ensue.sklearn" in str(error.value)


def test_scikit_learn(frame: pd.DataFrame) -> None:
    from ensue.sklearn import SequenceClassifier

    estimator = SequenceClassifier(hidden_size=8, epochs=8, rate=0.05)
    texts, stars = list(frame["review"]), list(frame["stars"])
    assert estimator.fit(texts, stars).predict(["lovely"])[0] == "good"
    assert np.mean(cross_val_score(estimator, texts, stars, cv=2)) > 0.9


def test_a_forecast_of_a_frame() -> None:
    days = pd.date_range("2024-01-01", periods=120, freq="D")
    frame = pd.DataFrame({"day": days, "sales": 10 + np.sin(np.arange(120) * 2 * np.pi / 7)})
    model = ensue.Forecaster(model={"horizon": 7, "family": "linear"})
    predictions = model.fit(frame, time="day", target="sales").predict(frame)
    assert len(predictions) == 7
    assert "sales" in predictions.columns


def test_a_layer_in_ones_own_network() -> None:
    y, _ = ensue.Recurrent(ensue.LSTM(), 4, 8)(torch.zeros(5, 2, 4))
    assert y.shape == (5, 2, 8)


def test_the_command_line(
    frame: pd.DataFrame,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = commands_in(tmp_path, capsys, monkeypatch)
    several = pd.concat([frame.assign(review=frame["review"] + f" {k}") for k in range(5)])
    several.to_csv(tmp_path / "tickets.csv", index=False)
    code, out, err = run(
        "train", "tickets.csv", "--epochs", "3", "--hidden-size", "8", "--lr", "0.05"
    )
    assert code == 0, err
    assert "accuracy" in out
    assert run("evaluate", "run")[0] == 0
    assert run("predict", "run", stdin=b"so lovely 3\n")[1].startswith("good\t")
    code, out, _ = run("runs")
    assert code == 0
    assert "classify" in out
    assert type(ensue.load(tmp_path / "run")).__name__ == "Classifier"

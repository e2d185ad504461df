"""A number from a text or a sequence: its baseline, its intervals, how it is recognised."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ensue import Regressor
from ensue.data.ragged import Ragged
from ensue.data.settings import DataSettings
from ensue.errors import DataError
from ensue.runs.infer import infer
from ensue.tasks import TASKS
from ensue.tasks.baselines.linear import Presence
from ensue.tasks.baselines.ridge import STRENGTHS, _solved, fit_ridge
from ensue.tasks.sample import Sample

WORTH = {"fine": 1.0, "good": 2.0, "dull": -1.0, "bad": -2.0}
REST = ["the", "film", "was", "a", "story"]
SMALL = {"hidden_size": 12, "embedding_size": 8, "dropout_input": 0.0, "dropout_output": 0.0}


def reviews(count: int, seed: int) -> list[tuple[str, float]]:
    """Texts whose number is the sum of what their words are worth, and a little noise."""
    draw = np.random.default_rng(seed)
    rows_drawn = []
    for _ in range(count):
        words = [*draw.choice(REST, 3), *draw.choice(list(WORTH), 2)]
        draw.shuffle(words)
        value = 5 + sum(WORTH.get(word, 0) for word in words) + 0.1 * draw.normal()
        rows_drawn.append((" ".join(words), round(float(value), 3)))
    return rows_drawn


def fitted(**settings: Any) -> Regressor:
    train = {"epochs": 25, "rate": 0.02, "patience": "off"}
    model = Regressor(model={**SMALL, **settings}, train=train)
    return model.fit(reviews(150, 1), reviews(40, 2))


@pytest.fixture(scope="module")
def model() -> Regressor:
    return fitted()


# --- ridge regression on n-grams ---------------------------------------------------------------


def dense(rows: Ragged, columns: int) -> np.ndarray:
    matrix = np.zeros((len(rows), columns))
    for row in range(len(rows)):
        matrix[row, rows.row(row)] = 1
    return matrix


@pytest.mark.parametrize("strength", STRENGTHS)
def test_ridge_is_the_closed_form(strength: float) -> None:
    draw = np.random.default_rng(3)
    rows = Ragged.of([sorted(draw.choice(12, 4, replace=False)) for _ in range(30)], np.int32)
    x, y = dense(rows, 12), draw.normal(size=30)
    import torch

    expected = np.linalg.solve(x.T @ x + strength * np.eye(12), x.T @ y)
    solution = _solved(Presence(rows, 12), torch.from_numpy(y).float()[:, None], strength).numpy()
    assert solution == pytest.approx(expected, abs=1e-3)


def test_the_strength_is_that_of_the_lowest_error_on_held_out_rows() -> None:
    draw = np.random.default_rng(4)
    texts = Ragged.of([draw.integers(8, size=5) for _ in range(60)], np.int32)
    validation = Ragged.of([draw.integers(8, size=5) for _ in range(40)], np.int32)
    values, targets = draw.normal(size=60), draw.normal(size=40)  # nothing to learn
    chosen = fit_ridge(texts, values, validation, targets, longest=1, min_rows=1)
    import torch

    matrix = Presence(chosen.ngrams.present(texts), len(chosen.ngrams))
    errors = []
    for strength in STRENGTHS:
        weights = _solved(matrix, torch.from_numpy(values).float()[:, None], strength).numpy()
        scores = dense(chosen.ngrams.present(validation), len(weights)) @ weights
        errors.append(float(((scores - targets) ** 2).sum()))
    error = float(((chosen.values(validation) - targets) ** 2).sum())
    assert error == pytest.approx(min(errors), rel=1e-4)
    assert np.argmin(errors) == len(STRENGTHS) - 1, "noise wants the strongest"


def test_vectors_have_a_linear_model_of_their_mean_and_last_step() -> None:
    draw = np.random.default_rng(5)
    rows = [draw.normal(size=(int(draw.integers(1, 6)), 2)).astype(np.float32) for _ in range(60)]
    pairs = [(row, float(2 * row.mean(0)[0] - row[-1, 1] + 1)) for row in rows]
    model = Regressor(model=SMALL, train={"epochs": 1}).fit(pairs[:45], pairs[45:])
    baselines = model.evaluate(pairs[45:]).baselines
    assert baselines["linear model"] < 0.05 < baselines["mean"]


# --- answers ------------------------------------------------------------------------------------


def test_it_learns_and_says_how_sure_it_is(model: Regressor) -> None:
    evaluation = model.evaluate(reviews(120, 3))
    assert list(evaluation.scores) == ["rmse", "mae"]
    assert evaluation.scores["rmse"].value < 0.5 < evaluation.baselines["mean"]
    assert evaluation.others["r2"] > 0.9
    assert "ridge on n-grams" in evaluation.baselines
    high, low = (model.predict([text])[0] for text in ("a good fine film", "a bad dull film"))
    assert high.value > 6 > 4 > low.value
    assert high.low < high.value < high.high
    assert high.share == 0.9
    assert high.as_line("a  good\tfilm").count("\t") == 3


def test_a_wider_interval_holds_more() -> None:
    narrow, wide = fitted(interval=0.5), fitted(interval=0.95)
    gold = reviews(100, 6)
    shares = []
    for regressor in (narrow, wide):
        answers = regressor.predict([text for text, _ in gold])
        inside = [a.low <= value <= a.high for a, (_, value) in zip(answers, gold, strict=True)]
        shares.append(np.mean(inside))
    assert shares[0] < shares[1]
    assert shares[1] > 0.8


def test_a_mixture_says_its_mean() -> None:
    evaluation = fitted(distribution="mixture", components=2).evaluate(reviews(60, 7))
    assert evaluation.others["r2"] > 0.8


def test_what_is_no_number_is_named() -> None:
    with pytest.raises(DataError) as caught:
        Regressor(train={"epochs": 1}).fit([("a", 1.0), ("b", "dear")], [("c", 2)])
    assert str(caught.value) == ("row:2: the target: expected a finite number, got 'dear'")


def test_numbers_that_training_has_not_are_no_fault() -> None:
    """Labels are numbers here, not classes: those of the validation part need not be known."""
    model = Regressor(model=SMALL, train={"epochs": 1})
    model.fit([("a b", 1.0), ("b c", 2.0), ("c d", 3.0)], [("a", 17.5), ("b", -4)])
    assert np.isfinite(model.predict(["a"])[0].value)


# --- recognised ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "task"),
    [
        ([f"{k / 7:.2f}" for k in range(60)], "regress"),
        (["1", "2", "3", "4", "5"] * 12, "classify"),
    ],
)
def test_numbers_that_hardly_repeat_are_predicted(
    values: list[str], task: str, tmp_path: Path
) -> None:
    path = tmp_path / "r.csv"
    lines = [f"some words {k},{value}" for k, value in enumerate(values)]
    path.write_text("\n".join(["review,stars", *lines]) + "\n")
    assert infer({"train": [str(path)]}, None, []).config.task == task


def test_its_reason_names_the_column(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    rows = [{"text": f"a {k}", "price": k / 3} for k in range(60)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    sample = Sample(DataSettings.of({"train": [str(path)], "label": "price"}, "data"))
    guess = TASKS["regress"].recognise(sample)
    assert guess is not None
    assert guess.why == "price is a number to predict"

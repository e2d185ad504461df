"""Inputs of `fit` in Python, and the messages for inputs that nothing can be learned from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ensue import Classifier, LanguageModel, load
from ensue.errors import DataError
from ensue.tasks.rows.collect import label_texts

ROWS = [("a fine film", "good"), ("a dull film", "bad")] * 10
SMALL = {"model": {"hidden_size": 4, "embedding_size": 4}, "train": {"epochs": 1}}


def refusal(rows: Any, validation: Any = None) -> str:
    with pytest.raises(DataError) as caught:
        Classifier(**SMALL).fit(rows, validation)
    return str(caught.value)


def test_inputs_and_labels_in_two_lists() -> None:
    message = refusal([text for text, _ in ROWS], [label for _, label in ROWS])
    assert message == (
        "fit: the second argument is validation data, got labels; expected rows, each with its "
        "label: fit(list(zip(X, y))), or ensue.sklearn.SequenceClassifier().fit(X, y)"
    )


def test_a_row_without_label_is_named() -> None:
    rows = [*ROWS, ("nothing is known of this", None)]
    assert refusal(rows, ROWS) == (
        "the training part: expected rows with labels, got 21 rows with some or all of them "
        "missing, the first of them row:21"
    )


def test_labels_that_are_no_labels() -> None:
    rows = [*ROWS, ("what is it", float("nan"))]
    expected = "row:21: label: expected a text, a number or a list of them, got nan"
    assert refusal(rows, ROWS) == expected


def test_numbers_that_are_not_finite_are_named_by_row_and_step() -> None:
    vectors = np.zeros((3, 2))
    vectors[1, 0] = np.nan
    rows = [(np.ones((2, 2)), "a"), (vectors, "b")]
    assert refusal(rows, rows) == "row:2: step 1: expected finite numbers, got [nan, 0.0]"


@pytest.mark.parametrize(
    ("label", "texts"),
    [("a", ["a"]), (5, ["5"]), (True, ["True"]), (np.int64(3), ["3"]), (["a", 2], ["a", "2"])],
)
def test_labels_as_texts(label: Any, texts: list[str]) -> None:
    assert label_texts(label, "row:1") == texts


def test_rows_may_come_from_a_generator() -> None:
    model = Classifier(**SMALL).fit((row for row in ROWS), (row for row in ROWS))
    assert model.predict(["a fine film"])[0].label in ("good", "bad")


def test_a_language_model_shows_itself_and_is_evaluated() -> None:
    model = LanguageModel(model={"family": "ngram", "order": 2})
    assert repr(model) == "LanguageModel: 2-grams, modified-kneser-ney"
    model.fit(["a b", "b a"], ["a b"])
    assert model.evaluate(["a b"]).rows == 1
    assert "tokens in the vocabulary" in model._repr_html_()
    with pytest.raises(DataError, match="evaluate: expected rows, got none"):
        model.evaluate([])


def test_a_folder_keeps_the_model(tmp_path: Path) -> None:
    model = Classifier(**SMALL).fit(ROWS, folder=tmp_path / "run")
    for again in (load(tmp_path / "run"), Classifier.load(tmp_path / "run")):
        assert again.predict(["a fine film"]) == model.predict(["a fine film"])
    assert not (tmp_path / "run" / "learned").exists(), "nothing is left unfinished"

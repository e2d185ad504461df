"""How often a held-out part has been evaluated is known in Python too."""

from __future__ import annotations

import json
import logging
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from ensue import LanguageModel, Run, load
from ensue.data.fingerprint import digest_of, rows_digest
from ensue.errors import OptionError
from ensue.files.disk import OPENINGS
from ensue.tasks.evaluation.report import TimesOpened

TRAIN = ["the dog runs", "the cat sleeps", "a dog sleeps"]
VALIDATION = ["the cat runs", "a cat sleeps"]


def fitted(folder: Path | None = None) -> LanguageModel:
    model = LanguageModel(model={"family": "ngram", "order": 2})
    return model.fit(TRAIN, VALIDATION, folder=folder)


def test_rows_in_memory_are_counted_by_their_content() -> None:
    texts, one, other = ["the dog sleeps (in memory)"], fitted(), fitted()
    first = one.evaluate(texts)
    assert first.opened == TimesOpened(1, 0)
    assert "evaluated" not in first.as_text()
    assert one.evaluate(iter(texts)).opened == TimesOpened(2, 0)
    evaluation = other.evaluate(list(texts))
    assert evaluation.opened == TimesOpened(3, 2)
    note = "These rows have been evaluated 3 times, 2 of them by other models."
    assert note in evaluation.as_text()
    assert note in evaluation.as_html()
    assert one.evaluate([*texts, "a dog runs"]).opened == TimesOpened(1, 0)
    assert "opened" not in evaluation.as_json()


def test_a_model_that_was_pickled_counts_on() -> None:
    texts, model = ["the dog sleeps (pickled)"], fitted()
    model.evaluate(texts)
    assert pickle.loads(pickle.dumps(model)).evaluate(texts).opened == TimesOpened(2, 0)


def test_what_a_model_was_fitted_with_is_nothing_to_open() -> None:
    model = fitted()
    for rows in (TRAIN, VALIDATION, VALIDATION):
        assert model.evaluate(rows).opened == TimesOpened()


def test_a_model_of_a_folder_writes_it_down_beside(tmp_path: Path) -> None:
    texts, folder = ["the dog sleeps (in a folder)"], tmp_path / "run"
    fitted(folder).evaluate(texts)
    assert load(folder).evaluate(texts).opened == TimesOpened(2, 0)
    assert LanguageModel.load(folder).evaluate(texts).opened == TimesOpened(3, 0)
    assert fitted(tmp_path / "beside").evaluate(texts).opened == TimesOpened(4, 3)
    lines = [json.loads(line) for line in (tmp_path / OPENINGS).read_text().splitlines()]
    assert [line["run"] for line in lines] == ["run"] * 3 + ["beside"]
    assert {line["test"] for line in lines} == {rows_digest(texts)}
    load(folder).save(tmp_path / "saved" / "model-alone")
    load(tmp_path / "saved" / "model-alone").evaluate(texts)
    assert not (tmp_path / "saved" / OPENINGS).exists()  # of no run: nothing lies next to it


def test_where_nothing_can_be_written_the_scores_are_told_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = fitted(tmp_path / "run")
    (tmp_path / OPENINGS).mkdir()
    with caplog.at_level(logging.WARNING, "ensue"):
        assert model.evaluate(["the dog sleeps (unwritten)"]).opened == TimesOpened(1, 0)
    assert "this evaluation was not written down" in caplog.text


def test_a_part_that_there_is_not_is_told(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.toml").write_text("")
    with pytest.raises(OptionError, match="part: expected one of validation, test, got 'train'"):
        Run(tmp_path / "run").evaluate("train")


def test_digests_tell_rows_apart(tmp_path: Path) -> None:
    same = [[("a", 1.5)], (["a", 1.5],), [("a", np.float64(1.5))]]
    assert len({rows_digest(rows) for rows in same}) == 1
    other = [
        [("a", 1.5), ("b", 2)],
        [("a", "1.5")],
        [["a", [1.5]]],
        [{"a": 1.5}],
        [np.array([1.5])],
        [np.array([1.5], np.float32)],
        [np.array([[1.5]])],
        [torch.tensor([2.5])],
        pd.Series([1, 2]),
    ]
    assert len({rows_digest(rows) for rows in [same[0], *other]}) == len(other) + 1
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "b.txt").write_text("a\n")
    assert digest_of([str(tmp_path / "a.txt")]) == digest_of([str(tmp_path / "b.txt")])

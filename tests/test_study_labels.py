"""`ensue study labels`: quality over the number of labels, with a base and without."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import commands_in
from job_machines import Here
from pages import check_page
from test_transfer import SMALL, TEXT, reviews

from ensue import LanguageModel
from ensue.data.settings import DataSettings
from ensue.errors import OptionError, RunError
from ensue.runs.train import drawn
from ensue.study.labels import curve
from ensue.study.labels.curve import LabelCurve, LabelPoint, label_curve, row_counts
from ensue.study.labels.table import draw

ROWS = reviews(60)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model, reviews with labels, and a run on them that began from it."""
    folder = tmp_path_factory.mktemp("study")
    texts = [text for text, _ in ROWS]
    model = LanguageModel(text=TEXT, model=SMALL, train={"epochs": 1, "device": "cpu"})
    model.fit(texts, texts).save(folder / "lm")
    lines = [f"{text} {number},{label}" for number, (text, label) in enumerate(ROWS)]
    (folder / "reviews.csv").write_text("\n".join(["review,mood", *lines]) + "\n")
    return folder


@pytest.fixture
def ensue(place: Path, capsys: Any, monkeypatch: Any) -> Any:
    return commands_in(place, capsys, monkeypatch)


TRAIN = ("train", "reviews.csv", "--base", "lm", "--run", "run", "--epochs", "2")
OWN = ("--set", "model.linear=alone", "--set", "model.batch_rows=8")


def test_a_study_is_a_table_of_runs_with_the_base_and_without(
    place: Path, ensue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curve, "Local", lambda workers: Here(workers, last_first=False))
    assert ensue(*TRAIN, *OWN)[0] == 0
    words = ("study", "labels", "run", "--labels", "10,20", "--picture", "curve.svg")
    code, table, errors = ensue(*words)
    assert code == 0, errors
    lines = table.splitlines()
    assert lines[0].split()[:2] == ["labels", "with"]
    assert [line.split()[0] for line in lines[1:3]] == ["10", "20"]
    assert "validation rows, higher is better" in table
    assert "with the base" in (place / "curve.svg").read_text()
    tables = {
        name: tomllib.loads((place / "run-labels" / name / "config.toml").read_text())
        for name in ("10-with", "10-without", "20-with")
    }
    assert tables["10-with"]["base"]["path"] == ["../../lm"]
    assert "base" not in tables["10-without"]
    assert tables["10-with"]["model"]["hidden_size"] == SMALL["hidden_size"]
    assert tables["10-without"]["model"]["hidden_size"] == 64  # by default, not as the base
    for config in tables.values():  # explicit settings hold for all
        assert config["train"]["epochs"] == 2
        assert config["model"]["linear"] == "alone"
    assert tables["20-with"]["data"]["train_rows"] == 20
    timing = place / "run-labels/10-with/timing.jsonl"
    before = timing.read_bytes()
    code, again, _ = ensue("study", "labels", "run", "--labels", "10,20", "--json")
    report = json.loads(again)
    assert code == 0
    assert timing.read_bytes() == before  # nothing was trained again
    assert [(p["rows"], p["base"]) for p in report["points"]] == [
        (10, True), (10, False), (20, True), (20, False),
    ]  # fmt: skip
    assert not list(place.glob("run-labels/*/evaluation*"))  # no test part was opened


def test_fewer_rows_are_among_more() -> None:
    part = Numbered(50)
    fewer, more = (
        drawn(part, DataSettings(train=["a"], train_rows=count)).rows for count in (10, 20)
    )
    assert len(fewer) == 10
    assert set(fewer) < set(more)
    assert sorted(fewer) == list(fewer)
    other = drawn(part, DataSettings(train=["a"], train_rows=10, split_seed=1)).rows
    assert set(other) != set(fewer)
    assert drawn(part, DataSettings(train=["a"], train_rows=60)) is part


class Numbered:
    def __init__(self, count: int, rows: Any = None) -> None:
        self.rows = list(range(count)) if rows is None else rows

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: Any) -> Numbered:
        return Numbered(0, np.array(self.rows)[rows].tolist())


def test_the_usual_numbers_of_labels() -> None:
    assert row_counts(60) == [60]
    assert row_counts(25_000) == [100, 300, 1000, 3000, 10_000, 25_000]
    assert row_counts(300) == [100, 300]
    assert row_counts(60, [20, 10, 20]) == [10, 20]
    with pytest.raises(OptionError, match=r"expected numbers from 1 to 60, .* got 61"):
        row_counts(60, [10, 61])


def test_a_run_without_a_base_is_refused(place: Path, ensue: Any) -> None:
    words = ("train", "reviews.csv", "--run", "plain", "--epochs", "1", *OWN)
    assert ensue(*words, "--set", "model.hidden_size=4")[0] == 0
    code, _, errors = ensue("study", "labels", "plain")
    assert code == 2
    assert "this run has no base to compare with; name one that was trained with --base" in errors
    code, _, errors = ensue("study", "labels", "run", "--labels", "ten")
    assert (code, "--labels: expected numbers such as 100,1000, got 'ten'" in errors) == (2, True)


def test_a_base_that_is_gone_is_named(place: Path, tmp_path: Path, ensue: Any) -> None:
    with pytest.raises(RunError, match=r"expected the folder of a run"):
        label_curve(tmp_path / "nowhere", tmp_path)
    assert ensue("init", *TRAIN[1:5], "run2", *TRAIN[6:], *OWN)[0] == 0
    config = (place / "run2/config.toml").read_text()
    (tmp_path / "config.toml").write_text(config)
    with pytest.raises(RunError, match=r"its base .*lm is missing"):
        label_curve(tmp_path, tmp_path / "x")


def test_a_run_that_failed_is_named_and_the_others_are_shown() -> None:
    points = (
        LabelPoint(100, True, "100-with", 0.75, 3.0),
        LabelPoint(100, False, "100-without", failure="one label only"),
        LabelPoint(300, True, "300-with", 0.875, 3.0),
        LabelPoint(300, False, "300-without", 0.9375, 3.0),
    )
    curve = LabelCurve("classify", "accuracy", "lm", 40, points)
    table = curve.as_text()
    assert "100-without failed: one label only" in table
    assert "−0.0625" in table
    check_page(curve._repr_html_())
    assert draw(curve).count("<title>") >= 3


def test_a_study_in_which_every_run_failed_has_no_picture() -> None:
    points = tuple(LabelPoint(100, base, f"100-{base}", failure="no") for base in (True, False))
    curve = LabelCurve("classify", "accuracy", "lm", 40, points)
    assert curve.as_text().count("failed: no") == 2
    assert "<svg" not in curve._repr_html_()

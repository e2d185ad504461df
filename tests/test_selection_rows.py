"""Selection of data in memory: frames and rows become files that its trials read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ensue
from ensue.errors import DataError, OptionError
from ensue.runs.config import RunConfig
from ensue.study.selection.python import files_of, label_type, rows_of

COLUMNS = {"size": [1.5, 2.5, None], "kind": ["a", "ü", "b"], "rooms": [1, 2, 3]}
ROWS = [dict(zip(COLUMNS, cells, strict=True)) for cells in zip(*COLUMNS.values(), strict=True)]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_frames_and_columns_are_rows_by_name(frame: Any) -> None:
    assert list(rows_of(frame(COLUMNS))) == ROWS
    assert list(rows_of(ROWS)) == ROWS


def test_rows_in_memory_as_fit_takes_them() -> None:
    assert list(rows_of([("a text", "x"), (["a", "b"], ["X", "Y"])])) == [
        {"text": "a text", "label": "x"},
        {"text": ["a", "b"], "label": ["X", "Y"]},
    ]
    assert list(rows_of([(("one", "two"), 3)])) == [{"text": "one", "second": "two", "label": 3}]
    days = pd.DataFrame({"y": [1, 2]}, index=pd.date_range("2024-01-01", periods=2, name="day"))
    assert list(rows_of(days)) == [{"day": "2024-01-01", "y": 1}, {"day": "2024-01-02", "y": 2}]


def test_files_stay_files_and_rows_are_written_once(tmp_path: Path) -> None:
    assert files_of("x.csv", tmp_path, "train") == [str(Path("x.csv").resolve())]
    assert files_of(["x.csv", Path("y.csv")], tmp_path, "train")[1].endswith("y.csv")
    (path,) = files_of([{"v": np.arange(2)}], tmp_path, "test")
    assert path == str(tmp_path / "data" / "test.jsonl")
    assert json.loads(Path(path).read_text()) == {"v": [0, 1]}
    before = Path(path).stat().st_mtime_ns
    assert files_of([{"v": np.arange(2)}], tmp_path, "test") == [path]
    assert Path(path).stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (5, "select: expected files, a data frame, rows by column name, columns by name, or pairs "
            "of input and label, got 5; write others to a file"),
        ([], "select: expected rows, got none (train)"),
        ({"a": [1], "b": [1, 2]}, "select: expected columns of the same length, got a 1, b 2"),
        ([{"a": {1}}], "select: expected texts, numbers and lists of them, got {1}"),
    ],
)  # fmt: skip
def test_what_is_no_data(tmp_path: Path, data: Any, message: str) -> None:
    with pytest.raises(DataError) as caught:
        files_of(data, tmp_path, "train")
    assert str(caught.value) == message


def test_labels_keep_their_type() -> None:
    frame = pd.DataFrame({"x": [0.5, 1.5], "y": [1, 0]})
    assert (label_type(frame, "y"), label_type(frame, "x")) == ("int", "float")
    assert (label_type(frame, ""), label_type("x.csv", "y")) == ("", "")


def test_a_data_frame_is_selected_for(tmp_path: Path) -> None:
    """The model answers frames of the same kind, with labels of the type that they came in."""
    draw = np.random.default_rng(1)
    x = draw.normal(size=(120, 2))
    frame = pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": (x[:, 0] > x[:, 1]).astype(int)})
    quick = ["train.epochs=1", "model.hidden=[4]"]
    selection = ensue.select(
        frame, tmp_path / "s", task="table", label="y", trials=1, settings=quick
    )
    answers = selection.model.predict(frame.head(3))
    assert isinstance(answers, pl.DataFrame)
    assert answers["label"].dtype == pl.Int64
    assert selection.test is not None


def test_roles_that_a_task_has_elsewhere(tmp_path: Path) -> None:
    series = {
        "when": [f"2024-01-{k:02}" for k in range(1, 29)],
        "sales": [k % 7 for k in range(28)],
    }
    with pytest.raises(OptionError, match=r'target: say which task it is, too: task="forecast"'):
        ensue.select(series, tmp_path / "s", target="sales", trials=1)
    quick = ["model.family=linear", "model.look_back=3", "model.horizon=2"]
    options: Any = {"task": "forecast", "target": "sales", "trials": 1, "settings": quick}
    selection = ensue.select(series, tmp_path / "t", **options)
    assert selection.winner is not None
    config = RunConfig.read(tmp_path / "t" / "trial-000" / "config.toml")
    assert config.flat()["model.targets"] == ["sales"]

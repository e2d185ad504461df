"""Cells and labels of tables as programs give them: numpy's numbers, and invalid labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import Ensue, commands_in

from ensue import Regressor, TableModel
from ensue.data.options import ReadOptions
from ensue.data.ragged import Ragged
from ensue.data.read import gather
from ensue.data.tokenise import Tokeniser
from ensue.errors import DataError, OptionError
from ensue.tasks.columns.cells import cell_text
from ensue.tasks.rows.part import Names, Numbers, Part, Tokenisers
from ensue.tasks.targets.numbers import label_values


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(0.5), "0.5"),
        (np.float64(-2.25), "-2.25"),
        (np.int64(7), "7"),
        (np.bool_(True), "true"),
        (np.bool_(False), "false"),
        (np.str_(" a "), "a"),
        (np.float32("nan"), ""),
        (float("nan"), ""),
        (None, ""),
        (True, "true"),
        (3, "3"),
    ],
)
def test_numpys_values_are_written_as_pythons(value: Any, text: str) -> None:
    assert cell_text(value, "age", "row:1") == text


def part(labels: list[list[str]]) -> Part:
    numbers, count = Numbers(), len(labels)
    numbered = [[numbers.labels[text] for text in row] for row in labels]
    names = Names(("houses.csv",), np.zeros(count, np.int32), np.arange(1, count + 1))
    inputs, targets = Ragged.of([[0]] * count, np.int32), Ragged.of(numbered, np.int32)
    return Part(inputs, targets, names, numbers, Tokenisers(Tokeniser("spaces")))


def test_labels_are_numbers_row_by_row() -> None:
    assert label_values(part([["3"], ["-0.5"], ["3"]])).tolist() == [3.0, -0.5, 3.0]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([["1"], ["2", "3"], ["4"], []], "houses.csv:2: expected one number, got 2"),
        ([["1"], [], ["2", "3"]], "houses.csv:2: expected one number, got 0"),
        (
            [["1"], ["2"], ["dear"], ["inf"]],
            "houses.csv:3: the target: expected a finite number, got 'dear'",
        ),
    ],
)
def test_the_first_label_that_is_no_number_is_named(labels: list[list[str]], message: str) -> None:
    with pytest.raises(DataError) as caught:
        label_values(part(labels))
    assert str(caught.value) == message


# --- decimal commas, and numbers that are too large ---------------------------------------------

PLACES = ("Köln", "Bonn", "Ulm")


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


def german(path: Path, count: int = 160) -> Path:
    rows = [f"{k + 0.25}".replace(".", ",") + f";{PLACES[k % 3]};{k},5" for k in range(count)]
    path.write_text("\n".join(["preis;ort;fläche", *rows, ""]), "utf-8")
    return path


@pytest.mark.parametrize("task", [["--task", "table"], ["--task", "classify"], []])
def test_numbers_with_a_decimal_comma_are_no_classes(
    ensue: Ensue, tmp_path: Path, task: list[str]
) -> None:
    german(tmp_path / "de.csv")
    command = ["train", "de.csv", "--target", "preis", "--delimiter", ";", *task, "--dry-run"]
    code, _, errors = ensue(*command)
    assert code == 2
    assert "preis ('0,25'), fläche ('0,5'): these look like numbers with a decimal comma" in errors
    assert "--decimal ," in errors
    assert ensue(*command, "--decimal", ".")[0] == 0  # declared as texts


def test_a_decimal_comma_is_read_as_a_point(ensue: Ensue, tmp_path: Path) -> None:
    german(tmp_path / "de.csv")
    command = [
        "train",
        "de.csv",
        "--target",
        "preis",
        "--delimiter",
        ";",
        "--decimal",
        ",",
        "--run",
    ]
    assert ensue(*command, "run", "--epochs", "1")[0] == 0
    code, out, _ = ensue("predict", "run", "de.csv", "--json")
    assert code == 0
    first = json.loads(out.splitlines()[0])
    assert first["input"]["fläche"] == "0.5"
    assert first["low"] < first["value"] < first["high"]
    (tmp_path / "odd.csv").write_text("a;b\n1.234,5;1.234\n-0,5;x,y\n")
    options = ReadOptions(delimiter=";", decimal=",")
    rows = [row.fields for row in gather([tmp_path / "odd.csv"], options)]
    assert rows == [{"a": "1234.5", "b": "1234"}, {"a": "-0.5", "b": "x,y"}]


def test_commas_that_may_stand_between_thousands_are_told() -> None:
    frame = {"price": ["1,234", "2,500"] * 5, "town": ["Ulm", "Bonn"] * 5}
    with pytest.raises(DataError, match=r"price .*decimal comma; write them with a point; where"):
        TableModel().fit(pd.DataFrame(frame), target="town")
    with pytest.raises(OptionError, match=r"decimal: expected \. or ,, got ';'"):
        ReadOptions(decimal=";")


@pytest.mark.parametrize("cell", ["1e31", "inf", "1e400"])
@pytest.mark.parametrize("column", ["area", "price"])
def test_numbers_too_large_to_compute_with_are_refused(column: str, cell: str) -> None:
    rows = [{"area": str(k), "price": f"{k}.5"} for k in range(30)]
    rows[6][column] = cell
    with pytest.raises(DataError, match=r"row:7: .*at most 1e\+30"):
        TableModel(train={"epochs": 1}).fit(rows, rows[:3] + rows[7:], target="price")


def test_a_number_too_large_is_no_label_of_a_text() -> None:
    rows = [("a fine film", k / 4) for k in range(30)] + [("dull", 1e31)]
    with pytest.raises(DataError, match=r"row:31: .*got '1e\+31' \(at most 1e\+30\)"):
        Regressor(train={"epochs": 1}).fit(rows, rows)

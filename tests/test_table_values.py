"""Cells and labels of tables as programs give them: numpy's numbers, and labels that are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.errors import DataError
from ensue.tasks.rows.part import Names, Numbers, Part, Tokenisers
from ensue.tasks.table.cells import cell_text
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
    inputs, given = Ragged.of([[0]] * count, np.int32), Ragged.of(numbered, np.int32)
    return Part(inputs, given, names, numbers, Tokenisers(Tokeniser("spaces")))


def test_labels_are_numbers_row_by_row() -> None:
    assert label_values(part([["3"], ["-0.5"], ["3"]])).tolist() == [3.0, -0.5, 3.0]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([["1"], ["2", "3"], ["4"], []], "houses.csv:2: expected one number, got 2"),
        ([["1"], [], ["2", "3"]], "houses.csv:2: expected one number, got 0"),
        (
            [["1"], ["2"], ["dear"], ["inf"]],
            "houses.csv:3: what is to be predicted: expected a finite number, got 'dear'",
        ),
    ],
)
def test_the_first_label_that_is_no_number_is_named(labels: list[list[str]], message: str) -> None:
    with pytest.raises(DataError) as caught:
        label_values(part(labels))
    assert str(caught.value) == message

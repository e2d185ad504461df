"""Numbers with signs of money or percent, or with marks between thousands."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensue.data.options import ReadOptions
from ensue.data.read import gather
from ensue.data.recognise.marked_numbers import mark_of, plain_number
from ensue.errors import DataError
from ensue.runs.infer import infer

NUMBERS = {
    ("€12.50", "."): "12.50",
    ("€1,234.50", "."): "1234.50",
    ("1 234,5", ","): "1234.5",
    ("1\u202f234\u202f567", "."): "1234567",
    ("1'234.5", "."): "1234.5",
    ("45%", "."): "45",
    ("12,50 €", ","): "12.50",
    ("1.234,50 EUR", ","): "1234.50",
    ("-$5", "."): "-5",
    ("$-5", "."): "-5",
    ("− 3 %", "."): "-3",
    ("€1.234", "."): "1.234",
    ("€1.234", ","): "1234",
    ("1,23,4", "."): None,
    ("12 34", "."): None,
    ("-$-5", "."): None,
    ("2021-01-31", "."): None,
    ("five €", "."): None,
    ("€", "."): None,
}


@pytest.mark.parametrize(("text", "decimal"), NUMBERS)
def test_a_number_without_its_marks(text: str, decimal: str) -> None:
    assert plain_number(text, decimal) == NUMBERS[text, decimal]


@pytest.mark.parametrize(
    ("values", "sign", "decimal"),
    [
        (["€1.50", "€2", "", "n/a"], "€", "."),
        (["1 234,5", "12,0"], "", ","),
        (["45%", "3%"], "%", ""),
        (["1,234.5", "17"], "", "."),
        (["1,234,567", "17"], "", "."),
    ],
)
def test_what_a_column_has(values: list[str], sign: str, decimal: str) -> None:
    mark = mark_of(values)
    assert mark is not None
    assert (mark.sign, mark.decimal, mark.either) == (sign, decimal, "")


@pytest.mark.parametrize(
    "values", [["1.5", "2"], ["1,234", "2"], ["€1", "$2"], ["a", "€2"], ["€1.5", "€1,55"], []]
)
def test_what_is_no_column_of_them(values: list[str]) -> None:
    assert mark_of(values) is None


def written(folder: Path, row: str) -> str:
    path = folder / "a.csv"
    days = [f"2021-{1 + k % 12:02}-{1 + k // 12:02}" for k in range(40)]
    rows = [f"{day};{row.format(k % 17)};{k % 9},5%\n" for k, day in enumerate(days)]
    path.write_text("day;price;share\n" + "".join(rows))
    return str(path)


def test_a_file_has_them_read_as_numbers(tmp_path: Path) -> None:
    """Each was a category of its own."""
    path = written(tmp_path, "1 {:03},25 €")
    config, messages = infer({"train": [path], "delimiter": ";", "label": "price"}, "table", [])
    assert (config.data.marked, config.data.decimal) == (["price", "share"], ",")
    remark = "price: numbers, '1 000,25 €' is 1000.25; share: numbers, '0,5%' is 0.5"
    assert remark in [message.text for message in messages]
    rows = list(gather([path], config.data.read_options()))
    assert [rows[3].fields[name] for name in ("price", "share")] == ["1003.25", "3.5"]
    config_of_text, _ = infer(
        {"train": [path], "delimiter": ";", "label": "price", "marked": [], "decimal": "."},
        "table",
        [],
    )
    assert config_of_text.data.marked == []


def test_what_may_be_two_numbers_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("size;price\n" + "".join(f"{k};€1,{k:03}\n" for k in range(100, 140)))
    tables = {"train": [str(path)], "delimiter": ";", "label": "price"}
    with pytest.raises(DataError) as error:
        infer(tables, "table", [])
    assert str(error.value) == (
        "column 'price': '€1,100' may be two numbers: add --decimal . (1100) or --decimal , (1.100)"
    )
    for decimal, first in ((".", "1100"), (",", "1.100")):
        config, _ = infer({**tables, "decimal": decimal}, "table", [])
        rows = list(gather([str(path)], config.data.read_options()))
        assert rows[0].fields["price"] == first


def test_columns_with_points_and_with_commas_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("size;price\n" + "".join(f"{k}.5;{k},50 €\n" for k in range(20)))
    with pytest.raises(DataError, match=r"one has a decimal comma, the other a decimal point"):
        infer({"train": [str(path)], "delimiter": ";", "label": "price"}, "table", [])


def test_cells_that_are_none_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"x": "€5"}\n{"x": "soon"}\n{"x": 7}\n')
    rows = gather([path], ReadOptions(marked=("x",)))
    assert [row.fields["x"] for row in rows] == ["5", "soon", 7]

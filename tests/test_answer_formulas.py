"""Tables of answers open in spreadsheets: a text cell there is a text, whatever it begins with."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from commands import Ensue, commands_in
from reviews import SMALL

from ensue.escape import is_formula
from ensue.runs.answer_table import write_table

COMPUTED = [
    "=1+1",
    "=cmd|' /C calc'!A0",
    "@SUM(1+9)",
    "+SUM(A1:A9)",
    "-2+3+cmd|' /C calc'!A0",
    "-HYPERLINK(A1)",
    '+WEBSERVICE("http://a")',
    "-Sheet1!A1",
    "+-=1",
    "  =1",
    "\t=1",
    "\r=1",
    "\n=1",
    "＝1+1",
    "＠SUM(A1)",
    "-1\n+cmd|' /C calc'!A0",
]
TEXTS = ["-3.5", "-1", "+5", "−3.5", "- a point of a list", "-v", "a=b", "e@mail", "+49 (0)30 1",
         "-1 (minus one)", "-5 %", "--help", "-never again!", "", "'=1", "1e-5"]  # fmt: skip


@pytest.mark.parametrize("cell", COMPUTED)
def test_what_a_spreadsheet_would_compute_gets_a_prefix(cell: str, tmp_path: Path) -> None:
    assert is_formula(cell)
    for ending, delimiter in ((".csv", ","), (".tsv", "\t")):
        path = tmp_path / f"a{ending}"
        written = write_table(path, [{"text": cell, cell: -3.5, "n": -1}])
        assert (written.rows, written.formulas) == (1, 1)
        with path.open(newline="") as file:
            names, row = csv.reader(file, delimiter=delimiter)
        assert names == ["text", f"'{cell}", "n"]
        assert row == [f"'{cell}", "-3.5", "-1"]
        assert write_table(path, [{"text": cell}], raw=True).formulas == 0
        with path.open(newline="") as file:
            assert list(csv.reader(file, delimiter=delimiter)) == [["text"], [cell]]


@pytest.mark.parametrize("cell", TEXTS)
def test_numbers_and_plain_words_stay_as_they_are(cell: str, tmp_path: Path) -> None:
    assert not is_formula(cell)
    assert write_table(tmp_path / "a.csv", [{"text": cell}]).formulas == 0


def test_formats_for_programs_stay_as_they_are(tmp_path: Path) -> None:
    assert write_table(tmp_path / "a.jsonl", [{"text": "=1"}]).formulas == 0
    assert (tmp_path / "a.jsonl").read_text() == '{"text": "=1"}\n'


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


def test_predict_says_how_many_and_how_to_turn_it_off(ensue: Ensue, tmp_path: Path) -> None:
    rows = [f"{'good' if k % 2 else 'bad'} {k},{k % 2}" for k in range(60)]
    (tmp_path / "r.csv").write_text("\n".join(["text,label", *rows]))
    (tmp_path / "new.csv").write_text("text,label\n=cmd|calc,1\ngood,1\n@SUM(A1),0\n")
    settings = [word for setting in SMALL for word in ("--set", setting)]
    columns = ("--text", "text", "--label", "label")
    code, _, err = ensue("train", "r.csv", *columns, *settings, "--run", "r")
    assert code == 0, err
    command = ("predict", "r", "new.csv", "--out", "a.csv", "--keep", "text")
    _, _, err = ensue(*command)
    assert "wrote a.csv: 3 rows\n" in err
    assert "2 text cells that a spreadsheet would compute: prefixed with ' (--raw writes" in err
    assert "\n'=cmd|calc," in (tmp_path / "a.csv").read_text()
    _, _, err = ensue(*command, "--raw")
    assert "spreadsheet" not in err
    assert "\n=cmd|calc," in (tmp_path / "a.csv").read_text()
    code, _, err = ensue("predict", "r", "new.csv", "--raw")
    assert code == 2
    assert "--raw: expected --out FILE" in err

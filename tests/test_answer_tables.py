"""Answers as a table: a header, ids and kept columns, in every format, whole or not."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet
import pytest
from commands import Ensue, commands_in

TRAINED = ("--epochs", "1", "--hidden-size", "4", "--set", "model.embedding_size=4")
QUESTIONS = 'ticket_id,text,label\n7,"all is well, I think",x\n9\n12,bad news,y\n'


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a run on texts, and questions one of which is no row."""
    folder = tmp_path_factory.mktemp("answers")
    rows = [f"{k},{'all is well' if k % 2 else 'bad news'} {k},{k % 2}" for k in range(120)]
    (folder / "train.csv").write_text("\n".join(["number,text,label", *rows]))
    (folder / "new.csv").write_text(QUESTIONS)
    steps = [f"{2015 + k // 12}-{1 + k % 12:02},{k % 12}" for k in range(60)]
    (folder / "steps.csv").write_text("\n".join(["month,value", *steps]))
    return folder


@pytest.fixture
def ensue(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    run = commands_in(place, capsys, monkeypatch)
    if not (place / "run").exists():
        columns = ("--text", "text", "--label", "label")
        assert run("train", "train.csv", *columns, "--run", "run", *TRAINED)[0] == 0
    return run


def rows_of(path: Path) -> list[dict[str, object]]:
    if path.suffix == ".parquet":
        rows: list[dict[str, object]] = pyarrow.parquet.read_table(path).to_pylist()
        return rows
    text = path.read_text("utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return list(csv.DictReader(text.splitlines(), delimiter="\t" if path.suffix == ".tsv" else ","))


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_a_table_has_ids_and_answers(place: Path, ensue: Ensue, ending: str) -> None:
    name = f"answers.{ending}"
    code, out, err = ensue("predict", "run", "new.csv", "--skip-bad", "--out", name)
    assert (code, out) == (0, "")
    assert f"wrote {name}: 2 rows" in err
    first, second = rows_of(place / name)
    assert [*first] == ["ticket_id", "label", "probability"]
    assert [str(row["ticket_id"]) for row in (first, second)] == ["7", "12"]
    _, printed, _ = ensue("predict", "run", "new.csv", "--skip-bad")
    labels, sure, _ = zip(*(line.split("\t") for line in printed.splitlines()), strict=True)
    assert [str(row["label"]) for row in (first, second)] == [*labels]
    numbers = [float(str(row["probability"])) for row in (first, second)]
    assert numbers == pytest.approx([*map(float, sure)], abs=1e-4)


def test_columns_are_kept_by_choice(place: Path, ensue: Ensue) -> None:
    command = ("predict", "run", "new.csv", "--skip-bad", "--out", "kept.csv", "--keep")
    assert ensue(*command, "text,label")[0] == 0
    first = rows_of(place / "kept.csv")[0]
    assert [*first] == ["text", "label", "predicted_label", "probability"]
    assert (first["text"], first["label"]) == ("all is well, I think", "x")
    assert ensue(*command, "all")[0] == 0
    assert [*rows_of(place / "kept.csv")[0]][:3] == ["ticket_id", "text", "label"]
    before = (place / "kept.csv").read_bytes()
    code, _, err = ensue(*command, "price")
    assert code == 2
    assert "--keep: no column 'price': the files have ticket_id, text, label" in err
    assert (place / "kept.csv").read_bytes() == before, "nothing is lost"


def test_rows_without_an_id_are_named_by_their_lines(place: Path, ensue: Ensue) -> None:
    assert ensue("predict", "run", "train.csv", "--out", "lines.csv")[0] == 0
    rows = rows_of(place / "lines.csv")
    assert len(rows) == 120
    assert rows[0]["row"] == "train.csv:2"


def test_a_file_need_not_have_labels(place: Path, ensue: Ensue) -> None:
    (place / "bare.csv").write_text("id,text\n3,all is well\n")
    assert ensue("predict", "run", "bare.csv", "--out", "bare.jsonl")[0] == 0
    assert rows_of(place / "bare.jsonl")[0]["id"] == "3"
    (place / "bare.txt").write_text("all is well\n")
    assert ensue("predict", "run", "bare.txt", "--out", "lines.jsonl")[0] == 0
    assert rows_of(place / "lines.jsonl")[0]["row"] == "bare.txt:1"


def test_lines_that_were_typed_make_a_table_too(place: Path, ensue: Ensue) -> None:
    code, _, _ = ensue("predict", "run", "--out", "typed.jsonl", stdin=b"all is well\nbad\n")
    assert code == 0
    assert len(rows_of(place / "typed.jsonl")) == 2


def test_forecasts_have_times_and_targets(place: Path, ensue: Ensue) -> None:
    how = ("--horizon", "3", "--set", "model.look_back=4", "--set", "model.family=linear")
    assert ensue("train", "steps.csv", "--run", "ahead", *how)[0] == 0
    code, _, err = ensue("predict", "ahead", "--out", "ahead.csv")
    assert code == 0, err
    rows = rows_of(place / "ahead.csv")
    assert len(rows) == 3
    assert next(iter(rows[0])) == "time"
    assert any("value" in name for name in rows[0])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "a.xlsx"], "--out: expected a file that ends in .csv, .tsv, .jsonl, .parquet"),
        (["--out", "nowhere/a.csv"], "nowhere is not a folder"),
        (
            ["--keep", "text"],
            "--keep: expected --out FILE, the table that keeps them, got none; "
            "add --out answers.csv",
        ),
    ],
)
def test_what_cannot_be_written_is_told_first(ensue: Ensue, words: list[str], message: str) -> None:
    code, _, err = ensue("predict", "run", "new.csv", *words)
    assert code == 2
    assert message in err


@pytest.mark.parametrize("lost", ["new.csv", "train.csv", "link.csv"])
def test_no_file_that_is_read_is_written_over(place: Path, ensue: Ensue, lost: str) -> None:
    if lost == "link.csv" and not (place / lost).exists():
        (place / lost).symlink_to("new.csv")
    before = (place / lost).read_bytes()
    code, out, err = ensue("predict", "run", "new.csv", "--skip-bad", "--out", lost)
    assert (code, out) == (2, "")
    assert f"--out: {lost} is a file that is read, and would be lost; use --out" in err
    assert (place / lost).read_bytes() == before
    advised = err.split("use ")[1].split()
    assert ensue("predict", "run", "new.csv", "--skip-bad", *advised)[0] == 0

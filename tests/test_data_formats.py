"""Formats that people have: labels before texts, lists of JSON, unused fields, and files of other
programs, which get the sentence that helps."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Ensue, commands_in

from ensue.data.formats import format_named, format_names, formats
from ensue.data.options import ALL, ReadOptions
from ensue.data.read import gather, read
from ensue.data.recognise.format import format_of
from ensue.data.rows import Problem, Row
from ensue.errors import DataError
from ensue.runs.infer import infer

FASTTEXT = "__label__sport __label__news they won\n__label__news it rained\n"
LABELLED = "DESC:manner How did it end ?\nLOC:city\tWhere is it ?\n"
OBJECTS = [{"text": "they won", "label": "sport"}, {"text": "it rained", "label": "news"}]


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def outcome(path: Path, **options: Any) -> tuple[list[Row], list[str]]:
    """The sound rows, and the problems."""
    problems: list[Problem] = []
    rows = list(read(path, ReadOptions(**options), problems.append))
    return rows, [str(problem).replace(f"{path.parent}/", "") for problem in problems]


def fields_of(path: Path, **options: Any) -> list[dict[str, Any]]:
    """Those of the rows of a file without problems."""
    rows, problems = outcome(path, **options)
    assert problems == []
    return [row.fields for row in rows]


def refused(path: Path, **options: Any) -> str:
    with pytest.raises(DataError) as error:
        outcome(path, **options)
    return str(error.value)


# --- labels before texts ----------------------------------------------------------------

SAME_TEXT = {
    "as it is": lambda text: text.encode(),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "gzip": lambda text: gzip.compress(text.encode()),
    "empty lines at the end": lambda text: text.encode() + b"\n \n",
    "no line end": lambda text: text.rstrip("\n").encode(),
}
FILES = {
    "a.txt": (FASTTEXT, [{"text": "they won", "label": ["sport", "news"]},
                         {"text": "it rained", "label": "news"}]),
    "a.label": (LABELLED, [{"text": "How did it end ?", "label": "DESC:manner"},
                           {"text": "Where is it ?", "label": "LOC:city"}]),
    "a.json": (json.dumps(OBJECTS, indent=1), OBJECTS),
    "a.jsonl": ("".join(json.dumps(row) + "\n" for row in OBJECTS), OBJECTS),
}  # fmt: skip


@pytest.mark.parametrize("change", SAME_TEXT)
@pytest.mark.parametrize("name", FILES)
def test_the_same_rows_however_the_file_was_written(tmp_path: Path, name: str, change: str) -> None:
    content, expected = FILES[name]
    path = written(tmp_path / name, SAME_TEXT[change](content))
    assert fields_of(path) == expected
    rows = gather([path], ReadOptions())
    assert len(list(rows)) == rows.accepted == len(expected)
    assert rows.rejected == 0


def test_labels_stand_anywhere_in_a_line_of_fasttext(tmp_path: Path) -> None:
    path = written(tmp_path / "a.train", "__label__a x  y __label__b\n__label__c z__label__d\n")
    assert fields_of(path) == [
        {"text": "x  y", "label": ["a", "b"]},
        {"text": "z__label__d", "label": "c"},
    ]


def test_fasttext_is_recognised_by_most_of_its_first_lines(tmp_path: Path) -> None:
    path = written(tmp_path / "a.valid", FASTTEXT + "no label\n")
    assert format_of(path) == "fasttext"
    assert outcome(path)[1] == ["a.valid:3: expected a label, __label__ and its name, got none"]
    assert format_of(written(tmp_path / "b.txt", "plain\n" + FASTTEXT[:24] + "\n")) == "text"
    assert format_of(written(tmp_path / "c.txt", "")) == "text"
    assert format_of(written(tmp_path / "d.csv", FASTTEXT)) == "csv", "a name that tells is enough"
    assert format_of(path, "text") == "text"


def test_lines_of_fasttext_need_no_label_where_none_is_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", "they won\n__label__news it rained\n")
    fields = fields_of(path, format="fasttext", columns=("text",))
    assert [row["text"] for row in fields] == ["they won", "it rained"]


def test_what_training_makes_of_several_labels(tmp_path: Path) -> None:
    several = written(tmp_path / "several.txt", FASTTEXT * 3)
    config = infer({"train": [str(several)]}, None, []).config
    assert (config.task, config.data.text, config.data.label) == ("classify", "text", "label")
    assert config.model.table()["several"]
    one = written(tmp_path / "one.txt", "__label__a x\n__label__b y\n")
    assert not infer({"train": [str(one)]}, None, []).config.model.table()["several"]


# --- lists of JSON ----------------------------------------------------------------------


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_a_list_of_json_in_any_layout(tmp_path: Path, indent: int | None) -> None:
    path = written(tmp_path / "a.json", json.dumps([*OBJECTS, {"text": None}, 7], indent=indent))
    rows, problems = outcome(path, columns=("text", "label"))
    assert [row.fields for row in rows] == OBJECTS
    assert [row.place.line for row in rows] == [1, 2], "the numbers of the rows"
    lines = {None: ("", ""), 0: (" (line 10)", " (line 13)"), 2: (" (line 10)", " (line 13)")}
    assert problems == [
        f"a.json:3: unknown field 'label'. Known: text{lines[indent][0]}",
        f"a.json:4: expected an object, {{…}}, got a single value{lines[indent][1]}",
    ]


def test_kinds_in_a_list_of_json(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", '[{"a": "x"},\n\n{"a": 1}]')
    message = "a.json:2: field 'a': expected text as in row 1, got a number (line 3)"
    assert outcome(path, columns=("a",))[1] == [message]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "a.json:1: the file is empty"),
        ("[]", "a.json:1: the file has no rows"),
        (" \n", "a.json:1: the file has no rows"),
        (
            '[{"a": 1},\n {"a": 2},]',
            "a.json:3: invalid JSON on line 2, character 11: Expecting value; nothing after it is "
            "read",
        ),
        (
            '[{"a": 1} {"a": 2}]',
            "a.json:2: invalid JSON on line 1, character 11: expected , or ]; nothing after it is "
            "read",
        ),
        (
            '[{"a": 1}] x',
            "a.json:2: invalid JSON on line 1, character 12: text after the end of the list; "
            "nothing after it is read",
        ),
        (
            '[{"a": "x}]',
            "a.json:1: invalid JSON on line 1, character 8: Unterminated string; nothing after it "
            "is read",
        ),
        (
            "[" * 100_000,
            "a.json:1: invalid JSON on line 1, character 2: nested too deeply; nothing after it "
            "is read",
        ),
        (
            "7",
            "a.json:1: expected a list of objects, [{…}, …], or an object on each line, got "
            "neither",
        ),
        (
            '{"data": [{"a": 1}]}',
            "a.json:1: expected a list of objects, [{…}, …], or an object on each line, got one "
            "object: write its list 'data' alone",
        ),
        (
            '{\n "data": []\n}',
            "a.json:1: expected a list of objects, [{…}, …], or an object on each line, got one "
            "object over several lines",
        ),
        ('{"a": 1', "a.json:1: invalid JSON: Expecting ',' delimiter at character 8"),
    ],
)
def test_what_is_wrong_with_a_list_of_json(tmp_path: Path, content: str, problem: str) -> None:
    assert outcome(written(tmp_path / "a.json", content))[1] == [problem]


def test_a_faulty_line_takes_its_objects_alone(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", b'[{"a": "x"},\n {"a": "\xe9"},\n {"a": "\0"}, {"a": "y"}]')
    rows, problems = outcome(path)
    assert [row.fields for row in rows] == [{"a": "x"}]
    assert [problem.split(":")[1] for problem in problems] == ["2", "3", "4"]
    assert "0xE9 at byte 21" in problems[0]
    assert problems[0].endswith("(line 2)")


def test_json_lines_with_the_ending_of_json(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", '{"a": 1}\n{"a": }\n{"a": 2}\n')
    rows, problems = outcome(path)
    assert [(row.place.line, row.fields["a"]) for row in rows] == [(1, 1), (3, 2)]
    assert problems == ["a.json:2: invalid JSON: Expecting value at character 7"]


# --- unused fields ------------------------------------------------------------------------

UNUSED = {
    "an object": {"id": 3},
    "objects": [{"id": 3}],
    "lists": [[0, 3, "PER"]],
    "a mixed list": [1, "a"],
    "ragged vectors": [[1], [2, 3]],
    "null": None,
    "nothing": [],
    "a large text": "x" * 1_000_000,
    "many numbers": list(range(20_000)),
    "a number beyond all": 10**400,
}


@pytest.mark.parametrize("what", UNUSED)
def test_what_nobody_uses_takes_no_row_away(tmp_path: Path, what: str) -> None:
    objects = [{**OBJECTS[k % 2], "more": UNUSED[what]} for k in range(4)]
    path = written(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in objects))
    config = infer({"train": [str(path)]}, None, []).config
    assert (config.task, config.data.text, config.data.label) == ("classify", "text", "label")
    rows = gather([path], config.data.read_options())
    assert [row.fields for row in rows] == OBJECTS * 2, "and it is not held"


def test_fields_of_other_kinds_are_no_fault_of_a_check(tmp_path: Path, ensue: Ensue) -> None:
    more = [{"id": 1}, None, "a", [1], 2.5, {"id": 2}]
    objects = [{**OBJECTS[k % 2], "more": value} for k, value in enumerate(more)]
    written(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in objects))
    code, out, _ = ensue("data", "check", "a.jsonl", "--json")
    assert (code, json.loads(out)["parts"]["train"]["rows"]) == (0, 6)
    code, out, err = ensue("data", "show", "a.jsonl", "--rows", "6")
    assert (code, err) == (0, "")
    assert "more   text, 1 character" in out


@pytest.mark.parametrize("verb", ["check", "show", "train"])
def test_an_object_that_is_used_is_named(tmp_path: Path, ensue: Ensue, verb: str) -> None:
    objects = [{**row, "meta": {"title": "x"}} for row in OBJECTS]
    written(tmp_path / "a.json", json.dumps(objects))
    words = ["train", "a.json", "--run", "run"] if verb == "train" else ["data", verb, "a.json"]
    code, out, err = ensue(*words, "--text", "meta")
    message = (
        "a.json:1: field 'meta': expected text, numbers or lists of them, got an object: write "
        "the values that you need as separate fields"
    )
    assert (code, message in out + err) == (2, True)


def test_a_row_that_holds_nothing_is_a_fault(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", '{"a": {}}\n{}\n{"a": "x"}\n')
    message = "expected an object with text, numbers or lists of them, got none of these"
    assert outcome(path)[1] == [f"a.jsonl:1: {message}", f"a.jsonl:2: {message}"]


def test_a_field_that_few_rows_have_is_no_text_and_no_label(tmp_path: Path) -> None:
    rows = [{"said": f"{k} words", "kind": "ab"[k % 2]} for k in range(20)]
    rows[3] |= {"text": "a remark of some length", "label": "rare"}
    path = written(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    data = infer({"train": [str(path)]}, None, []).config.data
    assert (data.text, data.label) == ("said", "kind")
    data = infer({"train": [str(path)], "label": "label"}, None, []).config.data
    assert (data.text, data.label) == ("said", "label"), "one that was named may be anywhere"


def test_all_columns_of_a_series_are_used(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", '{"x": 1, "y": 2}\n{"x": null, "y": 3}\n')
    assert outcome(path, numbers=ALL)[1] == ["a.jsonl:2: field 'x': expected a value, got null"]


def table_rows() -> list[dict[str, Any]]:
    """With an empty cell."""
    rng = np.random.default_rng(1)
    rows = [{"a": float(a), "b": float(b), "y": float(a + b)} for a, b in rng.random((60, 2))]
    return [*rows, {"a": None, "b": 0.5, "y": 0.7}]


@pytest.mark.parametrize("ending", ["jsonl", "json", "parquet"])
def test_others_are_kept_beside_the_columns_that_are_needed(tmp_path: Path, ending: str) -> None:
    path, rows = tmp_path / f"a.{ending}", table_rows()
    nested = [{**row, "meta": {"id": 1}} for row in rows]
    if ending == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        table = pyarrow.Table.from_pylist(nested)
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    else:
        lines = "".join(json.dumps(row) + "\n" for row in nested)
        written(path, lines if ending == "jsonl" else json.dumps(nested))
    assert fields_of(path, columns=("y",), others=True) == rows
    assert fields_of(path, columns=("y",)) == [{"y": row["y"]} for row in rows]
    assert fields_of(path, used=("y", "z")) == [{"y": row["y"]} for row in rows]


def test_a_table_of_json_is_learned_from(tmp_path: Path, ensue: Ensue) -> None:
    """From all its columns; null is an empty cell."""
    written(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in table_rows()))
    settings = [f"--set={setting}" for setting in ("train.epochs=1", "model.missing=indicator")]
    code, _, err = ensue("train", "a.jsonl", "--label", "y", "--run", "run", "--quiet", *settings)
    assert code == 0, err
    columns = json.loads((tmp_path / "run/model/model.json").read_text())["columns"]
    assert [column["name"] for column in columns["numbers"]] == ["a", "b"]


# --- files of other programs ------------------------------------------------------------


def zipped(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, b"x" * 100)
    return buffer.getvalue()


def array_bytes() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    return buffer.getvalue()


ODS = "mimetypeapplication/vnd.oasis.opendocument.spreadsheet"
FOREIGN = {  # what it is, the bytes, and what the advice names
    "a.xlsx": ("an Excel workbook", zipped("[Content_Types].xml", "xl/workbook.xml"),
               "save it as CSV (File → Save As… → CSV UTF-8), or in Python: pandas.read_excel('{}')"
               ".to_csv('a.csv', index=False)"),
    "a.xls": ("an Excel workbook", bytes.fromhex("D0CF11E0A1B11AE1") + bytes(99), "read_excel"),
    "a.ods": ("an OpenDocument spreadsheet", zipped(ODS), "engine='odf'"),
    "a.docx": ("a Word document", zipped("word/document.xml"), "as plain text"),
    "a.pdf": ("a PDF", b"%PDF-1.7\n%\xe2\xe3", "pdftotext"),
    "a.zip": ("a zip archive", zipped("a.csv"), "unzip"),
    "a.pt": ("a file of PyTorch", zipped("a/data.pkl"), "executes the code in it"),
    "a.pkl": ("a pickle", pickle.dumps([("a", 1)]), "executes the code in it"),
    "a.npy": ("a NumPy array", array_bytes(), "numpy.load"),
    "a.npz": ("a NumPy archive", zipped("x.npy"), "numpy.load"),
    "a.feather": ("a Feather file", b"ARROW1\0\0\xff\xff", "read_feather"),
    "a.sqlite": ("an SQLite database", b"SQLite format 3\0\x10", "sqlite3 -header -csv"),
    "a.xz": ("a packed file", b"\xfd7zXZ\0\0", "gzip"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_of_another_program_gets_the_sentence_that_helps(tmp_path: Path, name: str) -> None:
    what, content, advice = FOREIGN[name]
    for file_name, format_name in {
        name: "auto",
        "renamed.csv": "auto",
        "other.txt": "text",
    }.items():
        path = written(tmp_path / file_name, content)
        message = refused(path, format=format_name)
        assert message.startswith(f"{path}: this is {what}, which Ensue does not read: ")
        csv = "rows.csv" if file_name == "renamed.csv" else f"{path.stem}.csv"
        assert advice.format(path).replace("a.csv", csv) in message


def test_names_of_other_programs_with_other_bytes(tmp_path: Path) -> None:
    path = written(tmp_path / "a.xls", "text\tlabel\nx\ty\n")  # as many programs export tables
    assert refused(path) == (
        f"{path}: the file is named like an Excel workbook, but the content is different: if it is "
        "text, name "
        "its format with --format, such as csv"
    )
    assert fields_of(path, format="tsv") == [{"text": "x", "label": "y"}]
    path = written(tmp_path / "a.tar.gz", gzip.compress(bytes(512)))
    assert refused(path) == f"{path}: a tar archive is not read: unpack it, as with tar xf {path}"


def test_a_parquet_file_by_another_name(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", b"PAR1\x15\x04\x15")
    assert refused(path) == f"{path}: this is a Parquet file: use --format parquet"
    path = written(tmp_path / "b.csv", "PAR1,FEA1\n1,2\n")  # names that look like such bytes
    assert fields_of(path) == [{"PAR1": "1", "FEA1": "2"}]


def test_commands_say_the_same(tmp_path: Path, ensue: Ensue) -> None:
    written(tmp_path / "a.xlsx", FOREIGN["a.xlsx"][1])
    written(tmp_path / "b.txt", "x\n")
    lines = "data check a.xlsx", "data show a.xlsx", "data check b.txt,a.xlsx", "train a.xlsx"
    for line in lines:
        code, _, err = ensue(*line.split())
        assert (code, "a.xlsx: this is an Excel workbook" in err) == (2, True), err


# --- the table of formats -----------------------------------------------------------------


def test_a_format_says_whether_its_first_line_may_name_columns() -> None:
    assert {file_format.name for file_format in formats() if file_format.header} == {
        "csv",
        "tsv",
    }
    assert format_named("csv").endings == (".csv",)


def test_commands_know_the_new_formats(tmp_path: Path, ensue: Ensue) -> None:
    names = ", ".join(format_names())
    out = " ".join(ensue("data", "show", "--help")[1].replace("│", " ").split())
    assert names in out
    for name, (content, expected) in FILES.items():
        written(tmp_path / name, content)
        code, out, _ = ensue("data", "check", name, "--json")
        report = json.loads(out)
        assert (code, report["parts"]["train"]["rows"]) == (0, len(expected))
        assert (report["text"], report["label"]) == ("text", "label")
        code, out, _ = ensue("data", "show", name)
        assert code == 0
        assert str(expected[0]["text"]) in out

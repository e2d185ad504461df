"""Reading each format: what a row is, and the words of what goes wrong with a whole file."""

from __future__ import annotations

import gzip
import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ensue.data.options import ALL, ReadOptions
from ensue.data.read import gather, gather_parallel, read, read_series
from ensue.data.rows import Place, Problem, Row
from ensue.errors import DataError, MissingExtra, OptionError


def rows_of(path: Path, **options: Any) -> list[Row]:
    """The rows of a file without problems."""

    def refuse(problem: Problem) -> None:
        raise AssertionError(str(problem))

    return list(read(path, ReadOptions(**options), refuse))


def problems_of(path: Path, **options: Any) -> list[str]:
    problems: list[str] = []
    list(read(path, ReadOptions(**options), lambda problem: problems.append(str(problem))))
    return [problem.replace(f"{path.parent}/", "") for problem in problems]


def written(path: Path, content: str) -> Path:
    path.write_bytes(content.encode())
    return path


# --- tables -----------------------------------------------------------------------------


def test_quoted_fields_by_rfc_4180(tmp_path: Path) -> None:
    content = 'a,b\r\n"x, y","say ""hi"""\r\n"two\r\nlines",\r\n"",""""\r\n"a\rb"," c "\r\n'
    rows = rows_of(written(tmp_path / "t.csv", content))
    assert rows == [
        Row(Place(str(tmp_path / "t.csv"), 2), {"a": "x, y", "b": 'say "hi"'}),
        Row(Place(str(tmp_path / "t.csv"), 3), {"a": "two\nlines", "b": ""}),
        Row(Place(str(tmp_path / "t.csv"), 5), {"a": "", "b": '"'}),
        Row(Place(str(tmp_path / "t.csv"), 6), {"a": "a\rb", "b": " c "}),
    ]


def test_a_tsv_has_no_quotes_unless_asked(tmp_path: Path) -> None:
    path = written(tmp_path / "t.tsv", 'a\tb\n"x\ty"\n')
    assert rows_of(path)[0].fields == {"a": '"x', "b": 'y"'}
    path = written(tmp_path / "q.tsv", 'a\tb\n"x\ty"\tz\n')
    assert rows_of(path, quote=True)[0].fields == {"a": "x\ty", "b": "z"}


def test_other_delimiters_and_names_instead_of_a_header(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "1;2\n3;4\n")
    rows = rows_of(path, delimiter=";", header=("x", "y"))
    assert [row.fields for row in rows] == [{"x": "1", "y": "2"}, {"x": "3", "y": "4"}]
    assert [row.place.line for row in rows] == [1, 2]


def test_empty_lines_count_only_between_rows(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "a,b\n1,2\n\n\n3,4\n\n\n")
    assert problems_of(path) == ["t.csv:3: the line is empty", "t.csv:4: the line is empty"]
    path = written(tmp_path / "one.csv", "a\n1\n\n2\n")  # with one column it is a row
    assert [row.fields["a"] for row in rows_of(path)] == ["1", "", "2"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "t.csv:1: the file is empty"),
        ("a,b\n", "t.csv:1: the file has no rows"),
        ("\n\n", "t.csv:1: the file has no rows"),
        (
            "a,b,a,,\n1,2,3,4,5\n",
            "t.csv:1: the header cannot be used: column 4 has no name; column 5 has no name; "
            "columns 1 and 3 have the same name 'a'. A file without a header line needs the names "
            "of its columns: --header a,b,…",
        ),
        (
            'a,"b\n1,2\n',
            "t.csv:1: the header cannot be used: the quote that opens column 2 is never closed "
            "(lines 1 to 2 are left out)",
        ),
        ("a,b\n1,2,3\n", "t.csv:2: expected 2 columns, found 3 (unquoted comma?)"),
        (
            'a,b\n"1\n\n2"\n',
            "t.csv:2: expected 2 columns, found 1 (missing comma?) in lines 2 to 4",
        ),
        ('a,b\n"1,2', "t.csv:2: the quote that opens column 1 is never closed"),
        (
            'a,b\n1,"2\n3\n4',
            "t.csv:2: the quote that opens column 2 is never closed (lines 2 to 4 are left out)",
        ),
        ("a,b\n1,2\r3\n", "t.csv:2: a carriage return inside the line (mixed line ends?)"),
        ('a,b\n"1",2\r3\n', "t.csv:2: a carriage return inside the line (mixed line ends?)"),
    ],
)
def test_what_is_wrong_with_a_table(tmp_path: Path, content: str, problem: str) -> None:
    assert problems_of(written(tmp_path / "t.csv", content)) == [problem]


def test_an_open_quote_does_not_swallow_the_file(tmp_path: Path) -> None:
    lines = ["a,b", *(f"{k},{k}" for k in range(50_000))]
    lines[100] = '"99,99'
    path = written(tmp_path / "t.csv", "\n".join(lines))
    problems: list[Problem] = []
    rows = list(read(path, ReadOptions(), problems.append))
    assert [str(p) for p in problems] == [
        f"{path}:101: the quote that opens column 1 is never closed"
    ]
    assert len(rows) == 49_999


def test_quotes_that_mean_nothing_end_the_reading(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "a,b\n" + '"x""y,2\n' * 3000)
    problems = problems_of(path)
    assert len(problems) == 101
    assert problems[-1] == (
        "t.csv:102: more than 100 quotes are never closed: if quotes have no meaning in this "
        "file, use --no-quote"
    )


def test_a_missing_column_names_those_there_are(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "review,stars\ngood,5\n")
    with pytest.raises(DataError) as error:
        rows_of(path, columns=("reviw", "stars", "who"))
    assert str(error.value) == (
        f"{path}:1: unknown column 'reviw': did you mean 'review'? Known: review, stars\n"
        f"{path}:1: unknown column 'who'. Known: review, stars\n"
        "A file without a header line needs the names of its columns: --header a,b,…"
    )


# --- series -----------------------------------------------------------------------------


def test_a_series_is_numbers_in_order_of_time(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "day,x,y\n2020-01-02,1,-2e3\n2020-01-03,0.5, 7\n")
    rows = list(read_series(path, lambda problem: pytest.fail(str(problem)), time="day"))
    assert [row.fields for row in rows] == [
        {"day": "2020-01-02", "x": 1.0, "y": -2000.0},
        {"day": "2020-01-03", "x": 0.5, "y": 7.0},
    ]


@pytest.mark.parametrize(
    ("times", "problem"),
    [
        (["1", "2", "2"], "t.csv:4: column 'day': '2' does not come after '2' on line 3"),
        (
            ["2020-01-31", "2020-02-01", "2020-01-02"],
            "t.csv:4: column 'day': '2020-01-02' does not come after '2020-02-01' on line 3",
        ),
        (
            ["2020-01-31", "1.2.2020", "2020-02-02"],
            "t.csv:3: column 'day': expected a time written as on line 2 ('2020-01-31'), "
            "got '1.2.2020'",
        ),
    ],
)
def test_time_that_does_not_go_on(tmp_path: Path, times: list[str], problem: str) -> None:
    content = "\n".join(["day,x", *(f"{time},1" for time in times)])
    path = written(tmp_path / "t.csv", content)
    assert problems_of(path, numbers=ALL, time="day") == [problem]


# --- JSON lines -------------------------------------------------------------------------


def test_json_values(tmp_path: Path) -> None:
    fields = {"text": "a", "tokens": ["b", "c"], "x": [1, 2.5], "frames": [[1, 2], [3, 4]], "n": 3}
    path = written(tmp_path / "t.jsonl", json.dumps(fields) + "\n\n")
    (row,) = rows_of(path)
    assert row.fields["tokens"] == ["b", "c"]
    assert row.fields["x"].tolist() == [1, 2.5]
    assert row.fields["frames"].shape == (2, 2)
    assert row.fields["n"] == 3
    assert set(rows_of(path, columns=("text",))[0].fields) == {"text"}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("[" * 100_000, "invalid JSON: nested too deeply"),
        ('{"n": 1' + "0" * 5000 + "}", "a number with too many digits"),
        (
            '{"n": 1' + "0" * 400 + "}",
            "field 'n': expected a finite number, at most 1e+30, got about 1e400",
        ),
        ("7", "expected an object, {…}, got a single value"),
        (
            '{"n": [[1], ["a"]]}',
            "field 'n': expected vectors of numbers, got something else at step 2",
        ),
        ('{"n": [true]}', "field 'n': expected a list of values of one type, got true or false"),
    ],
)
def test_what_is_wrong_with_json(tmp_path: Path, line: str, problem: str) -> None:
    path = written(tmp_path / "t.jsonl", line)
    assert problems_of(path, used=("n",)) == [f"t.jsonl:1: {problem}"]


# --- CoNLL ------------------------------------------------------------------------------

CONLL = "-DOCSTART- -X- O O\n\n# id = 4\nEU NNP B-NP B-ORG\n# NN O O\n\n\nx\u00a0y CD O O\n"


def test_conll_sentences(tmp_path: Path) -> None:
    rows = rows_of(written(tmp_path / "t.conll", CONLL))
    assert [(row.place.line, row.fields["form"], row.fields["tag"]) for row in rows] == [
        (3, ["EU", "#"], ["B-ORG", "O"]),
        (8, ["x\u00a0y"], ["O"]),
    ]
    assert list(rows[0].fields) == ["form", "column2", "column3", "tag"]
    names = ("form", "pos", "chunk", "ner")
    assert list(rows_of(tmp_path / "t.conll", conll=names)[0].fields) == list(names)


def test_conll_with_tabs_keeps_spaces_and_sees_empty_columns(tmp_path: Path) -> None:
    path = written(tmp_path / "t.conll", "New York\tB\nis\tO\n\nbig\t\n")
    problems: list[Problem] = []
    (row,) = read(path, ReadOptions(), problems.append)
    assert row.fields == {"form": ["New York", "is"], "tag": ["B", "O"]}
    assert [str(p) for p in problems] == [f"{path}:4: column 'tag' is empty"]


def test_two_faults_of_a_sentence_take_one_row(tmp_path: Path) -> None:
    path = written(tmp_path / "t.conll", "a O\nb\nc\n\nd O\n")
    problems: list[Problem] = []
    assert len(list(read(path, ReadOptions(), problems.append))) == 1
    assert [(p.place.line, p.rejects) for p in problems] == [(2, 1), (3, 0)]


# --- folders and whole texts ------------------------------------------------------------


def test_a_folder_for_each_label(tmp_path: Path) -> None:
    for label, name, content in [
        ("pos", "2.txt", "good\nfilm\n"),
        ("pos", "10.txt", "fine"),
        ("neg", "1.txt.gz", "bad"),
        ("neg", ".hidden", "x"),
    ]:
        (tmp_path / label).mkdir(exist_ok=True)
        data = content.encode()
        (tmp_path / label / name).write_bytes(gzip.compress(data) if "gz" in name else data)
    rows = rows_of(tmp_path)
    assert [row.fields for row in rows] == [
        {"text": "bad", "label": "neg"},
        {"text": "fine", "label": "pos"},
        {"text": "good\nfilm", "label": "pos"},
    ]
    (tmp_path / "neg" / "2.txt").write_bytes(b"a\n\xff\n\0\n")
    (tmp_path / "neg" / "3.txt").write_bytes("utf-16".encode("utf-16"))
    (tmp_path / "neg" / "4.csv").write_bytes(b"a")
    (tmp_path / "zero").mkdir()
    problems: list[Problem] = []
    assert list(read(tmp_path, ReadOptions(), problems.append)) == rows
    assert [(str(p.place).removeprefix(f"{tmp_path}/"), p.rejects) for p in problems] == [
        ("neg/2.txt:2", 1),
        ("neg/2.txt:3", 0),
        ("neg/3.txt:1", 1),
        ("neg/4.csv:1", 1),
        ("zero:1", 0),
    ]
    assert problems[3].reason == "expected a .txt file"
    assert problems[4].reason == "the folder of this label is empty"


def test_a_folder_without_labels(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        rows_of(tmp_path)
    assert str(error.value) == (
        f"{tmp_path}: expected a folder for each label with .txt files inside "
        f"({tmp_path}/positive/1.txt), found no folder"
    )
    written(tmp_path / "1.png", "")
    written(tmp_path / "captions.tsv", "")
    with pytest.raises(DataError, match=r"to read a file in it, name the file: .*/captions"):
        rows_of(tmp_path)


def test_a_folder_of_pictures_is_none_of_texts(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    written(tmp_path / "cat" / "1.png", "")
    with pytest.raises(DataError, match=r"\.txt files inside or with pictures inside"):
        problems_of(tmp_path)
    written(tmp_path / "cat" / "2.txt", "a cat")
    assert problems_of(tmp_path) == [
        f"{tmp_path.name}/cat/1.png:1: expected a .txt file, got a picture: a folder holds .txt "
        "files alone, or pictures alone"
    ]


def test_a_whole_text_is_one_row(tmp_path: Path) -> None:
    path = written(tmp_path / "t.txt", "a\n\nb\r\n")
    assert [row.fields["text"] for row in rows_of(path, format="whole")] == ["a\n\nb"]
    assert [row.fields["text"] for row in rows_of(path)] == ["a", "", "b"]


# --- Parquet ----------------------------------------------------------------------------


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    columns = {"text": ["a", None, "c"], "frames": [[[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 6.0]]]}
    path = tmp_path / "t.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    problems: list[Problem] = []
    rows = list(read(path, ReadOptions(columns=("text",), others=True), problems.append))
    assert [str(p) for p in problems] == [f"{path}:2: field 'text': expected a value, got null"]
    assert [row.place.line for row in rows] == [1, 3]
    assert np.array_equal(rows[1].fields["frames"], [[5.0, 6.0]])
    with pytest.raises(DataError, match="unknown column 'txt': did you mean 'text'"):
        rows_of(path, columns=("txt",))
    path.write_bytes(path.read_bytes()[:-9])
    (problem,) = problems_of(path)
    assert problem.startswith("t.parquet:1: not a readable Parquet file: Parquet magic bytes")


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, package: str | None = None) -> None:
        raise ImportError(name)

    monkeypatch.setattr("ensue.data.formats.parquet.import_module", missing)
    path = written(tmp_path / "t.parquet", "x")
    with pytest.raises(MissingExtra) as error:
        rows_of(path)
    assert str(error.value) == (
        f"{path}: reading Parquet needs pyarrow: pip install 'ensue[parquet]'"
    )


# --- options ----------------------------------------------------------------------------


def test_a_name_that_does_not_tell_the_format(tmp_path: Path) -> None:
    path = written(tmp_path / "a.dat.gz", "x")
    with pytest.raises(DataError) as error:
        rows_of(path)
    assert str(error.value) == (
        f"{path}: the name does not tell the format (known: .conll, .conllu, .csv, "
        ".json, .jsonl, .ndjson, .label, .parquet, .txt, .trees, .tree, .mrg, .ptb, .tsv, each "
        "also with .gz); use --format with one of conll, conllu, csv, fasttext, folder, json, "
        "jsonl, labelled, parquet, text, trees, tsv, whole"
    )


def test_wrong_options_are_told_together() -> None:
    with pytest.raises(OptionError) as error:
        ReadOptions(delimiter="ab", header=("x", "x", ""), longest_line=5, sequence="id")
    assert str(error.value) == (
        "header: column 3 has no name\n"
        "header: columns 1 and 2 have the same name 'x'\n"
        "delimiter: expected one character, not a quote or a line end, got 'ab'\n"
        "longest_line: expected a number of bytes ≥ 262144, got 5\n"
        "sequence: expected `numbers` with it, the columns of its features"
    )
    with pytest.raises(OptionError) as error:
        ReadOptions(header=False)
    assert str(error.value) == "header: expected True or the names of the columns, got False"
    with pytest.raises(OptionError, match="unknown format 'cvs': did you mean 'csv'"):
        ReadOptions(format="cvs")


# --- all that are sound -----------------------------------------------------------------


def test_gathering_is_strict_or_skips(tmp_path: Path) -> None:
    sound = written(tmp_path / "a.csv", "a,b\n1,2\n")
    faulty = written(tmp_path / "b.csv", "a,b\n" + "1,2\n1,2,3\n" * 33)
    strict = gather([sound, faulty], ReadOptions())
    with pytest.raises(DataError) as error:
        list(strict)
    messages = [
        f"  {faulty}:{2 * k + 3}: expected 2 columns, found 3 (unquoted comma?)" for k in range(3)
    ]
    assert str(error.value) == "\n".join(
        [
            f"33 problems in {sound}, {faulty}",
            *messages,
            "    and 30 more like it",
            "Fix the lines, or use --skip-bad to leave them out.",
        ]
    )
    heard: list[Problem] = []
    lenient = gather([sound, faulty], ReadOptions(), skip_bad=True, on_bad_row=heard.append)
    assert len(list(lenient)) == lenient.accepted == 34
    assert lenient.rejected == len(heard) == lenient.count == 33


def test_gathering_counts_rows_not_faults(tmp_path: Path) -> None:
    path = written(tmp_path / "t.conll", "a O\nb\nc\n\nd O\n\ne O x\n")
    rows = gather([path], ReadOptions(conll=("form", "tag")), skip_bad=True)
    assert len(list(rows)) == rows.accepted == 1
    assert (rows.rejected, rows.count) == (2, 3)


def test_gathering_needs_a_row(tmp_path: Path) -> None:
    faulty = written(tmp_path / "b.csv", "a,b\n1\n")
    with pytest.raises(DataError) as error:
        list(gather([faulty], ReadOptions(), skip_bad=True))
    assert str(error.value) == (
        f"1 problem in {faulty}\n  {faulty}:2: expected 2 columns, found 1 (missing "
        "comma?)\nNo valid row is left."
    )


def test_gathering_pairs(tmp_path: Path) -> None:
    one, two = written(tmp_path / "a.en", "a\nb\n"), written(tmp_path / "a.de", "c\nd\ne\n")
    pairs = gather_parallel(one, two, ReadOptions(), skip_bad=True)
    assert [tuple(row.fields.values()) for row in pairs] == [("a", "c"), ("b", "d")]
    assert (pairs.accepted, pairs.rejected) == (2, 1)
    with pytest.raises(DataError) as error:
        list(gather_parallel(one, two, ReadOptions()))
    assert str(error.value) == (
        f"1 problem in {one} and {two}\n"
        f"  {two}:3: no line of the other file belongs to this one: {one} has 2 lines, "
        f"{two} has 3\n"
        "Fix the lines, or use --skip-bad to leave them out."
    )

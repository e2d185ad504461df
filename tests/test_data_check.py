"""`check` and `show`: what they find, and the screens they print."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import commands_in
from pages import check_page, words

from ensue.data import show as show_module
from ensue.data.check import Report, check
from ensue.data.options import ALL, ReadOptions
from ensue.data.show import Preview
from ensue.drawing.layout import aligned, cut, width_of
from ensue.errors import DataError
from ensue.escape import printable


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def table(name: str, rows: list[tuple[str, str]]) -> str:
    Path(name).write_text(
        "".join(f"{text}\t{label}\n" for text, label in [("text", "label"), *rows])
    )
    return name


def checked(**parts: list[tuple[str, str]]) -> Report:
    return check(
        {name: [table(f"{name}.tsv", rows)] for name, rows in parts.items()}, ReadOptions()
    )


def warned(report: Report, kind: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(message, examples) for k, message, examples in report.warnings if k == kind]


def clean(count: int, seed: int = 0) -> list[tuple[str, str]]:
    rng = random.Random(seed)
    return [(f"{rng.random()} {rng.random()}", f"{k % 2}") for k in range(count)]


# --- what is found ---------------------------------------------------------------------------


def test_clean_data_has_no_warning() -> None:
    report = checked(train=clean(50), test=clean(20, seed=1))
    assert report.warnings == []
    assert report.ok


def test_leakage_sees_through_case_and_spaces() -> None:
    train = [*clean(10), ("A  good Film", "1")]
    report = checked(
        train=train, dev=clean(4, 1), test=[*clean(6, 2), (" a GOOD film", "0"), train[3]]
    )
    assert warned(report, "leakage") == [
        (
            "2 of 8 rows of test are in train as well",
            ("test.tsv:8 = train.tsv:12", "test.tsv:9 = train.tsv:5"),
        ),
    ]
    assert report.as_json()["parts"]["test"]["leaked"] == {"train": 2}


@pytest.mark.parametrize("seed", range(5))
def test_leaks_duplicates_and_conflicts_are_counted(seed: int) -> None:
    rng = random.Random(seed)
    parts = {name: clean(30, seed=k + 10 * seed) for k, name in enumerate(["train", "dev", "test"])}
    leaks, twice, conflicts = rng.randint(0, 9), rng.randint(0, 9), rng.randint(0, 9)
    parts["test"] += [(text.upper(), label) for text, label in rng.sample(parts["train"], leaks)]
    parts["train"] += rng.sample(parts["train"], twice)
    parts["dev"] += [(text, "other") for text, _ in rng.sample(parts["dev"], conflicts)]
    facts = checked(**parts).as_json()["parts"]
    assert facts["test"]["leaked"] == ({"train": leaks} if leaks else {})
    assert facts["train"]["duplicates"] == twice
    assert facts["dev"]["conflicts"] == conflicts
    assert facts["train"]["conflicts"] == facts["dev"]["duplicates"] == 0


def test_the_same_text_with_another_label() -> None:
    report = checked(train=[*clean(5), ("fine", "1"), ("Fine", "0"), ("fine", "1")])
    assert warned(report, "conflict") == [
        (
            "1 of 8 rows of train have the text of another row and a different label",
            ("train.tsv:8 = line 7",),
        ),
    ]
    assert warned(report, "duplicates") == [
        ("1 of 8 rows of train are the same as another row", ("train.tsv:9 = line 7",)),
    ]


@pytest.mark.parametrize(
    ("train", "test", "kind", "message"),
    [
        (["a"] * 19 + ["b"] * 2, ["a"], "imbalance", "90.5 % of the labels of train are 'a'"),
        (["a", "a", "b"], ["a", "b"], "labels", "only once in train: 'b'"),
        (["a"] * 3, ["a"], "labels", "all rows of train have the one label 'a'"),
        (["a", "a", "b", "b"], ["c", "c"], "labels", "in test and never in train: 'c'"),
        (
            ["a", "a", "A ", "A "],
            ["a", "a"],
            "labels",
            "labels that differ in case or spaces only: 'A ', 'a'",
        ),
    ],
)
def test_labels(train: list[str], test: list[str], kind: str, message: str) -> None:
    def rows(labels: list[str], seed: int) -> list[tuple[str, str]]:
        texts = clean(len(labels), seed)
        return [(text, label) for (text, _), label in zip(texts, labels, strict=True)]

    report = checked(train=rows(train, 1), test=rows(test, 2))
    assert (message, ()) in warned(report, kind)
    assert report.ok


def test_nine_tenths_are_no_imbalance() -> None:
    report = checked(train=[(text, "b" if k < 2 else "a") for k, (text, _) in enumerate(clean(20))])
    assert warned(report, "imbalance") == []


def test_a_label_with_a_thousand_values_is_no_class() -> None:
    report = checked(train=[(f"text {k}", f"{k}") for k in range(1200)])
    assert warned(report, "labels") == [
        ("more than 1,000 different labels in train: are they classes?", ())
    ]


def test_lengths_empty_rows_and_lost_letters() -> None:
    rows = [(" ".join(["word"] * k), f"{k % 2}") for k in range(1, 101)]
    rows += [("x" * 10_000_000, "1"), ("", "0"), ("  ", "1"), ("caf\ufffd", "1")]
    report = checked(train=rows)
    facts = report.as_json()["parts"]["train"]
    assert facts["rows"] == 104
    assert facts["length"] == {"median": 48, "95%": 94, "max": 100}
    assert warned(report, "length") == [
        (
            "1 of 104 rows of train are far longer than the others",
            ("train.tsv:102 (10,000,000 characters)",),
        ),
    ]
    assert warned(report, "empty") == [("2 of 104 rows of train have no text", ())]
    assert warned(report, "damage") == [
        (
            "1 of 104 rows of train contain U+FFFD, the mark of characters lost in an "
            "earlier conversion",
            (),
        )
    ]


def test_unseen_words() -> None:
    report = checked(train=[("One two", "a"), ("three!", "b")], test=[("one, two four", "a")])
    facts = report.as_json()["parts"]["test"]
    assert (facts["words"], facts["unseen_words"]) == (4, 2)  # the comma and "four"


def test_faults_decide() -> None:
    Path("a.csv").write_text('text,label\nx,1\ny,2,3\n"z\n')
    report = check({"train": ["a.csv"]}, ReadOptions())
    assert not report.ok
    assert report.as_json()["problems"] == [
        {"file": "a.csv", "line": 3, "reason": "expected 2 columns, found 3 (unquoted comma?)"},
        {"file": "a.csv", "line": 4, "reason": "the quote that opens column 1 is never closed"},
    ]
    facts = report.as_json()["parts"]["train"]
    assert (facts["rows"], facts["rejected"]) == (1, 2)
    Path("empty.csv").write_text("")
    assert not check({"train": ["empty.csv"]}, ReadOptions()).ok


def test_tags_and_vectors_are_checked_as_well() -> None:
    Path("a.conll").write_text("EU B\nrejects O\n\nEU B\nrejects B\n")
    report = check({"train": ["a.conll"]}, ReadOptions())
    assert (report.roles and report.roles[:2]) == ("form", "tag")
    assert report.parts[0].labels == {"B": 3, "O": 1}
    assert report.parts[0].conflicts.count == 1
    rows = [{"frames": [[1, 2], [3, 4]], "kind": "up"}, {"frames": [[1, 2], [3, 4]], "kind": "up"}]
    Path("a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    report = check({"train": ["a.jsonl"]}, ReadOptions(), text="frames", label="kind")
    assert report.parts[0].duplicates.count == 1
    assert report.as_json()["parts"]["train"]["length"]["max"] == 2


def test_a_series_has_steps_and_no_texts() -> None:
    Path("s.csv").write_text("x,y\n1,2\n1,2\n3,NA\n")
    report = check({"train": ["s.csv"]}, ReadOptions(numbers=ALL))
    assert report.warnings == []
    facts = report.as_json()["parts"]["train"]
    assert (facts["rows"], facts["rejected"]) == (2, 1)


def test_what_has_no_text_is_a_series_or_a_table() -> None:
    """A date is no text, empty cells of a series are no missing labels, and the report names what
    each column holds."""
    days = [f"2021-01-{day:02}" for day in range(1, 29)]
    rows = "".join(f"{day},{'' if k == 5 else k + 0.5},{k % 2}\n" for k, day in enumerate(days))
    Path("wide.csv").write_text(f"date,sales,promo\n{rows}")
    report = check({"train": ["wide.csv"]}, ReadOptions())
    assert (report.ok, report.as_json()["text"], report.as_json()["label"]) == (True, None, None)
    assert report.columns["date"] == "dates"
    text = report.as_text()
    assert "read as a series\n  date: a series of 28 steps, one per day" in text
    assert "warning" not in text
    assert "1 empty cell in sales" in text
    shops = "".join(
        f"{day},{shop},{'' if k == 9 else k + 0.5}\n" for shop in "ab" for k, day in enumerate(days)
    )
    Path("panel.csv").write_text(f"date,shop,sales\n{shops}")
    text = check({"train": ["panel.csv"]}, ReadOptions()).as_text()
    assert "date: 2 series by shop, of up to 28 rows each\n  2 empty cells in sales" in text
    assert "warning" not in text
    assert re.search(r"train +56 +0 +– +0 ", text)  # no count of empty texts: no text is empty
    customers = "".join(f"{20 + k % 9},{'ab'[k % 2]},{'ny'[k % 5 == 0]}\n" for k in range(40))
    Path("churn.csv").write_text(f"age,plan,churn\n{customers}")
    assert "text:" not in check({"train": ["churn.csv"]}, ReadOptions()).as_text()
    named = check({"train": ["churn.csv"]}, ReadOptions(), label="churn")
    assert named.parts[0].labels == {"y": 8, "n": 32}


def test_the_fields_are_guessed_or_named() -> None:
    Path("a.csv").write_text("id,kind,said\n1,x,some words\n2,y,more words\n3,x,words\n4,y,w\n")
    report = check({"train": ["a.csv"]}, ReadOptions())
    assert report.roles is not None
    assert report.roles[:3] == ("said", "kind", True)
    named = check({"train": ["a.csv"]}, ReadOptions(), text="kind", label="id").roles
    assert named is not None
    assert named[:3] == ("kind", "id", False)
    with pytest.raises(DataError) as error:
        check({"train": ["a.csv"]}, ReadOptions(), text="sayd")
    assert str(error.value) == (
        "a.csv:2: unknown column 'sayd': did you mean 'said'? Known: id, kind, said"
    )


# --- the screens -----------------------------------------------------------------------------


def test_a_check_is_a_block_of_a_notebook() -> None:
    table("train.tsv", [(f"<b>text</b> {k}", "good" if k % 3 else "bad") for k in range(12)])
    page_words = words(check_page(check({"train": ["train.tsv"]}, ReadOptions())._repr_html_()))
    assert "no faulty rows" in page_words
    assert "good 8 66.7 %" in page_words


def test_the_screen_of_check() -> None:
    rows = [(f"text {k}", "good" if k % 3 else "bad") for k in range(12)]
    table("train.tsv", [*rows, rows[4]])
    table("test.tsv", [("text 3 ", "bad"), ("new words", "good\ttoo")])
    report = check({"train": ["train.tsv"], "test": ["test.tsv"]}, ReadOptions(), text="text")
    assert (
        report.as_text()
        == """\
text: text, label: label (guessed; --text and --label choose others)

part   rows  rejected  empty  duplicate  median  95 %  longest  unseen
train    13         0      0          1       2     2        2       –
test      1         1      0          0       2     2        2   0.0 %

label  train          test
good       9  69.2 %     0    0.0 %
bad        4  30.8 %     1  100.0 %

3 warnings
  leakage: 1 of 1 rows of test are in train as well
    test.tsv:2 = train.tsv:5
  duplicates: 1 of 13 rows of train are the same as another row
    train.tsv:14 = line 6
  labels: all rows of test have the one label 'bad'

1 problem
  test.tsv:3: expected 2 columns, found 3 (a tab inside a field?)"""
    )
    json.dumps(report.as_json())


def show(path: str, options: ReadOptions, count: int = 5, width: int = 80) -> str:
    return Preview.of(path, options, count).as_text(width)


def test_the_screen_of_show() -> None:
    table("a.tsv", [("x\ty", "1"), ("a long text that goes on and on", "1"), ("日本\x1b[31m", "2")])
    assert (
        show("a.tsv", ReadOptions(), count=3, width=30)
        == """\
a.tsv: tsv, the first 2 rows

field  kind
text   text, 7 to 31 characte…
label  a number, as text

line  text               label
3     a long text that…  1
4     日本\\x1b[31m       2

problems: 1
  a.tsv:2: expected 2 columns, found 3 (a tab inside a field?)"""
    )


def test_show_reads_no_further_than_it_shows() -> None:
    table("a.tsv", [("fine", "1")] * 5)
    with Path("a.tsv").open("ab") as file:
        file.write(b"\xff\n")
    assert "problems" not in show("a.tsv", ReadOptions(), count=5)
    assert "problems: 1" in show("a.tsv", ReadOptions(), count=6)


def test_show_reads_once_for_rows_and_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of 90,000 keys takes its time; with a column named, its faults are looked for."""
    table("a.tsv", [("one two", "1"), ("three", "2")])
    opened: list[object] = []
    plain = show_module.read
    monkeypatch.setattr(
        show_module, "read", lambda *arguments: (opened.append(arguments), plain(*arguments))[1]
    )
    preview = Preview.of("a.tsv", ReadOptions(), 5)
    assert "the first 2 rows" in preview.as_text()
    assert preview.tokens().splitlines()[1:] == ["      2  one·two", "      1  three"]
    assert len(opened) == 1
    assert preview.tokens("label").startswith("as tokens (label,")
    assert len(opened) == 2


def test_show_loads_no_torch() -> None:
    table("a.tsv", [("one two", "1"), ("three", "2")])
    script = (
        "import sys; from ensue.cli import main\n"
        "try: main(['data', 'show', 'a.tsv'])\n"
        "finally: print('torch' in sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "False\n")
    assert "one·two" in ran.stdout


def test_show_of_vectors_tokens_and_nothing() -> None:
    Path("a.jsonl").write_text('{"x": [[1, 2.5]], "t": ["a", "b"], "n": 3, "v": [1]}\n')
    assert (
        show("a.jsonl", ReadOptions(), width=60)
        == """\
a.jsonl: jsonl, the first row

field  kind
x      vectors of 2 numbers, 1 step
t      2 tokens
n      a number
v      1 number

line  x            t    n  v
1     1×2: 1, 2.5  a b  3  1: 1"""
    )
    Path("e.txt").write_text("")
    assert show("e.txt", ReadOptions()) == (
        "e.txt: text, no valid row\n\nproblems: 1\n  e.txt:1: the file is empty"
    )


@pytest.mark.parametrize("width", [20, 40, 79])
def test_show_keeps_to_the_width(width: int) -> None:
    names = [f"column{k}" for k in range(9)]
    Path("a.csv").write_text(",".join(names) + "\n" + ",".join(["日本 words"] * 9) + "\n")
    lines = show("a.csv", ReadOptions(), width=width).splitlines()[1:]
    assert max(map(width_of, lines)) <= width


def test_layout() -> None:
    assert printable("a\nb\x1b[0m\u202e日") == "a\\nb\\x1b[0m\\u202e日"
    assert [width_of(text) for text in ("ab", "日本", "e\u0301")] == [2, 4, 1]
    assert [cut("日本語", w) for w in (6, 5, 4, 3)] == ["日本語", "日本…", "日…", "日…"]
    assert aligned([["a", "bb"], ["日本", "c"]]) == ["a     bb", "日本   c"]


# --- memory ------------------------------------------------------------------------------------

MEMORY = """
import resource, sys
from ensue.data.check import check
from ensue.data.options import ReadOptions

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

check({"train": sys.argv[1:2]}, ReadOptions())
before = peak()
assert check({"train": sys.argv[2:]}, ReadOptions()).parts[0].rows == 50_000
print((peak() - before) // 1024)
"""


@pytest.mark.slow
def test_checking_keeps_no_text(tmp_path: Path) -> None:
    text = "word " * 200
    table("small.tsv", clean(10))
    table("big.tsv", [(f"{text} {k % 1000} {k // 1000}", f"{k % 2}") for k in range(50_000)])
    run = [sys.executable, "-c", MEMORY, "small.tsv", "big.tsv"]
    grown = subprocess.run(run, capture_output=True, text=True, check=True, timeout=300).stdout
    assert int(grown) < 25


# --- what a first look gets wrong --------------------------------------------------------------


def refused(name: str, content: str, options: ReadOptions) -> str:
    Path(name).write_text(content)
    with pytest.raises(DataError) as error:
        check({"train": [name]}, options)
    return str(error.value)


def test_rows_without_a_label_are_problems() -> None:
    Path("a.csv").write_text("text,label\none,x\ntwo,\nthree, \nfour,y\n")
    Path("a.jsonl").write_text('{"text": "a", "label": "x"}\n{"text": "b"}\n')
    for file, lines in (("a.csv", (3, 4)), ("a.jsonl", (2,))):
        report = check({"train": [file]}, ReadOptions(), label="label")
        reason = "label: expected a label, got nothing: fill it in"
        assert [str(problem) for problem in report.problems] == [
            f"{file}:{n}: {reason}" for n in lines
        ]
        assert (report.ok, report.parts[0].rejected) == (False, len(lines))


@pytest.mark.parametrize(
    ("delimiter", "name", "option"),
    [
        (";", "semicolon", "--delimiter ';'"),
        ("|", "bar", "--delimiter '|'"),
        ("\t", "tab", "--format tsv"),
    ],
)
def test_another_delimiter_is_suggested(delimiter: str, name: str, option: str) -> None:
    rows = ["text,label", "a, b,x", "c,y"]
    content = "\n".join(delimiter.join(row.rsplit(",", 1)) for row in rows)
    assert refused("a.csv", content, ReadOptions()) == (
        f"a.csv:1: with a comma as the delimiter there is one column, {f'text{delimiter}label'!r}, "
        f"with a {name} in it: use {option} (--delimiter ',' if it really is one)"
    )
    bare = content.partition("\n")[2].replace(", ", " ")
    assert f"use {option}" in refused("a.csv", bare, ReadOptions(header=("text", "label")))
    Path("a.csv").write_text(f'"text"{delimiter}"label"\n"a"{delimiter}"x"\n')
    (problem,) = check({"train": ["a.csv"]}, ReadOptions()).problems
    assert problem.reason.endswith(f"after the closing quote of column 1 (use {option}?)")
    Path("a.csv").write_text(f"text{delimiter}more\nx\n")
    assert check({"train": ["a.csv"]}, ReadOptions(delimiter=",")).ok


def test_headers_that_are_rows_and_rows_that_are_headers() -> None:
    Path("a.csv").write_text("".join(f"text {k},{'ab'[k % 2]}\n" for k in range(9)))
    hint = "the first line is taken as names of columns: {}; if it is data, use --header a,b,…"
    assert warned(check({"train": ["a.csv"]}, ReadOptions()), "header") == [
        (hint.format("text 0, a"), ())
    ]
    named = ReadOptions(header=("text", "label"))
    assert warned(check({"train": ["a.csv"]}, named), "header") == []
    Path("b.csv").write_text("one two three four five six seven eight,n\nx,1\ny,2\n")
    assert warned(check({"train": ["b.csv"]}, ReadOptions()), "header")
    assert refused("c.csv", "Text, LABEL\nx,1\ny,2\n", named) == (
        "c.csv:1: the file has a header line already, Text,  LABEL: leave --header out, or "
        "remove the line"
    )


def test_a_label_repeats_and_is_not_always_the_same() -> None:
    lines = [f"en,some words {k},{'xy'[k % 2]},{k}" for k in range(20)]
    Path("a.csv").write_text("\n".join(["lang,said,kind,id", *lines]))
    roles = check({"train": ["a.csv"]}, ReadOptions()).roles
    assert roles is not None
    assert roles[:3] == ("said", "kind", True)
    Path("b.csv").write_text("\n".join(["label,said,stars", *(line[:-2] for line in lines[:10])]))
    sorted_by = check({"train": ["b.csv"]}, ReadOptions()).roles
    assert sorted_by is not None
    assert sorted_by[:3] == ("said", "stars", True)
    Path("c.csv").write_text("lang,said\n" + "en,some words\nen,others\nen,more\n")
    alone = check({"train": ["c.csv"]}, ReadOptions()).roles
    assert alone is not None
    assert alone[:3] == ("said", None, True)


def test_problems_that_are_alike_are_told_together() -> None:
    lines = ["a,b,c\n" if k % 2 else "a\n" for k in range(58)]
    Path("a.csv").write_text("text,label\nx,1\ny,2\n" + "".join(lines))
    report_lines = check({"train": ["a.csv"]}, ReadOptions()).as_text().splitlines()
    assert report_lines[-9:] == [
        "58 problems",
        "  a.csv:4: expected 2 columns, found 1 (missing comma?)",
        "  a.csv:5: expected 2 columns, found 3 (unquoted comma?)",
        "  a.csv:6: expected 2 columns, found 1 (missing comma?)",
        "  a.csv:7: expected 2 columns, found 3 (unquoted comma?)",
        "  a.csv:8: expected 2 columns, found 1 (missing comma?)",
        "    and 26 more like it",
        "  a.csv:9: expected 2 columns, found 3 (unquoted comma?)",
        "    and 26 more like it",
    ]


def test_several_inputs_are_checked_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.pgm").write_bytes(b"P5 1 1 255\n0")
    rows = ["title,story,price,photo,sold", "bike,red,3,a.pgm,yes", "bike,blue,4,a.pgm,no"]
    rows += ["bike,red,3,a.pgm,yes", "car,old,9,b.pgm,no"]
    (tmp_path / "ads.csv").write_text("\n".join(rows) + "\n")
    ensue = commands_in(tmp_path, capsys, monkeypatch)
    words = ("--text", "title", "--text", "story", "--columns", "price", "--image", "photo")
    code, out, _ = ensue("data", "check", "ads.csv", *words, "--label", "sold")
    assert code == 2
    assert "inputs: title + story + price + photo, label: sold" in out
    assert "ads.csv:5: photo: no such file, b.pgm" in out
    assert "1 of 3 rows of train are the same as another row" in out.replace("\n", " ")
    code, out, _ = ensue("data", "check", "ads.csv", *words, "--label", "sold", "--json")
    assert json.loads(out)["inputs"] == ["title", "story", "price", "photo"]
    code, _, err = ensue("data", "check", "ads.csv", "--text", "title", "--columns", "prize")
    assert (code, "unknown column 'prize': did you mean 'price'" in err) == (2, True)

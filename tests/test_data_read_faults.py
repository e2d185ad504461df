"""Faults put into clean files at random places: each is reported with its line, nothing else is,
and kept + rejected is the number of rows."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ensue.data.options import ALL, ReadOptions
from ensue.data.read import read, read_parallel
from ensue.data.rows import Problem

SEEDS, ROWS = range(12), 40
WORDS = ["film", "an,d", "naïve", 'qu"ote', "tab", "日本", "x\u2028y", "a\x85b", "end.", "f\x0cg"]
Fault = Callable[[random.Random, list[str]], tuple[int, str]]  # changes the lines of a row


@dataclass
class Format:
    """How clean files of a format are made, what can go wrong with a row of it, and how."""

    name: str
    row: Callable[[random.Random, int], tuple[list[str], dict[str, Any]]]  # lines and fields
    faults: dict[str, Fault]
    head: list[str] = field(default_factory=list)
    between: list[str] = field(default_factory=list)  # lines after each row
    options: ReadOptions = field(default_factory=ReadOptions)


def sentence(rng: random.Random, words: list[str] = WORDS) -> str:
    return " ".join(rng.choices(words, k=rng.randint(1, 6)))


# --- faults of any line ------------------------------------------------------------------


def nul(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    at = rng.randrange(len(lines))
    lines[at] += "\0"
    return at, "a NUL byte at byte "


def bad_byte(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    at = rng.randrange(len(lines))
    lines[at] = lines[at] + "\udce9"  # becomes the single byte 0xE9
    return at, "0xE9 at byte "


ANY = {"nul": nul, "bad byte": bad_byte}


# --- CSV and TSV -------------------------------------------------------------------------


def csv_row(rng: random.Random, number: int) -> tuple[list[str], dict[str, Any]]:
    text = sentence(rng) + ("\nmore" if rng.random() < 0.2 else "")
    fields = {"text": text, "stars": str(number), "note": rng.choice(["", "x", "a, b", "c\n\nd"])}
    out = io.StringIO()
    quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    csv.writer(out, quoting=quoting, lineterminator="\n").writerow(fields.values())
    return out.getvalue().removesuffix("\n").split("\n"), fields


def csv_more(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    lines[-1] += ",more"
    return 0, "expected 3 columns, found 4 (unquoted comma?)"


def csv_less(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    lines[:] = rng.choice(["alone", '"quoted"', '"two\nlines"']).split("\n")
    return 0, "expected 3 columns, found 1 (missing comma?)"


def csv_open(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    lines[:] = [rng.choice(['ab,3,"cd', 'ab,"3,cd', '"ab,3,cd', '"a ""b"" c'])]
    column = 3 if lines[0].startswith("ab,3") else 2 if lines[0].startswith("ab") else 1
    return 0, f"the quote that opens column {column} is never closed"


def csv_stray(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    lines[:] = ['a 3" disk,1,x']
    return 0, "a quote inside column 1, which does not begin with one"


def csv_behind(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    lines[:] = ['ab,"he said "yes" to it",x']
    return 0, "text after the closing quote of column 2 (a quote not doubled?)"


def empty_line(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    lines[:] = [""]
    return 0, "the line is empty"


def tsv_row(rng: random.Random, number: int) -> tuple[list[str], dict[str, Any]]:
    fields = {"text": sentence(rng), "stars": str(number)}
    return ["\t".join(fields.values())], fields


def tsv_more(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    lines[0] += "\tmore"
    return 0, "expected 2 columns, found 3 (a tab inside a field?)"


def tsv_less(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    lines[0] = lines[0].replace("\t", " ")
    return 0, "expected 2 columns, found 1 (missing tab?)"


# --- JSON lines --------------------------------------------------------------------------


def json_row(rng: random.Random, number: int) -> tuple[list[str], dict[str, Any]]:
    least = 1 if number == 0 else 0  # the first row shows what kind each field is
    vectors = [[rng.random(), number] for _ in range(rng.randint(least, 3))]
    tokens = rng.choices(WORDS, k=rng.randint(least, 3))
    fields = {"text": sentence(rng), "label": number, "tokens": tokens, "frames": vectors}
    return [json.dumps(fields, ensure_ascii=rng.random() < 0.5)], fields


def json_with(old: str, new: str, reason: str) -> Fault:
    def fault(rng: random.Random, lines: list[str]) -> tuple[int, str]:
        lines[0] = '{"text": "a", "label": 1, "tokens": ["b"], "frames": [[1, 2], [3, 4]]}'
        assert old in lines[0]
        lines[0] = lines[0].replace(old, new)
        return 0, reason

    return fault


def json_list(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    lines[0] = "[1]"
    return 0, "expected an object, {…}, got a list"


JSON_FAULTS: dict[str, Fault] = {
    "cut": json_with("]]}", "", "invalid JSON: Expecting ',' delimiter at character 68"),
    "nan": json_with("4", "NaN", "NaN is not valid JSON: expected a finite number"),
    "infinite": json_with(
        "4",
        "1e999",
        "field 'frames': expected finite numbers, at most 1e+30, got one that is not at step 2",
    ),
    "twice": json_with('"label"', '"text"', "the key 'text' occurs twice in one object"),
    "gone": json_with(
        '"label"',
        '"labell"',
        "unknown field 'label': did you mean 'labell'? Known: frames, labell, text, tokens",
    ),
    "null": json_with(": 1,", ": null,", "field 'label': expected a value, got null"),
    "object": json_with(
        ": 1,", ": {},", "field 'label': expected text, numbers or lists of them, got an object"
    ),
    "kind": json_with('"a"', "7", "field 'text': expected text as on line 1, got a number"),
    "ragged": json_with(
        "[3, 4]",
        "[3]",
        "field 'frames': expected vectors of one width, got 2 numbers at step 1 and 1 at step 2",
    ),
    "width": json_with(
        "[1, 2], [3, 4]",
        "[1]",
        "field 'frames': expected vectors of 2 numbers as on line 1, got vectors of 1 numbers",
    ),
    "mixed": json_with(
        '["b"]',
        '["b", 1]',
        "field 'tokens': expected a list of values of one type, got numbers and text",
    ),
    "half": json_with(
        '"a"', '"\\ud83d"', "field 'text': U+D83D is half of a surrogate pair, not a character"
    ),
    "list": json_list,
}


# --- CoNLL -------------------------------------------------------------------------------

TOKENS = ["film", "#", "naïve", "-", "x\u00a0y", '"', "日本"]


def conll_row(rng: random.Random, number: int) -> tuple[list[str], dict[str, Any]]:
    forms, tags = rng.choices(TOKENS, k=rng.randint(1, 5)), ["B", "O"]
    fields: dict[str, Any] = {"form": forms, "tag": [rng.choice(tags) for _ in forms]}
    lines = [f"{form} {tag}" for form, tag in zip(*fields.values(), strict=True)]
    return [*(["# a comment of any length"] * rng.randint(0, 1)), *lines], fields


def conll_more(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    at = len(lines) - 1
    lines[at] = f"a b {lines[at]}"
    return at, "expected 2 columns, found 4 (a space too many?)"


def conll_less(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    at = len(lines) - 1
    lines[at] = "alone"
    return at, "expected 2 columns, found 1 (missing space?)"


def conllu_row(rng: random.Random, number: int) -> tuple[list[str], dict[str, Any]]:
    forms = [rng.choice([*TOKENS, "two words"]) for _ in range(rng.randint(1, 5))]
    lines = [f"# sent_id = s{number}", f"# text = {' '.join(forms)}", "# other = 3"]
    for k, form in enumerate(forms, 1):
        if rng.random() < 0.2:
            lines.append("\t".join([f"{k}-{k + 1}", form * 2, *"________"]))
        lines.append("\t".join([str(k), form, "l", "NOUN", "NN", "_", "0", "root", "_", "_"]))
        if rng.random() < 0.2:
            lines.append("\t".join([f"{k}.1", "gap", *"________"]))
    fields = {"form": forms, "upos": ["NOUN"] * len(forms), "sent_id": f"s{number}"}
    return lines, fields


def word_line(lines: list[str], last: bool = False) -> int:
    at = [k for k, line in enumerate(lines) if line.partition("\t")[0].isdecimal()]
    return at[-1 if last else 0]


def conllu_columns(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    at = word_line(lines)
    lines[at] = lines[at].rpartition("\t")[0]
    return at, "expected 10 columns between tabs, found 9"


def conllu_spaces(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    at = word_line(lines, last=True)
    lines[at] = lines[at].replace("\t", " ")
    return at, "expected 10 columns between tabs, found 1 (spaces instead of tabs?)"


def conllu_form(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    at = word_line(lines)
    columns = lines[at].split("\t")
    lines[at] = "\t".join([columns[0], "", *columns[2:]])
    return at, "column FORM is empty"


def conllu_order(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    at = word_line(lines, last=True)
    lines[:] = lines[: at + 1]
    number, _, rest = lines[at].partition("\t")
    lines[at] = f"{int(number) + 1}\t{rest}"
    return at, f"expected ID {number}, got {int(number) + 1}"


def conllu_identity(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    at = word_line(lines, last=True)
    lines[:] = lines[: at + 1]
    lines[at] = "x\t" + lines[at].partition("\t")[2]
    return at, "expected an ID such as 1, 1-2 or 1.1, got 'x'"


# --- labels before texts -----------------------------------------------------------------


def labelled_row(rng: random.Random, number: int) -> tuple[list[str], dict[str, Any]]:
    fields = {"text": sentence(rng), "label": f"c:{number}"}
    between = rng.choice([" ", "  ", "\t"])
    return [f"{fields['label']}{between}{fields['text']}"], fields


def labelled_alone(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    lines[:] = [rng.choice(["alone", "alone ", "alone\t\t"])]
    return 0, "expected a label and a text with a space or a tab between them, found one word"


def labelled_late(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    lines[0] = rng.choice([" ", "\t"]) + lines[0]
    return 0, "expected a label at the beginning of the line, got a space"


def fasttext_row(rng: random.Random, number: int) -> tuple[list[str], dict[str, Any]]:
    labels, text = rng.sample(["a", "b:c", "naïve"], rng.randint(1, 3)), sentence(rng)
    words = [*(f"__label__{label}" for label in labels), text]
    return [" ".join(words)], {"text": text, "label": labels if len(labels) > 1 else labels[0]}


def fasttext_bare(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    lines[:] = [sentence(rng)]
    return 0, "expected a label, __label__ and its name, got none"


def fasttext_nameless(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    lines[0] = "__label__ " + lines[0]
    return 0, "expected the name of a label after __label__, got none"


def fasttext_textless(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    lines[:] = ["__label__a __label__b "]
    return 0, "expected a text after the labels, got none"


# --- trees -------------------------------------------------------------------------------


def tree_row(rng: random.Random, number: int) -> tuple[list[str], dict[str, Any]]:
    words = [f"w{rng.randint(0, 9)}" for _ in range(3)]
    lines = [f"({number} (2 {words[0]})", f"  (NP {words[1]} {words[2]}))"]
    tree = " ".join(line.strip() for line in lines)
    fields = {"tree": tree, "text": " ".join(words), "label": str(number)}
    return (lines if rng.random() < 0.5 else [tree]), fields


def tree_open(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    lines[-1] = lines[-1][:-1]
    return 0, "expected a tree in brackets, got 1 closing bracket missing"


def tree_closed(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    lines[:] = ["(1 (2 a) ()", "  (3 b))"] if rng.random() < 0.5 else ["(1 (2 a) ())"]
    return 0, "expected a word or a bracket inside of ()"


# --- series ------------------------------------------------------------------------------


def series_row(rng: random.Random, number: int) -> tuple[list[str], dict[str, Any]]:
    value = rng.choice([rng.gauss(0, 1e6), 1e-300, -7])
    return [f"{number},{value!r}"], {"time": str(number), "value": float(value)}


def series_value(got: str, guess: str = "") -> Fault:
    def fault(rng: random.Random, lines: list[str]) -> tuple[int, str]:
        lines[0] = f'{lines[0].partition(",")[0]},"{got}"'
        return 0, f"column 'value': expected a finite number, got {got!r}{guess}"

    return fault


def series_time(rng: random.Random, lines: list[str]) -> tuple[int, str]:
    lines[0] = "-1," + lines[0].partition(",")[2]
    return 0, "column 'time': '-1' does not come after "


SERIES_FAULTS: dict[str, Fault] = {
    "missing": series_value("NA", " (a missing value?)"),
    "nothing": series_value("", " (a missing value?)"),
    "infinite": series_value("inf"),
    "overflow": series_value("1e999"),
    "comma": series_value("1,5", " (a decimal comma?)"),
    "words": series_value("seven"),
    "underscore": series_value("1_000"),
    "time": series_time,
}

FORMATS = [
    Format(
        "csv",
        csv_row,
        {"more": csv_more, "less": csv_less, "open": csv_open, "stray": csv_stray}
        | {"behind": csv_behind, "empty": empty_line, **ANY},
        head=["text,stars,note"],
    ),
    Format("tsv", tsv_row, {"more": tsv_more, "less": tsv_less, **ANY}, head=["text\tstars"]),
    Format(
        "jsonl",
        json_row,
        {**JSON_FAULTS, "empty": empty_line, **ANY},
        options=ReadOptions(columns=("text", "label", "tokens", "frames")),
    ),
    Format(
        "conll",
        conll_row,
        {"more": conll_more, "less": conll_less, **ANY},
        between=[""],
        options=ReadOptions(conll=("form", "tag")),
    ),
    Format(
        "conllu",
        conllu_row,
        {"columns": conllu_columns, "spaces": conllu_spaces, "form": conllu_form}
        | {"order": conllu_order, "identity": conllu_identity, **ANY},
        between=[""],
    ),
    Format(
        "label",
        labelled_row,
        {"alone": labelled_alone, "late": labelled_late, "empty": empty_line, **ANY},
    ),
    Format(
        "fasttext",
        fasttext_row,
        {"bare": fasttext_bare, "nameless": fasttext_nameless, "textless": fasttext_textless}
        | {"empty": empty_line, **ANY},
        options=ReadOptions(format="fasttext"),
    ),
    Format("trees", tree_row, {"open": tree_open, "nothing": tree_closed}),
    Format("txt", lambda rng, k: ([line := sentence(rng)], {"text": line}), ANY),
    Format(
        "series.csv",
        series_row,
        SERIES_FAULTS,
        head=["time,value"],
        options=ReadOptions(numbers=ALL, time="time"),
    ),
]


def same(got: Any, expected: Any) -> bool:
    if isinstance(got, np.ndarray):
        return got.tolist() == expected
    return bool(got == expected)


def written(path: Path, lines: list[str], rng: random.Random) -> None:
    end = rng.choice(["\n", "\r\n"])
    last = rng.choice(["", end])
    path.write_bytes((end.join(lines) + last).encode("utf-8", "surrogateescape"))


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@pytest.mark.parametrize("share", [0.0, 0.15, 0.6])
def test_every_fault_is_told_and_nothing_else(form: Format, share: float, tmp_path: Path) -> None:
    fault_names = set()
    for seed in SEEDS:
        rng = random.Random(f"{form.name} {share} {seed}")
        lines, expected, rows_expected, name = list(form.head), [], [], ""
        for number in range(ROWS):
            row, fields = form.row(rng, number)
            # After an open quote comes a sound row: two such faults could not be told apart.
            if 0 < number < ROWS - 1 and name != "open" and rng.random() < share:
                name = rng.choice(sorted(form.faults))
                fault_names.add(name)
                at, reason = form.faults[name](rng, row)
                expected.append((len(lines) + 1 + at, reason))
            else:
                name = ""
                rows_expected.append((len(lines) + 1, fields))
            lines += row + form.between
        path = tmp_path / f"{seed}.{form.name}"
        written(path, lines, rng)
        problems: list[Problem] = []
        rows = list(read(path, form.options, problems.append))
        reasons = [(p.place.line, p.reason) for p in problems]
        for (line, reason), (expected_line, start) in zip(reasons, expected, strict=True):
            assert line == expected_line
            assert reason.startswith(start)
        assert [row.place.line for row in rows] == [line for line, _ in rows_expected]
        for row, (_, fields) in zip(rows, rows_expected, strict=True):
            assert all(same(row.fields[name], value) for name, value in fields.items())
        assert len(rows) + sum(p.rejects for p in problems) == len(rows_expected) + len(expected)
    assert fault_names == (set(form.faults) if share else set())


# --- parallel text -------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_parallel_text(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    sides = [[sentence(rng) for _ in range(ROWS)] for _ in range(2)]
    names = str(tmp_path / "a.txt"), str(tmp_path / "b.txt")
    expected = {}
    for row in rng.sample(range(ROWS), 8):
        side, kind = rng.randrange(2), rng.choice(["empty", *ANY])
        lines = [sides[side][row]]
        reason = f"the line is empty, {names[1 - side]}:{row + 1} is not"
        if kind == "empty":
            lines = [rng.choice(["", " "])]
        else:
            _, reason = ANY[kind](rng, lines)
        sides[side][row] = lines[0]
        expected[names[side], row + 1] = reason
    longer, surplus = rng.randrange(2), rng.randint(0, 3)
    sides[longer] += ["more"] * surplus
    for name, side in zip(names, sides, strict=True):
        written(Path(name), side, rng)
    if surplus:
        counts = [len(side) for side in sides]
        expected[names[longer], ROWS + 1] = (
            f"no line of the other file belongs to this one: {names[0]} has {counts[0]} lines, "
            f"{names[1]} has {counts[1]}"
        )
    problems: list[Problem] = []
    rows = list(read_parallel(*names, ReadOptions(), problems.append))
    assert {(p.place.file, p.place.line) for p in problems} == set(expected)
    assert all(p.reason.startswith(expected[p.place]) for p in problems)
    assert len(rows) == ROWS - 8
    assert len(rows) + sum(p.rejects for p in problems) == ROWS + surplus
    for row in rows:
        at = row.place.line - 1
        assert row.fields == {"source": sides[0][at], "target": sides[1][at]}

"""Translation from the command line, as a user walks it, every mistake made on purpose."""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from commands import Ensue, commands_in

from ensue import Explained, cli
from ensue.tasks.seq2seq.drawing import alignment_picture, alignment_text

SMALL = [
    "text.level=characters",
    "model.hidden_size=8",
    "model.embedding_size=6",
    "model.longest_extra=4",
    "train.epochs=1",
]


def settings(*more: str) -> list[str]:
    return [word for setting in (*SMALL, *more) for word in ("--set", setting)]


@pytest.fixture
def ensue(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with dates.tsv, a finished run r of it, and one without attention, blind."""
    folder = tmp_path_factory.mktemp("walk")
    before = os.getcwd()
    os.chdir(folder)
    train = ("train", "dates.tsv", "--task", "translate", "--source", "text", "--target", "iso")
    try:
        for arguments in (
            ["data", "make", "dates", "dates.tsv", "--rows", "200"],
            [*train, "--run", "r", "--set", "train.watch=exact", *settings()],
            [*train, "--run", "blind", *settings("model.attention=none")],
        ):
            with pytest.raises(SystemExit) as ending:
                cli.main(arguments)
            assert not ending.value.code
    finally:
        os.chdir(before)
    return folder


def write_parallel(folder: Path, name: str, count: int, first: int = 0) -> str:
    """Two files, the first of them compressed; how both are named together."""
    words = ["dog", "cat", "sees", "the"]
    lines = [" ".join(words[(k * n) % 4] for n in range(1, 3 + k % 3)) for k in range(count)]
    lines = [f"{line} {first + k}" for k, line in enumerate(lines)]
    with gzip.open(folder / f"{name}.en.gz", "wt") as file:
        file.writelines(f"{line}\n" for line in lines)
    (folder / f"{name}.de").write_text("".join(f"{line[::-1]}\n" for line in lines))
    return f"{name}.en.gz,{name}.de"


# --- the path --------------------------------------------------------------------------------


def test_from_pairs_to_translations(ensue: Ensue, walked: Path) -> None:
    run = str(walked / "r")
    code, out, err = ensue("evaluate", run)
    assert code == 0, err
    for words in (
        "  exact ",
        "  bleu ",
        "BLEU nrefs:1|",
        "  letter errors ",
        "copied source",
        "frequent target",
    ):
        assert words in out
    assert "the copied source" in out.lower()
    assert "\nThis test part has been opened once.\n" in out
    code, out, _ = ensue("evaluate", run, "--json")
    facts = json.loads(out)
    assert set(facts["scores"]) == {"exact", "bleu"}
    assert sum(bucket["rows"] for bucket in facts["buckets"]) == facts["rows"]
    code, out, _ = ensue("predict", run, stdin=b"3 May 1997\n\nle 3 mai\n")
    assert code == 0
    lines = out.split("\n")
    assert len(lines) == 4
    assert lines[1] == ""
    code, printed, _ = ensue("predict", run, "--json", stdin=b"3 May 1997\n")
    answer = json.loads(printed)
    assert (answer["input"], answer["text"]) == ("3 May 1997", lines[0])
    assert "".join(answer["source"]) == "3 May 1997"
    assert (answer["alternatives"], answer["alignment"]) == ([], None)
    code, out, _ = ensue("predict", run, str(walked / "dates.tsv"))
    assert len(out.splitlines()) == 200


def test_options_of_the_search(ensue: Ensue, walked: Path) -> None:
    run = str(walked / "r")
    code, out, err = ensue("predict", run, "--nbest", "7", stdin=b"3 May 1997\n")
    assert code == 0, err
    scores = [float(line.split("\t")[0]) for line in out.splitlines()]
    assert len(scores) == 7
    code, out, _ = ensue("predict", run, "--beam", "1", "--alignment", stdin=b"3 May 1997\n")
    text, pairs = out.rstrip("\n").split("\t")
    assert [int(pair.split("-")[1]) for pair in pairs.split()] == list(range(len(text)))
    assert {int(pair.split("-")[0]) for pair in pairs.split()} <= set(range(10))


def test_an_explanation_in_the_terminal_and_as_a_picture(ensue: Ensue, walked: Path) -> None:
    run = str(walked / "r")
    code, out, err = ensue("explain", run, "--text", "3 May", "--picture", "a.svg")
    assert (code, err) == (0, "wrote a.svg\n")
    text, empty, heading, *rows = out.splitlines()
    assert empty == ""
    assert heading.split() == ["3", "␣", "M", "a", "y"]
    assert [row[0] for row in rows[: len(text)]] == list(text)
    assert all("%" in row for row in rows)
    assert "\x1b" not in out
    titles = [
        element.text
        for element in ElementTree.parse("a.svg").iter()
        if element.tag.endswith("title")
    ]
    assert len(titles) == 1 + 5 * len(rows)
    code, out, _ = ensue("explain", run, "--text", "3 May", "--json")
    facts = json.loads(out)
    assert facts["text"] == text
    assert [sum(row) for row in facts["alignment"]] == pytest.approx([1] * len(rows))


def test_two_parallel_files(ensue: Ensue, tmp_path: Path) -> None:
    train = write_parallel(tmp_path, "train", 40)
    held_out = write_parallel(tmp_path, "held", 8, first=100)
    test = write_parallel(tmp_path, "test", 6, first=200)
    code, out, err = ensue("data", "check", train, "--validation", held_out, "--test", test)
    assert code == 0, err
    assert out.startswith("text: source, label: target\n")
    assert "no faulty rows" in out
    files = (train, "--validation", held_out, "--test", test)
    code, _, err = ensue("train", *files, "--run", "r", *settings())
    assert code == 0, err
    assert "task: translate (pairs of texts)" in err
    assert "40 rows to train on, 8 to validate on" in err
    assert ensue("train", *files, "--run", "r", *settings())[0] == 0
    code, out, _ = ensue("evaluate", "r")
    assert out.startswith("6 rows, ")
    assert f"  {tmp_path / 'test.en.gz'}:" in out
    code, _, err = ensue("evaluate", "r", "--test", held_out)
    assert f"{held_out}: this run was trained with this file" in err
    by_file = ensue("predict", "r", "test.en.gz")[1]
    lines = gzip.decompress(Path("test.en.gz").read_bytes())
    assert ensue("predict", "r", stdin=lines)[1] == by_file
    assert ensue("predict", "r", test)[1] == by_file
    assert len(by_file.splitlines()) == 6


def test_pairs_are_known_by_their_names_and_split_by_their_sources(
    ensue: Ensue, tmp_path: Path
) -> None:
    rows = [{"source": f"the {k % 40} dogs", "target": f"{k} Hunde"} for k in range(80)]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, _, err = ensue("train", "a.jsonl", "--run", "r", *settings())
    assert code == 0, err
    assert err.startswith(
        "text: source (texts, 3 words on average)\n"
        "label: target (short texts, 2 words on average)\ntask: translate (pairs of texts)\n"
        "split: 80 % train, 10 % validation, 10 % test, by the hash of each source\n"
    )
    counts = re.search(r"(\d+) rows to train on, (\d+) to validate on", err)
    assert counts is not None
    assert all(int(count) % 2 == 0 for count in counts.groups())  # each source stands there twice
    named = ("--task", "classify", "--label", "target")
    code, out, err = ensue("train", "a.jsonl", *named, "--run", "c", "--dry-run")
    assert code == 0, err
    assert 'task = "classify"' in out


# --- what is wrong with the data -------------------------------------------------------------


def mistaken(ensue: Ensue, *arguments: str, stdin: bytes = b"") -> str:
    """What a command that ends with 2 says last; its result is empty."""
    code, out, err = ensue(*arguments, stdin=stdin)
    assert (code, out) == (2, ""), err
    return err


def test_a_check_of_parallel_files_finds_what_is_wrong(ensue: Ensue, tmp_path: Path) -> None:
    Path("a.en").write_text("one\ntwo\n\nfour\nfive\ntwo\nTwo\nfew words\n")
    Path("a.de").write_text(f"eins\nzwei\ndrei\nvier\n \nzwei\ndeux\n{'w ' * 40}\n")
    Path("b.en").write_text("two\nseven\n")
    Path("b.de").write_text("zwei\nsieben\n")
    code, out, _ = ensue("data", "check", "a.en,a.de", "--test", "b.en,b.de")
    assert code == 2
    assert "  a.en:3: the line is empty, a.de:3 is not" in out
    assert "  a.de:5: the line is empty, a.en:5 is not" in out
    assert "duplicates: 1 of 6 rows of train are the same as another row" in out
    assert (
        "conflict: 1 of 6 rows of train have the source of another row and a different target"
        in out
    )
    assert (
        "uneven: 1 of 6 rows of train have one side far longer than the other: are these "
        "translations?\n    a.en:8" in out
    )
    assert "leakage: 1 of 2 rows of test are in train as well" in out
    assert "eins" not in out  # targets are no classes to be counted


def test_files_of_unequal_length(ensue: Ensue, tmp_path: Path) -> None:
    Path("a.en").write_text("one\ntwo\nthree\n")
    Path("a.de").write_text("eins\nzwei\n")
    message = mistaken(ensue, "train", "a.en,a.de", "--run", "r", *settings())
    assert (
        f"{tmp_path / 'a.en'}:3: no line of the other file belongs to this one: "
        f"{tmp_path / 'a.en'} has 3 lines, {tmp_path / 'a.de'} has 2" in message
    )
    assert message.endswith("Fix the lines, or use --skip-bad to leave them out.\n")


def test_an_empty_side(ensue: Ensue, tmp_path: Path) -> None:
    rows = "".join(f"s{k}\tt{k}\n" for k in range(50))
    Path("a.tsv").write_text(f"source\ttarget\n{rows}a\t\n \tb\n")
    Path("b.tsv").write_text("source\ttarget\nx\ty\n")
    message = mistaken(ensue, "train", "a.tsv", "--validation", "b.tsv", "--run", "r", *settings())
    expected = "expected a text on both sides, got an empty one: fill it in, or leave the row out"
    assert f"a.tsv:52: target: {expected}" in message
    assert f"a.tsv:53: source: {expected}" in message


def test_columns_that_are_not_named(ensue: Ensue, walked: Path) -> None:
    path = walked / "dates.tsv"
    command = ("train", str(path), "--task", "translate", "--run", "r")
    assert mistaken(ensue, *command) == (
        f"DataError: {path}:2: which columns are the source and the target? Name them with "
        "--source and --target. Columns: text, language, iso\n"
    )
    assert mistaken(ensue, *command, "--source", "text").startswith(
        f"DataError: {path}:2: which columns are the source and the target? Name them with "
        "--target. Columns:"
    )
    assert mistaken(ensue, *command, "--source", "text", "--target", "isso") == (
        f"DataError: {path}:2: unknown column 'isso': did you mean 'iso'? "
        "Known: iso, language, text\n"
    )


def test_names_of_files(ensue: Ensue, tmp_path: Path) -> None:
    train = write_parallel(tmp_path, "train", 5)
    assert mistaken(ensue, "train", "a.en,b.de,c.fr") == (
        "DataError: a.en,b.de,c.fr: expected one file, or two with a comma between them, "
        "source,target, got 3\n"
    )
    assert "train.fr: no such file" in mistaken(ensue, "train", "train.en.gz,train.fr")
    assert "train.en.gz: given twice (train and --test)" in mistaken(
        ensue, "train", train, "--test", "train.en.gz,other.de"
    )


# --- what is wrong with the question ---------------------------------------------------------


def test_questions_that_a_model_cannot_answer(ensue: Ensue, walked: Path) -> None:
    blind, run = str(walked / "blind"), str(walked / "r")
    without = (
        "OptionError: this model has no attention to show where its words come "
        "from; train one with --set model.attention=additive (dot, general, concat), or with "
        "model.family=transformer\n"
    )
    assert mistaken(ensue, "explain", blind, "--text", "3 May") == without
    assert mistaken(ensue, "predict", blind, "--alignment", stdin=b"3 May\n") == without
    assert mistaken(ensue, "explain", run, "--text", "") == (
        "OptionError: explain: expected a text with at least one token, got none\n"
    )
    assert mistaken(ensue, "explain", run, "--text", "a", "--picture", "a.gif") == (
        "OptionError: a.gif: expected a file name that ends in .svg, .png, .pdf, got '.gif'\n"
    )
    assert mistaken(ensue, "predict", run, "--beam", "2", "--nbest", "3", stdin=b"a\n") == (
        "OptionError: --nbest: expected at most --beam, 2, got 3\n"
    )


def test_a_model_of_another_task(ensue: Ensue, tmp_path: Path) -> None:
    Path("a.csv").write_text("text,label\n" + "".join(f"w{k} x,{k % 2}\n" for k in range(120)))
    small = ["--set", "model.hidden_size=4", "--set", "train.epochs=1"]
    assert ensue("train", "a.csv", "--run", "c", *small)[0] == 0
    assert mistaken(ensue, "explain", "c", "--image", "a.png") == (
        "RunError: c: --image: expected a run of task image or caption, got one of task classify\n"
    )
    for option in ("--beam", "--nbest"):
        assert mistaken(ensue, "predict", "c", option, "2", stdin=b"a\n") == (
            f"OptionError: {option}: expected a run of task caption or translate, got one of "
            "task classify\n"
        )
    assert mistaken(ensue, "evaluate", "c", "--alignment") == (
        "OptionError: --alignment: expected a run of task caption or translate, got one of task "
        "classify\n"
    )


def test_watching_bleu_without_sacrebleu(
    ensue: Ensue, walked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    command = ("train", str(walked / "dates.tsv"), "--source", "text", "--target", "iso")
    message = mistaken(ensue, *command, "--task", "translate", *settings("train.watch=bleu"))
    assert message.endswith(
        "MissingExtra: BLEU and chrF need the package sacrebleu, which is not installed: "
        "pip install 'ensue[mt]'\n"
    )
    code, out, _ = ensue("evaluate", str(walked / "r"), "--validation")
    assert code == 0
    assert "BLEU and chrF are not counted: pip install 'ensue[mt]'" in out


# --- drawings --------------------------------------------------------------------------------

EXPLAINED = Explained(
    ("das", "Haus", "東京"),
    ("the", "house", "</s>"),
    (0.5, 1.0, 0.25),
    ((1.0, 0.0, 0.0), (0.25, 0.75, 0.0), (0.0, 0.5, 0.5)),
    "the house",
)


def test_a_drawing_has_a_cell_for_each_pair_of_words() -> None:
    assert alignment_text(EXPLAINED).splitlines() == [
        "               H",
        "             d a",
        "             a u 東",
        "             s s 京",
        "the     50%  ██",
        "house  100%  ░░▓▓",
        "</s>    25%    ▒▒▒▒",
    ]


def test_a_drawing_that_is_too_wide_is_cut_in_pieces() -> None:
    lines = alignment_text(EXPLAINED, width=17).splitlines()
    assert lines.count("") == 1
    assert all(len(line) <= 17 for line in lines)
    assert [line for line in lines if line.startswith("house")] == [
        "house  100%  ░░▓▓",
        "house  100%",
    ]


def test_a_drawing_in_colours() -> None:
    text = alignment_text(EXPLAINED, colour=True)
    assert text.count("\x1b[48;5;") == text.count("\x1b[0m") == 9
    assert "█" not in text


def test_a_picture_is_sound_and_escapes_words() -> None:
    odd = Explained(("<b>", "&"), ("</s>",), (0.5,), ((0.5, 0.5),), "")
    root = ElementTree.fromstring(alignment_picture(odd))
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert {"<b>", "&", "</s>", "50%"} <= set(texts)
    assert alignment_picture(odd) == alignment_picture(odd)

"""Text from outside, shown: nothing in it drives a terminal, breaks a column or becomes markup."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from inspect import isabstract
from pathlib import Path

import pytest
from commands import Ensue, commands_in

import ensue.tasks.forecast.answer as forecast
import ensue.tasks.label.answer as label
import ensue.tasks.language.surprisal as language
import ensue.tasks.seq2seq.answer as words
import ensue.tasks.targets.target as targets
import ensue.tasks.trees.averaging as tree
from ensue import cli
from ensue.cli.app import as_json_text
from ensue.drawing.layout import aligned
from ensue.drawing.svg import escape
from ensue.errors import DataError
from ensue.escape import in_markdown, printable, printable_lines, readable
from ensue.metrics.spans import Span
from ensue.tasks.answers import Answer
from ensue.tasks.evaluation.bootstrap import Interval
from ensue.tasks.evaluation.report import ClassRow, Error, Evaluation
from ensue.tasks.forecast.evaluation import Ahead, ForecastEvaluation
from ensue.tasks.seq2seq.evaluation import Bucket, PairEvaluation

# Clear the screen, ring, CSI as one character, direction overridden and isolated, a line separator.
FOREIGN = "a\x1b[2J\x07\x9b31m\u202eb\u2066c\u2028d\x7f\ufeff"
BROKEN = f"{FOREIGN}\te\nf\rg"
DRIVING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]")
NORMAL = [
    "naïve café, Füße, ¿qué?",
    "日本語　と 中文",
    "שלום עולם \u200f(א)\u200e",
    "سلام\u200cها",
    "👨‍👩‍👧 🏴\U000e0067\U000e0062\U000e007f ☀️",
    "a\u00a0b\u202fc \\ <b> | x_y",
]


@pytest.mark.parametrize("text", NORMAL)
def test_text_of_every_script_stays_as_it_is(text: str) -> None:
    assert printable(text) == printable_lines(text) == readable(text) == text
    assert json.loads(as_json_text(text)) == text


def test_control_characters_are_written_out() -> None:
    assert printable(BROKEN) == (r"a\x1b[2J\x07\x9b31m\u202eb\u2066c\u2028d\x7f\ufeff\te\nf\rg")
    assert printable_lines("a\tb\n\x1b") == "a\tb\n\\x1b"
    every = "".join(map(chr, range(0x110000)))
    for text in (printable_lines(every), escape(every), as_json_text(every)):
        assert not DRIVING.search(text)


@pytest.mark.parametrize(
    "text",
    ["<b>a</b>", "[a](http://b)", "![a](b)", "*a*", "_a_", "`a`", "a|b", "\\<b>", "https://a",
     "&lt;", "$x$", "~~a~~", "# a"],
)  # fmt: skip
def test_nothing_in_a_card_is_markup(text: str) -> None:
    """What is left without the signs that are escaped has no sign of Markdown in it."""
    left = re.sub(r"\\[\\`*_\[\]<>|~&#!$:]", "", in_markdown(text))
    assert not re.search(r"[\\`*_\[\]<>|~&#!$]|://", left)
    assert in_markdown("word_count.csv") == "word_count.csv"


# --- answers and evaluations ---------------------------------------------------------------------

WEIGHTS = ((1.0,),)
SAID = words.Alternative(BROKEN, -1.0)
# An answer full of foreign text, and how many columns its line has.
ANSWERS: list[tuple[Answer, int]] = [
    (targets.Classified(BROKEN, (BROKEN,), {BROKEN: 0.9}), 3),
    (targets.Classified("", (BROKEN, BROKEN), {BROKEN: 0.9}), 3),
    (targets.Estimated(1.0, 0.5, 2.0, 0.9), 4),
    (label.Labelled((BROKEN, "b"), (BROKEN, "O"), (0.9, 0.8), (Span(0, 1, BROKEN),)), 1),
    (label.Labelled((), (BROKEN,), (0.9,), None), 1),
    (words.Translated(BROKEN, -1.0, (BROKEN,), (BROKEN,)), 1),
    (words.Translated(BROKEN, -1.0, (BROKEN,), (BROKEN,), alignment=WEIGHTS), 2),
    (words.Translated(BROKEN, -1.0, (BROKEN,), (BROKEN,), (SAID,)), 2),
    (words.Captioned(BROKEN, -1.0, (BROKEN,)), 1),
    (words.Captioned(BROKEN, -1.0, (BROKEN,), attention=WEIGHTS), 2),
    (forecast.ForecastStep(BROKEN, {BROKEN: forecast.Expected(1.0, 0.5, 2.0)}), 4),
    (language.Scored((BROKEN, "b"), (1.0, 0.5)), 4),
    (tree.TreeAnswer(BROKEN, 0.9, BROKEN, (BROKEN,), (0.9,), {BROKEN: 0.9}), 3),
]


def test_every_kind_of_answer_is_in_the_table() -> None:
    kinds = {kind for kind in kinds_of(Answer) if kind.__module__.startswith("ensue.")}
    assert kinds == {type(answer) for answer, _ in ANSWERS}


def kinds_of(kind: type[Answer]) -> set[type[Answer]]:
    """The classes of answers, without those that only others are kinds of."""
    below = kind.__subclasses__() if isabstract(kind) else []
    return {kind for part in below for kind in kinds_of(part)} or {kind}


@pytest.mark.parametrize(("answer", "columns"), ANSWERS)
def test_a_line_of_an_answer_stays_a_line_and_its_columns_columns(
    answer: Answer, columns: int
) -> None:
    line = answer.as_line(BROKEN)
    assert not DRIVING.search(line)
    assert "\n" not in line
    assert len(line.split("\t")) == columns
    assert not DRIVING.search(answer._repr_html_())


def evaluation_of(text: str) -> Evaluation:
    one = Interval(0.5, 0.4, 0.6)
    return Evaluation(
        rows=2,
        steps=2,
        scores={"accuracy": one, text: one},
        others={text: 0.5},
        baselines={text: 0.5},
        classes=[ClassRow(text, 0.5, 0.5, 0.5, 1), ClassRow("b", 0.5, 0.5, 0.5, 1)],
        confusion=[[1, 1], [0, 0]],
        worst=[Error(text, text, text, text, 0.9)],
    )


def as_pairs(evaluation: Evaluation) -> Evaluation:
    return PairEvaluation(**vars(evaluation), buckets=[Bucket(evaluation.worst[0].text, 1, 0.5)])


def as_forecasts(evaluation: Evaluation) -> Evaluation:
    return ForecastEvaluation(**vars(evaluation), ahead=[Ahead(1, 0.5, 0.5, 0.9)])


def as_surprises(evaluation: Evaluation) -> Evaluation:
    return replace(evaluation, worst=[row._replace(predicted="") for row in evaluation.worst])


@pytest.mark.parametrize(
    "kind", [lambda evaluation: evaluation, as_pairs, as_forecasts, as_surprises]
)
def test_an_evaluation_shows_foreign_text_on_as_many_lines_as_any(
    kind: Callable[[Evaluation], Evaluation],
) -> None:
    broken, plain = kind(evaluation_of(BROKEN)).as_text(), kind(evaluation_of("a")).as_text()
    assert not DRIVING.search(broken)
    assert broken.count("\n") == plain.count("\n")
    assert not DRIVING.search(kind(evaluation_of(BROKEN)).as_html())


# --- through commands ----------------------------------------------------------------------------


@pytest.fixture
def run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


def test_foreign_text_through_every_verb_of_a_run(run: Ensue, tmp_path: Path) -> None:
    """Columns, labels, texts, the names of the file and of the run."""
    file, folder = f"{FOREIGN}\n.csv", f"r{FOREIGN}"
    inside = FOREIGN.replace("\ufeff", "")  # a byte order mark inside a file is refused
    labels = [f"<i>{inside}\tx\ny", "|b|"]
    rows = [f'"{inside} {k}\t\n{w}","{labels[k % 2]}"' for k, w in enumerate("xy" * 20)]
    (tmp_path / file).write_text("\n".join([f"te{inside}xt,la\x1bbel", *rows, ""]), "utf-8")
    words = ("--text", f"te{inside}xt", "--label", "la\x1bbel")
    fast = ("--epochs", "1", "--hidden-size", "4", "--set", "model.embedding_size=4")
    commands = {
        "data check": ("data", "check", file, *words),
        "data show": ("data", "show", file),
        "no column": ("data", "check", file, "--label", "x\x1b"),
        "dry run": ("train", file, *words, "--dry-run"),
        "train": ("train", file, *words, *fast, "--run", folder),
        "runs": ("runs", "."),
        "evaluate": ("evaluate", folder, "--validation"),
        "evaluate --json": ("evaluate", folder, "--validation", "--json"),
        "predict": ("predict", folder, file),
        "predict --json": ("predict", folder, file, "--json"),
        "missing": ("predict", folder, f"none{FOREIGN}"),
        "unknown": (FOREIGN,),
        "option": ("train", f"--{FOREIGN}"),
    }
    outcomes = {name: run(*arguments) for name, arguments in commands.items()}
    for name, (code, out, err) in outcomes.items():
        assert code == (2 if name in ("no column", "missing", "unknown", "option") else 0), name
        assert not DRIVING.search(out), name
        assert not DRIVING.search(err), name
    lines = outcomes["predict"][1].splitlines()
    assert [len(line.split("\t")) for line in lines] == [3] * len(rows)
    answers = [json.loads(line) for line in outcomes["predict --json"][1].splitlines()]
    assert {answer["label"] for answer in answers} <= {*labels}
    card = (tmp_path / folder / "card.md").read_text("utf-8")
    assert not DRIVING.search(card)
    assert "<i>" not in re.sub(r"\\<", "", card)


def test_foreign_tokens_of_a_language_model(run: Ensue, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("the\x9b31m do\x1bg\n" * 40, "utf-8")
    assert run("train", "lines.txt", "--task", "language", "--set", "model.family=ngram")[0] == 0
    for command in ("generate", "suggest", "predict"):
        for form in ((), ("--json",)):
            code, out, err = run(command, "run", *form, stdin=b"the\xc2\x9b31m \n")
            assert code == 0, err
            assert not DRIVING.search(out + err)
            assert "9b31m" in out


# --- messages fit a screen -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["x" * 200_000, "x\n" * 100_000, "\x1b" * 200_000, "y\n" + "x" * 99_999]
)
def test_a_message_is_about_a_screen(text: str) -> None:
    message = str(DataError(text))
    assert len(message) < 7000
    assert message.count("\n") <= 41
    assert message[0] == printable(text)[0]


def test_cells_of_tables_are_printable() -> None:
    assert aligned([["a\tb", "c"], ["d", "e\n"]]) == ["a\\tb    c", "d     e\\n"]


def test_commands_print_by_the_functions_that_escape() -> None:
    """`answer`, `report` and `say`. The other ways are the streams, and lines that are drawn over
    and over."""
    places = sorted(Path(cli.__file__).parent.glob("*.py"))
    printing = {place.name for place in places if re.search(r"\bprint\(", place.read_text("utf-8"))}
    assert printing == {"__init__.py", "app.py", "reading.py", "streams.py"}

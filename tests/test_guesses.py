"""What a file is taken for: small files of many kinds, and the task and columns that are found, or
the question that is asked, whose answers can be pasted."""

from __future__ import annotations

import json
import random
import shlex
import tomllib
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest
from commands import Ensue, commands_in

from ensue import Classifier
from ensue.data.recognise.columns import Kind, column_of
from ensue.data.rows import Place, Row
from ensue.errors import DataError, EnsueError, Undecided
from ensue.runs.config import RunConfig
from ensue.runs.infer import infer

ROWS = 120
TOPICS, MOODS = ("a", "b", "c"), ("x", "y")
SENTENCE = "the film was good and bad not very dull long short story actors great"
WORDS = SENTENCE.split()
DAYS = [date(2021, 1, 1) + timedelta(k) for k in range(ROWS)]


class Maker:
    """Columns of a file, drawn from one seed."""

    def __init__(self) -> None:
        self.draw = random.Random(1)

    def text(self, words: int = 10) -> str:
        return " ".join(self.draw.choice(WORDS) for _ in range(words))

    def name(self) -> str:
        return "".join(self.draw.choice("abcdefghijklmnop") for _ in range(7))

    def one_of(self, *values: Any) -> Any:
        return self.draw.choice(values)

    def number(self, digits: int = 2) -> float:
        return round(self.draw.gauss(100, 30), digits)


def csv(
    head: str, row: Callable[[Maker, int], Sequence[Any]], sign: str = ",", count: int = ROWS
) -> str:
    make = Maker()
    lines = [sign.join(map(str, row(make, k))) for k in range(count)]
    return "\n".join([head, *lines]) + "\n"


def jsonl(row: Callable[[Maker, int], dict[str, Any]]) -> str:
    make = Maker()
    return "".join(json.dumps(row(make, k)) + "\n" for k in range(ROWS))


class SearchStep(NamedTuple):
    """A file, the options, and the task and columns that are inferred."""

    name: str
    content: str
    task: str
    columns: dict[str, Any]
    options: dict[str, Any] = {}  # noqa: RUF012
    settings: tuple[str, ...] = ()


class Question(NamedTuple):
    """A file whose columns do not tell, and the words of the answers, in any order."""

    name: str
    content: str
    answers: set[str]
    options: dict[str, Any] = {}  # noqa: RUF012


def tagged(row: Maker) -> dict[str, list[str]]:
    words = row.text(6).split()
    return {"words": words, "ner": [row.one_of("O", "B-X") for _ in words]}


def bare(row: Callable[[Maker, int], Sequence[Any]], sign: str = ",") -> str:
    """A file without names of columns."""
    return csv("", row, sign).removeprefix("\n")


TAKEN = [
    *(
        SearchStep(
            f"headerless.{ending}",
            bare(lambda m, k: (m.name(), m.one_of("Italian", "Polish")), sign),
            "classify",
            {"text": "text", "label": "label", "header": ["text", "label"]},
        )
        for ending, sign in (("txt", "\t"), ("tsv", "\t"), ("csv", ","))
    ),
    SearchStep(
        "zero_one.tsv",
        bare(lambda m, k: (k % 2, m.text()), "\t"),
        "classify",
        {"text": "text", "label": "label", "header": ["label", "text"]},
    ),
    SearchStep(
        "numbers.csv",
        bare(lambda m, k: (f"{k / 7 + 0.5:.3f}", m.number(), m.one_of("x", "y"))),
        "table",
        {"label": "column_3", "header": ["column_1", "column_2", "column_3"]},
        {"label": "column_3"},
    ),
    SearchStep(
        "tagged.txt",
        "".join(f"the O\nParis {'B-LOC' if k % 2 else 'B-ORG'}\nsea O\n\n" for k in range(40)),
        "label",
        {"text": "form", "label": "tag"},
    ),
    SearchStep(
        "sorted.csv",
        csv("text,label", lambda m, k: (m.text(), int(k >= 2 * ROWS)), count=4 * ROWS),
        "classify",
        {"text": "text", "label": "label"},
    ),
    SearchStep(
        "mixed_dates.csv",
        csv("day,sales", lambda m, k: (DAYS[k] if k % 2 else f"{DAYS[k]:%d/%m/%Y}", m.number())),
        "forecast",
        {"time": "day", "targets": ["sales"], "dates": "day-first"},
    ),
    SearchStep(
        "copies.csv",
        csv("day,sales", lambda m, k: (DAYS[k % 100], 100 + 7 * (k % 100) % 31)),
        "forecast",
        {"time": "day", "targets": ["sales"], "ids": []},
    ),
    SearchStep(
        "reviews.csv",
        csv("id,date,review,stars", lambda m, k: (k, DAYS[k], m.text(), m.one_of(1, 2, 3, 4, 5))),
        "classify",
        {"text": "review", "label": "stars"},
    ),
    SearchStep(
        "questions.csv",
        csv("question,kind", lambda m, k: (m.text(), m.one_of("who", "where", "when"))),
        "classify",
        {"text": "question", "label": "kind"},
    ),
    SearchStep(
        "label_first.tsv",
        csv("kind\tsaid", lambda m, k: (m.one_of("a", "b"), m.text()), "\t"),
        "classify",
        {"text": "said", "label": "kind"},
    ),
    SearchStep(
        "names.csv",
        csv("name,language", lambda m, k: (m.name(), m.one_of("en", "de", "fr"))),
        "classify",
        {"text": "name", "label": "language"},
    ),
    SearchStep(
        "tickets.csv",
        csv(
            "ticket_id,created,body,priority",
            lambda m, k: (1000 + 3 * k, DAYS[k], m.text(), m.one_of("high", "low")),
        ),
        "classify",
        {"text": "body", "label": "priority"},
    ),
    SearchStep(
        "coded.csv",
        csv("code,said,kind", lambda m, k: (f"AB-{k:04d}", m.text(4), m.one_of("a", "b"))),
        "classify",
        {"text": "said", "label": "kind"},
    ),
    SearchStep(
        "unnamed_index.csv",
        csv("Unnamed: 0,said,kind", lambda m, k: (k, m.text(), m.one_of("a", "b"))),
        "classify",
        {"text": "said", "label": "kind"},
    ),
    SearchStep(
        "user_keys.csv",
        csv("userId,said,kind", lambda m, k: (m.draw.randrange(9), m.text(), m.one_of("a", "b"))),
        "classify",
        {"text": "said", "label": "kind"},
    ),
    SearchStep(
        "one_country.csv",
        csv("country,said,kind", lambda m, k: ("de", m.text(), m.one_of("a", "b"))),
        "classify",
        {"text": "said", "label": "kind"},
    ),
    SearchStep(
        "german_dates.csv",
        csv(
            "when,said,kind",
            lambda m, k: (DAYS[k].strftime("%d.%m.%Y"), m.text(), m.one_of("a", "b")),
        ),
        "classify",
        {"text": "said", "label": "kind"},
    ),
    SearchStep(
        "long_and_short.csv",
        csv("head,body,kind", lambda m, k: (m.text(3), m.text(20), m.one_of("a", "b"))),
        "classify",
        {"text": "body", "label": "kind"},
    ),
    SearchStep(
        "text_beside_table.csv",
        csv(
            "review,price,country,stars",
            lambda m, k: (m.text(), m.number(), m.one_of("de", "fr"), m.one_of(1, 2)),
        ),
        "classify",
        {"text": "review", "label": "stars"},
        {"label": "stars"},
    ),
    SearchStep(
        "nested.jsonl",
        jsonl(lambda m, k: {"text": m.text(), "label": m.one_of("a", "b"), "meta": {"n": [k]}}),
        "classify",
        {"text": "text", "label": "label"},
    ),
    SearchStep(
        "untagged.jsonl",  # lists that are all empty are no labels, whatever they are called
        jsonl(lambda m, k: {"message": m.text(), "tags": [], "queue": m.one_of("a", "b")}),
        "classify",
        {"text": "message", "label": "queue"},
    ),
    SearchStep(
        "sparse.jsonl",
        jsonl(
            lambda m, k: {
                "said": m.text(),
                "kind": m.one_of("a", "b"),
                **({"x": 1} if k < 9 else {}),
            }
        ),
        "classify",
        {"text": "said", "label": "kind"},
    ),
    SearchStep(
        "genres.jsonl",
        jsonl(lambda m, k: {"plot": m.text(), "genres": [m.one_of("a", "b"), m.one_of("c", "d")]}),
        "classify",
        {"text": "plot", "label": "genres"},
    ),
    SearchStep(
        "fasttext.txt",
        "".join(f"__label__{'ab'[k % 2]} {Maker().text(5)} {k}\n" for k in range(ROWS)),
        "classify",
        {"text": "text", "label": "label"},
    ),
    SearchStep(
        "scores.csv",
        csv("essay,score", lambda m, k: (m.text(30), m.number())),
        "regress",
        {"text": "essay", "label": "score"},
    ),
    SearchStep(
        "half_points.csv",
        csv("essay,rating", lambda m, k: (m.text(30), round(m.draw.uniform(1, 5), 1))),
        "regress",
        {"text": "essay", "label": "rating"},
    ),
    SearchStep(
        "tagged.jsonl",
        jsonl(lambda m, k: tagged(m)),
        "label",
        {"text": "words", "label": "ner"},
    ),
    SearchStep(
        "tagged.conll",
        "".join(f"{w}\t{'AB'[k % 2]}\n" for k, w in enumerate(WORDS)) + "\n",
        "label",
        {},
    ),
    SearchStep(
        "duplicates.csv",
        csv(
            "id,question1,question2,is_duplicate",
            lambda m, k: (k, m.text(6), m.text(6), m.one_of(0, 1)),
        ),
        "match",
        {"text": "question1", "second": "question2", "label": "is_duplicate"},
    ),
    SearchStep(
        "second_named.csv",
        csv("one,two,same", lambda m, k: (m.text(6), m.text(6), m.one_of("yes", "no"))),
        "match",
        {"text": "one", "second": "two", "label": "same"},
        {"text": "one", "second": "two"},
    ),
    SearchStep(
        "pairs.tsv",
        csv("source\ttarget", lambda m, k: (m.text(5) + f" {k}", m.text(5) + f" {k}"), "\t"),
        "translate",
        {"text": "source", "label": "target"},
    ),
    SearchStep(
        "book.txt",
        "\n".join(Maker().text(12) + f" {k}" for k in range(ROWS)),
        "language",
        {"text": "text"},
    ),
    SearchStep(
        "churn.csv",
        csv(
            "customer_id,gender,plan,tenure,charges,churn",
            lambda m, k: (
                f"C{k:05d}",
                m.one_of("m", "f"),
                m.one_of("basic", "gold"),
                m.draw.randrange(70),
                m.number(),
                m.one_of("yes", "no"),
            ),
        ),
        "table",
        {"label": "churn"},
        {"label": "churn"},
    ),
    SearchStep(
        "churn_unsaid.csv",
        csv("plan,tenure,churn", lambda m, k: (m.one_of("a", "b"), m.number(), m.one_of(0, 1))),
        "table",
        {"label": "churn"},
    ),
    SearchStep(
        "id_and_unordered_date.csv",
        csv(
            "id,signed,plan,age,left",
            lambda m, k: (
                k,
                m.draw.choice(DAYS),
                m.one_of("a", "b"),
                m.draw.randrange(20, 80),
                m.one_of("y", "n"),
            ),
        ),
        "table",
        {"label": "left"},
        {"label": "left"},
    ),
    SearchStep(
        "houses.csv",
        csv("area,town,price", lambda m, k: (m.number(), m.one_of("A", "B"), m.number())),
        "table",
        {"label": "price"},
        {"label": "price"},
    ),
    SearchStep(
        "numbers_only.csv",
        csv("a,b,target", lambda m, k: (m.number(), m.number(), m.one_of(0, 1))),
        "table",
        {"label": "target"},
    ),
    SearchStep(
        "counted.csv",
        csv("area,price", lambda m, k: (k, k + 0.5)),
        "table",
        {"label": "price"},
        {"label": "price"},
    ),
    SearchStep(
        "counts_of_bits.jsonl",  # few different numbers, and none that names a class
        jsonl(lambda m, k: {"features": [[m.one_of(0.0, 1.0)]] * 6, "label": (k % 6 + 1) / 7}),
        "regress",
        {"text": "features", "label": "label"},
    ),
    SearchStep(
        "nested_and_unused.jsonl",
        jsonl(lambda m, k: {"review": m.text(), "stars": m.one_of("a", "b"), "meta": {"id": [k]}}),
        "classify",
        {"text": "review", "label": "stars"},
    ),
    SearchStep(
        "month_first.csv",
        csv("day,sales", lambda m, k: (f"{DAYS[k]:%m/%d/%Y}", m.number())),
        "forecast",
        {"time": "day", "dates": "month-first", "targets": ["sales"]},
    ),
    SearchStep(
        "far.csv",  # a tenth of the steps is less than a horizon: whole horizons to validate on
        csv("date,sales", lambda m, k: (DAYS[k], m.number())),
        "forecast",
        {"split": [80.0, 20.0, 20.0], "targets": ["sales"]},
        {},
        ("model.horizon=20",),
    ),
    SearchStep(
        "series_said.csv",
        csv("date,sales", lambda m, k: (DAYS[k], m.number())),
        "forecast",
        {"time": "date", "targets": ["sales"]},
        {},
        ("model.horizon=5",),
    ),
]
ASKED = [
    Question(
        "two_labels.csv",
        csv("text,topic,mood", lambda m, k: (m.text(), m.one_of(*TOPICS), m.one_of(*MOODS))),
        {"--task classify --text text --label topic", "--task classify --text text --label mood"},
    ),
    Question(
        "two_texts.csv",
        csv("one,two,same", lambda m, k: (m.text(6), m.text(6), m.one_of("yes", "no"))),
        {
            "--task match --text one --second two --label same",
            "--task classify --text one --label same",
            "--task classify --text two --label same",
        },
    ),
    Question(
        "languages.csv",
        csv("en,de", lambda m, k: (m.text(6) + f" {k}", m.text(6) + f" {k}")),
        {"--task translate --text en --label de", "--task translate --text de --label en"},
    ),
    Question(
        "ages.csv",
        csv("letter,age", lambda m, k: (m.text(12), m.draw.randrange(20, 60))),
        {
            "--task classify --text letter --label age",
            "--task regress --text letter --label age",
        },
    ),
    Question(
        "half_stars.csv",
        csv("film,stars", lambda m, k: (m.text(12), m.draw.randrange(2, 11) / 2)),
        {"--task classify --text film --label stars", "--task regress --text film --label stars"},
    ),
    Question(
        "passengers.csv",
        csv(
            "PassengerId,alive,class_of,Name,Age",
            lambda m, k: (
                k + 1,
                m.one_of(0, 1),
                m.one_of(1, 2, 3),
                f"{m.name()} Mr. {m.name()}",
                m.draw.randrange(1, 80),
            ),
        ),
        {
            "--task classify --text Name",
            "--task classify --text Name --columns class_of,Age",
            "--task table",
        },
        {"label": "alive"},
    ),
    Question(
        "iris.csv",
        csv("a,b,kind", lambda m, k: (m.number(), m.number(), m.one_of("x", "y", "z"))),
        {"--task table --label kind", "--task table --label a", "--task table --label b"},
    ),
    Question(
        "strange 'names'.csv",
        csv("my text,a b,c$d", lambda m, k: (m.text(), m.one_of(*TOPICS), m.one_of(*MOODS))),
        {
            "--task classify --text 'my text' --label 'a b'",
            "--task classify --text 'my text' --label 'c$d'",
        },
    ),
]


def written(folder: Path, name: str, content: str) -> str:
    (folder / name).write_text(content, "utf-8")
    return str(folder / name)


def roles(config: RunConfig) -> dict[str, Any]:
    return {**config.data.table(), **config.model.table()}


@pytest.mark.parametrize("case", TAKEN, ids=lambda case: case.name)
def test_what_a_file_is_taken_for(case: SearchStep, tmp_path: Path) -> None:
    path = written(tmp_path, case.name, case.content)
    config, messages = infer({"train": [path], **case.options}, None, case.settings)
    assert config.task == case.task
    roles_inferred = roles(config)
    assert {key: roles_inferred[key] for key in case.columns} == case.columns
    keys = [message.text.partition(":")[0] for message in messages]
    assert "task" in keys, "every decision has a line"
    for key in {*case.columns} - {"header", "ids"}:
        assert key in case.options or any(line.endswith(key) for line in keys)
    assert ("header" in case.columns) == any("the first line is a row" in line for line in keys)


@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.name)
def test_what_columns_do_not_tell_is_asked(case: Question, tmp_path: Path) -> None:
    path = written(tmp_path, case.name, case.content)
    with pytest.raises(Undecided) as error:
        infer({"train": [path], **case.options}, None, [])
    assert {*error.value.choices.values()} == case.answers
    assert str(error.value).startswith(f"{path}:2: the columns do not tell what to learn:")


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.name)
def test_every_answer_can_be_pasted(case: Question, tmp_path: Path, ensue: Ensue) -> None:
    written(tmp_path, case.name, case.content)
    options = [word for key, value in case.options.items() for word in (f"--{key}", value)]
    code, _, err = ensue("train", case.name, *options, "--dry-run")
    assert code == 2
    commands = [line.strip() for line in err.splitlines() if line.startswith("  ensue train ")]
    assert len(commands) == len(case.answers)
    for command in commands:
        code, out, err = ensue(*shlex.split(command)[1:])
        assert code == 0, err
        assert 'task = "' in out


def test_what_is_said_of_a_series_is_not_passed_over(tmp_path: Path, ensue: Ensue) -> None:
    """No time column where the options say so, and series by the column that identifies them."""
    shops = csv("day,shop,sales", lambda m, k: (DAYS[k // 2], "ab"[k % 2], m.number()))
    written(tmp_path, "shops.csv", shops)
    written(tmp_path, "sales.csv", csv("day,sales", lambda m, k: (DAYS[k], m.number())))
    options = ("--task", "forecast", "--target", "sales", "--horizon", "3", "--dry-run")
    for words, key, value in (
        (("sales.csv",), "time", "day"),
        (("sales.csv", "--time", ""), "time", ""),
        (("shops.csv", "--group", "shop"), "ids", ["shop"]),
    ):
        code, out, err = ensue("train", *words, *options)
        assert code == 0, err
        assert tomllib.loads(out)["model"][key] == value


def test_names_of_columns_that_are_numbers_are_names(tmp_path: Path) -> None:
    """Years, and what the user names as header, are no row."""
    years = csv("land,2010,2011,2012", lambda m, k: (m.name(), *(m.draw.randrange(9),) * 3))
    path = written(tmp_path, "years.csv", years)
    config, _ = infer({"train": [path], "label": "2012"}, "table", [])
    assert config.data.header == []
    path = written(tmp_path, "names.tsv", bare(lambda m, k: (m.name(), "xy"[k % 2]), "\t"))
    with pytest.raises(DataError, match=r"unknown column 'name'(?s:.)*--header a,b,…"):
        infer({"train": [path], "text": "name"}, None, [])
    config, messages = infer({"train": [path]}, None, ["data.header=[]"])
    assert config.data.label == "x"
    assert any("the first line is taken as names" in message.text for message in messages)


def test_columns_beside_a_text_are_named(tmp_path: Path, ensue: Ensue) -> None:
    content = csv(
        "id,review,price,land,stars",
        lambda m, k: (k, m.text(), m.number(), m.one_of("de", "fr"), m.one_of(1, 2, 3)),
    )
    path = written(tmp_path, "reviews.csv", content)
    _, messages = infer({"train": [path]}, None, [])
    (line,) = [message.text for message in messages if message.text.startswith("not used: ")]
    assert line.startswith("not used: id (an identifier), price (")
    assert line.endswith("; learn from them, too, with --columns price,land")
    code, out, err = ensue("train", path, *line.rpartition("with ")[2].split(), "--dry-run")
    assert code == 0, err
    assert tomllib.loads(out)["data"]["columns"] == ["price", "land"]
    assert "not used: id (an identifier)\n" in err


@pytest.mark.parametrize("settings", [[], ["model.horizon=5"]])
def test_columns_beside_a_series_are_named(settings: list[str], tmp_path: Path) -> None:
    """A text next to dates and numbers was silently ignored."""
    content = csv(
        "ticket_id,day,subject,hours",
        lambda m, k: (1000 + k, DAYS[k], m.text(6), m.number()),
    )
    path = written(tmp_path, "tickets.csv", content)
    inferred = infer({"train": [path], "label": "hours"}, "forecast", settings)
    (line,) = [
        message.text for message in inferred.messages if message.text.startswith("not used: ")
    ]
    assert line == "not used: ticket_id (an identifier), subject (texts, 6 words on average)"
    parts = csv("year,month,sales", lambda m, k: (2010 + k // 12, k % 12 + 1, m.number()))
    _, messages = infer({"train": [written(tmp_path, "sales.csv", parts)]}, None, settings)
    assert not any(message.text.startswith("not used: ") for message in messages)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            csv("day,sales", lambda m, k: (DAYS[k % 100], m.draw.randrange(200, 260))),
            r"row 101: column 'day': '2021-01-01' comes twice, as .* row 1 has it too",
        ),
        (
            csv("day,sales", lambda m, k: (DAYS[k] if k != 70 else "soon", m.number())),
            r"row 71: column 'day': expected a date such as .* got 'soon'",
        ),
    ],
)
def test_what_keeps_dates_and_numbers_from_being_a_series_is_said(
    content: str, message: str, tmp_path: Path
) -> None:
    """The error used to ask for a text, which such a file does not have."""
    with pytest.raises(DataError, match=message):
        infer({"train": [written(tmp_path, "sales.csv", content)]}, None, [])


def test_what_was_said_is_not_told_as_found_out(tmp_path: Path) -> None:
    """`model.several: true` was reported despite `--set model.several=false`."""
    rows = jsonl(lambda m, k: {"plot": m.text(), "genres": [m.one_of("a", "b"), "c"]})
    path = written(tmp_path, "genres.jsonl", rows)
    texts = [message.text for message in infer({"train": [path]}, None, []).messages]
    assert "model.several: true" in texts
    texts = [
        message.text for message in infer({"train": [path]}, None, ["model.several=false"]).messages
    ]
    assert not any("several:" in text for text in texts)


def test_python_asks_in_the_words_of_python(tmp_path: Path) -> None:
    rows = [{"text": Maker().text(), "topic": "abc"[k % 3], "mood": "xy"[k % 2]} for k in range(60)]
    with pytest.raises(DataError, match=r"which columns are meant") as error:
        Classifier().fit(pd.DataFrame(rows))
    assert "fit(…, text='text', label='mood')" in str(error.value)


def test_nothing_to_learn_from_is_said(tmp_path: Path) -> None:
    path = written(
        tmp_path, "ids.csv", csv("id,when,left", lambda m, k: (k, DAYS[k], m.one_of(0, 1)))
    )
    with pytest.raises(
        EnsueError, match=r"no column to predict left from, got id \(an identifier\)"
    ):
        infer({"train": [path], "label": "left"}, None, [])


def column(name: str, values: Sequence[Any]) -> Kind:
    return column_of(
        [Row(Place("f", k), {name: value}) for k, value in enumerate(values)], name
    ).kind


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("id", range(9), Kind.IDENTIFIER),
        ("shop_id", ["a1", "a1", "b2"], Kind.IDENTIFIER),
        ("class_id", [1, 2, 1, 2], Kind.NUMBER),
        ("x", range(5, 25), Kind.IDENTIFIER),
        ("year", range(1949, 1960), Kind.DATE),
        ("day", ["20210131", "20210201"], Kind.DATE),
        ("x", ["01/31/2021", "02/01/2021"], Kind.DATE),
        ("x", ["31 Jan 2021", "1 Feb 2021"], Kind.DATE),
        ("x", ["2021-01-31T10:00:00Z"] * 2 + ["2021-01-31 11:00"], Kind.DATE),
        ("x", ["2021-Q1", "2021-Q2"], Kind.DATE),
        ("x", [f"{k:08x}-0000-0000-0000-{k:012x}" for k in range(9)], Kind.IDENTIFIER),
        ("x", [112, 118, 132, 129, 121, 135], Kind.NUMBER),
        ("x", ["1.5", "2", None, "3"], Kind.NUMBER),
        ("x", ["yes", "no", "yes", "no"], Kind.CATEGORY),
        ("x", [True, False, True, True], Kind.CATEGORY),
        ("x", ["Anna", "Berta", "Carl"], Kind.NAME),
        ("x", ["a fine film it was", "not at all so good"], Kind.TEXT),
        ("x", [["a", "b"], ["c"]], Kind.TOKENS),
        ("x", ["", None, "NA"], Kind.EMPTY),
        ("x", ["de", "de", "de"], Kind.CONSTANT),
        ("x", [{"a": 1}, {"a": 2}], Kind.OTHER),
    ],
)
def test_what_a_column_holds(name: str, values: Sequence[Any], kind: Kind) -> None:
    assert column(name, list(values)) is kind


def test_lines_that_begin_with_a_label_are_no_text_alone(tmp_path: Path) -> None:
    make = Maker()
    lines = [f"{make.one_of('DESC:manner', 'NUM:date')} {make.text(6)}" for _ in range(ROWS)]
    config, _ = infer({"train": [written(tmp_path, "q.txt", "\n".join(lines))]}, None, [])
    assert (config.task, config.data.label) == ("classify", "label")
    numbered = [f"{k} {make.text(6)}" for k in range(ROWS)]
    config, _ = infer({"train": [written(tmp_path, "n.txt", "\n".join(numbered))]}, None, [])
    assert config.task == "language"


def test_vectors_are_translated_into_words(tmp_path: Path) -> None:
    rows = jsonl(lambda m, k: {"features": [[m.number(), m.number()]] * 4, "target": m.text(3)})
    data = {"train": [written(tmp_path, "v.jsonl", rows)], "text": "features", "label": "target"}
    config, _ = infer(data, "translate", [])
    model = config.new_model()
    part = model.reader.files(config.data).part("train")
    model.reader.check(part, "training")
    assert part.inputs.values.shape[1] == 2

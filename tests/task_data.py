"""Small data for every task: rows in memory, and the same rows as files."""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from toy_data import Sentence, sentences

from ensue.data.pictures.images import write_image
from ensue.data.tasks.shapes import shapes
from ensue.data.tasks.write import expressions
from ensue.data.trees.tree import read_tree

Rows = list[Any]


@dataclass(frozen=True)
class Dialect:
    """How a table is written; the options that say so."""

    delimiter: str = ","
    header: bool = True
    encoding: str = "utf-8"

    def options(self, names: Sequence[str]) -> list[str]:
        words = ["--delimiter", self.delimiter, "--encoding", self.encoding]
        return words if self.header else [*words, "--header", ",".join(names)]


PLAIN, STRANGE = Dialect(), Dialect(";", False, "utf-16")


@dataclass(frozen=True, eq=False)
class Data:
    """Rows of one kind. make: the first rows, all different; cells: those of a row in the columns
    `names`, of which a question lacks the last `answers`; question: a row without its answer;
    altered: with another answer, None where a row has none of its own. words: the columns on the
    command line; columns: the same for `fit`; option_values: a value for each option of the
    task, by its flag."""

    make: Callable[[int], Rows]
    names: tuple[str, ...] = ()
    cells: Callable[[Any], Sequence[Any]] = lambda row: row
    answers: int = 1
    question: Callable[[Any], Any] = lambda row: row[0]
    altered: Callable[[Any], Any] | None = None
    words: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    option_values: Mapping[str, str] = field(default_factory=dict)
    suffix = ".csv"

    def questions(self, rows: Rows) -> Rows:
        return [self.question(row) for row in rows]

    def asked_names(self) -> tuple[str, ...]:
        return self.names[: len(self.names) - self.answers]

    def write(
        self, path: Path, rows: Rows, dialect: Dialect = PLAIN, *, answered: bool = True
    ) -> str:
        """The file as a command names it; answered: with the columns of the answers."""
        names = self.names if answered else self.asked_names()
        with open(path, "w", encoding=dialect.encoding, newline="") as file:
            table = csv.writer(file, delimiter=dialect.delimiter, lineterminator="\n")
            if dialect.header:
                table.writerow(names)
            table.writerows(tuple(self.cells(row))[: len(names)] for row in rows)
        return path.name

    def spoil(self, path: Path) -> str:
        """Makes the second row one with too many cells; gives the name of the row."""
        lines = path.read_text("utf-8").splitlines(keepends=True)
        path.write_text("".join([*lines[:2], "x,x,x,x,x,x\n", *lines[2:]]), "utf-8")
        return f"{path.name}:3"


@dataclass(frozen=True, eq=False)
class PictureFolders(Data):
    """Pictures in a folder for each class; those that are asked have no class."""

    suffix = ""

    def write(
        self, path: Path, rows: Rows, dialect: Dialect = PLAIN, *, answered: bool = True
    ) -> str:
        for k, (pixels, kind) in enumerate(rows):
            place = path / kind if answered else path
            place.mkdir(parents=True, exist_ok=True)
            write_image(place / f"{k:02}.png", pixels)
        return path.name

    def spoil(self, path: Path) -> str:
        first = next(iter(sorted(path.rglob("*.png"))))
        broken = first.with_name("00-broken.png")
        broken.write_bytes(b"no picture")
        return broken.name


@dataclass(frozen=True, eq=False)
class PictureTable(Data):
    """A table of captions, next to a folder with its pictures."""

    def write(
        self, path: Path, rows: Rows, dialect: Dialect = PLAIN, *, answered: bool = True
    ) -> str:
        folder = path.with_suffix("")
        folder.mkdir(exist_ok=True)
        named = []
        for k, (pixels, caption) in enumerate(rows):
            write_image(folder / f"{k:02}.png", pixels)
            named.append((f"{folder.name}/{k:02}.png", caption))
        return super().write(path, named, dialect, answered=answered)


# --- rows ------------------------------------------------------------------------------------


def _sentences(row: Callable[[Sentence], Any]) -> Callable[[int], Rows]:
    return lambda count: [row(sentence) for sentence in sentences(count)]


def _letters(count: int) -> Rows:
    draw, texts = random.Random(1), dict[str, int]()
    while len(texts) < count:
        text = "".join(draw.choice("abcdeghio") for _ in range(draw.randint(1, 12)))
        texts[text] = sum(letter in "aeio" for letter in text)
    return list(texts.items())


def _number(text: str) -> str:
    return f"{len(text) + len(text) / 7:.2f}"


def _relation(sentence: Sentence, k: int) -> tuple[tuple[str, str], str]:
    other = sentence.text if k % 2 else sentence.french
    return (sentence.text, other), "same" if k % 2 else "french"


def _matched(count: int) -> Rows:
    return [_relation(sentence, k) for k, sentence in enumerate(sentences(count))]


def _scored(count: int) -> Rows:
    return [((a, b), _number(a + b)) for (a, b), _ in _matched(count)]


def _walks(count: int) -> Rows:
    draw, walks = np.random.default_rng(1), []
    for k in range(count):
        up = np.arange(int(draw.integers(2, 7))) * (1 if k % 2 else -1)
        steps = np.stack([up + 0.3 * draw.normal(size=len(up)), draw.normal(size=len(up))], 1)
        walks.append((steps.astype(np.float32), "rises" if k % 2 else "falls"))
    return walks


def _walk_steps(count: int) -> Rows:
    return [(v, ["up" if height > 0 else "down" for height in v[:, 0]]) for v, _ in _walks(count)]


def _walk_ends(count: int) -> Rows:
    return [(v, float(v[-1, 0])) for v, _ in _walks(count)]


def _with_size(row: tuple[str, str]) -> tuple[str, str, str]:
    """With a column next to the text, empty here and there."""
    text, label = row
    return text, str(len(text)) if len(text) % 5 else "", label


REVIEW = ("review", "price", "country", "stars")


def _reviews(count: int) -> Rows:
    draw, reviews = random.Random(5), []
    for sentence in sentences(count):
        good = sentence.mood == "good"
        price = None if draw.random() < 0.2 else round(draw.gauss(20 if good else 10, 3), 2)
        country = draw.choice(["nl", "de", ""] if good else ["de", "fr", ""])
        reviews.append(
            dict(zip(REVIEW, (sentence.text, price, country, sentence.mood), strict=True))
        )
    return reviews


HOUSE = ("area", "age", "place", "price")


def _houses(count: int) -> Rows:
    draw, houses = random.Random(2), []
    for _ in range(count):
        area, age, place = draw.randint(40, 160), draw.randint(0, 90), draw.choice("abc")
        price = 2.0 * area - 0.5 * age + 40 * (place == "b") + draw.gauss(0, 3)
        houses.append(dict(zip(HOUSE, (area, age, place, round(price, 2)), strict=True)))
    return houses


def _flats(count: int) -> Rows:
    return [{**row, "price": "high" if row["price"] > 200 else "low"} for row in _houses(count)]


def _series(count: int) -> Rows:
    draw = random.Random(3)
    return [
        {
            "month": f"{1990 + t // 12}-{1 + t % 12:02}",
            "sales": round(10 + 0.1 * t + 3 * math.sin(t * 0.9) + draw.gauss(0, 0.2), 3),
            "visitors": round(5 + draw.gauss(0, 1), 3),
            "offer": t % 3,
            "region": "north",
        }
        for t in range(count)
    ]


def _trees(count: int) -> Rows:
    trees = dict.fromkeys(row.strip() for row in expressions("logic", 1, "train", 400, 4))
    return [*trees][:count]


def _bars(count: int) -> Rows:
    draw, bars = np.random.default_rng(4), []
    for k in range(count):
        pixels, at = draw.integers(0, 60, (8, 8)).astype(np.uint8), int(draw.integers(1, 7))
        kind = ("across", "upright")[k % 2]
        pixels[(at, slice(1, 7)) if kind == "across" else (slice(1, 7), at)] = 255
        bars.append((pixels, kind))
    return bars


def _scenes(count: int) -> Rows:
    return [(scene.picture[:, 1::3, 1::3], scene.caption) for scene in shapes(1, "train", count)]


def _other(*answers: Any) -> Callable[[Any], Any]:
    """The row with the first answer that it has not got."""

    def altered(row: Any) -> Any:
        return (row[0], next(answer for answer in answers if answer != row[1]))

    return altered


def _joined(row: Any) -> tuple[str, str]:
    return " ".join(row[0]), " ".join(row[1])


PAIR = ("source", "target")
SIZED = ("text", "size", "label")
SIDES = ("premise", "hypothesis", "label")
LETTERS = Data(
    _letters, ("letters", "vowels"), altered=_other(0, 1), option_values={"--at-most": "2"}
)
MOODS = Data(
    _sentences(lambda sentence: (sentence.text, sentence.mood)),
    SIZED,
    _with_size,
    altered=_other("good", "bad"),
    words=("--text", "text", "--label", "label"),
    option_values={
        "--columns": "size",
        "--unlabelled": "asked.csv",
        "--threshold": "good=0.7",
        "--abstain-below": "0.6",
    },
)
REVIEWS = Data(
    _reviews,
    REVIEW,
    lambda row: tuple(row.values()),
    question=lambda row: {key: row[key] for key in REVIEW[:-1]},
    altered=lambda row: {**row, "stars": "bad" if row["stars"] == "good" else "good"},
    words=("--text", "review", "--label", "stars", "--columns", "price,country"),
    columns={"text": "review", "label": "stars", "columns": "price,country"},
)
TOPICS = Data(_sentences(lambda sentence: (sentence.text, sentence.topics)))
LENGTHS = Data(
    _sentences(lambda sentence: (sentence.text, _number(sentence.text))),
    SIZED,
    _with_size,
    altered=lambda row: (row[0], f"{float(row[1]) + 9:.2f}"),
    words=("--text", "text", "--label", "label", "--task", "regress", "--columns", "size"),
    option_values={"--columns": "size"},
)
TAGS = Data(
    _sentences(lambda sentence: (sentence.tokens, sentence.tags)),
    ("words", "tags"),
    _joined,
    altered=lambda row: (row[0], row[1][::-1]),
    words=("--task", "label", "--text", "words", "--label", "tags"),
)
SPANS = Data(_sentences(lambda sentence: (sentence.tokens, sentence.spans)))
PROSE = Data(
    _sentences(lambda sentence: sentence.text),
    ("text",),
    lambda row: (row,),
    answers=0,
    question=lambda row: row,
    words=("--task", "language", "--text", "text"),
)
PAIRS = Data(
    _sentences(lambda sentence: (sentence.text, sentence.french)),
    PAIR,
    altered=lambda row: (row[0], f"{row[1]} {row[0]}"),
    option_values={"--beam": "2", "--nbest": "2", "--alignment": ""},
)
MATCHED = Data(
    _matched,
    SIDES,
    lambda row: (*row[0], row[1]),
    altered=_other("same", "french"),
    words=("--label", "label"),
    option_values={"--second": "hypothesis", "--threshold": "same=0.7", "--abstain-below": "0.6"},
)
SCORED = replace(MATCHED, make=_scored)
WALK_WORDS = Data(
    lambda count: [(v, f"it {kind} for {len(v)} steps") for v, kind in _walks(count)],
    altered=_other("it rises", "it falls"),
)
WALKS, WALK_STEPS, WALK_ENDS = Data(_walks), Data(_walk_steps), Data(_walk_ends)
HOUSES = Data(
    _houses,
    HOUSE,
    lambda row: tuple(row.values()),
    question=lambda row: {key: row[key] for key in HOUSE[:-1]},
    altered=lambda row: {**row, "price": 500 - row["price"]},
    words=("--task", "table", "--label", "price"),
    columns={"target": "price"},
    option_values={"--threshold": "0.7", "--abstain-below": "0.6"},
)
FLATS = replace(HOUSES, make=_flats, altered=lambda row: {**row, "price": "unheard-of"})
SERIES = Data(
    _series,
    ("month", "sales", "visitors", "offer", "region"),
    lambda row: tuple(row.values()),
    answers=0,
    question=lambda row: row,
    altered=lambda row: {**row, "sales": row["sales"] + 5},
    words=("--target", "sales", "--horizon", "2"),
    option_values={
        "--horizon": "3",
        "--time": "month",
        "--dates": "day-first",
        "--static": "region",
        "--covariates": "visitors",
        "--known": "offer",
        "--future": "asked.csv",
    },
)
TREES = Data(
    _trees,
    ("tree",),
    lambda row: (row,),
    answers=0,
    question=lambda row: row,
    altered=lambda row: row.replace("(T ", "(t ").replace("(F ", "(T ").replace("(t ", "(F "),
    option_values={"--threshold": "T=0.7", "--abstain-below": "0.6"},
)
SAID_TREES = Data(
    lambda count: [(row, read_tree(row).label) for row in _trees(count)],
    ("tree", "label"),
    altered=_other("T", "F"),
    option_values={"--threshold": "T=0.7", "--abstain-below": "0.6"},
)
BARS = PictureFolders(_bars, option_values={"--threshold": "across=0.7", "--abstain-below": "0.6"})
SCENES = PictureTable(
    _scenes,
    ("file", "caption"),
    altered=lambda row: (row[0], f"no {row[1]}"),
    option_values={"--beam": "2", "--nbest": "2", "--alignment": ""},
)

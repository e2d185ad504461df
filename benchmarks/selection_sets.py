"""The data sets that defaults are selected on: public material, or made by an equation, in three
parts each: to learn from, to rank by, and outer rows that a choice is confirmed on. Official
test files are not opened.
"""

from __future__ import annotations

import csv
import gzip
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import default_labels
import default_tables
import default_texts
import numpy as np
from default_runs import DATA, opened
from sklearn import datasets

from ensue.data.tasks.dates import FORMATS, dates

Row = dict[str, Any]
LEARNED, RANKED, OUTER = 1_000, 400, 1_500  # rows, where there are enough
SHARE, SEED = 0.25, 7  # of the rows that are learned from in a small table: to rank by


@dataclass(frozen=True)
class Cut:
    """Rows to learn from, to rank by, and to confirm on."""

    train: Sequence[Any]
    validation: Sequence[Any]
    outer: Sequence[Any]


def cut(rows: Iterable[Any], learned: int = LEARNED) -> Cut:
    shuffled = list(rows)
    random.Random(SEED).shuffle(shuffled)
    first, second = OUTER, OUTER + RANKED
    return Cut(shuffled[second : second + learned], shuffled[first:second], shuffled[:first])


# --- tables --------------------------------------------------------------------------------------


def bundled(name: str) -> Cut:
    """A table of scikit-learn; the outer rows are those of default_tables.py."""
    learned, outer = default_tables.table(name)
    ranked = round(SHARE * len(learned))
    return Cut(learned[ranked:], learned[:ranked], outer)


def numbered(x: np.ndarray, y: np.ndarray, classes: bool) -> list[Row]:
    """Rows of columns x0, x1, … and their target."""
    targets = [f"class {label}" for label in y] if classes else [float(number) for number in y]
    return [
        {**{f"x{k}": round(float(v), 6) for k, v in enumerate(row)}, "target": target}
        for row, target in zip(x, targets, strict=True)
    ]


def pollution() -> list[Row]:
    """Fine dust of an hour, as a logarithm, from the weather."""
    with gzip.open(DATA / "timeseries-small" / "pollution.csv.gz", "rt") as file:
        read = [row for row in csv.DictReader(file) if row["pm2.5"] not in ("NA", "0")]
    names = ("month", "hour", "DEWP", "TEMP", "PRES", "cbwd", "Iws")
    return [
        {**{k: row[k] for k in names}, "target": round(float(np.log(float(row["pm2.5"]))), 4)}
        for row in read
    ]


def transformer() -> list[Row]:
    """The temperature of the oil from the loads of that hour."""
    head, *lines = [line.split(",") for line in opened(DATA / "ett" / "ETTh1.csv.gz") if line]
    return [dict(zip([*head[1:-1], "target"], line[1:], strict=True)) for line in lines[:11_520]]


def handwriting() -> list[Row]:
    """Figures of MNIST, 4 × 4 pixels as their mean: 49 columns."""
    folder = DATA / "mnist"
    many = LEARNED + RANKED + OUTER
    with gzip.open(folder / "train-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(16 + 784 * many)[16:], np.uint8)
    with gzip.open(folder / "train-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(8 + many)[8:], np.uint8)
    means = pixels.reshape(many, 7, 4, 7, 4).mean((2, 4)).reshape(many, 49)
    return numbered(means / 255, labels, True)


def words() -> list[Row]:
    """The tag of a word from its ends, its shape and the tag before: mostly categories."""
    rows = []
    for sentence in islice(default_labels.treebank(), 0, None, 40):
        before = "begin"
        for cells in sentence:
            word, tag = cells[1], cells[3]
            shape = {"length": len(word), "capital": "yes" if word[:1].isupper() else "no"}
            ends = {"last": word[-1:].lower(), "ending": word[-2:].lower(), "before": before}
            rows.append({**shape, **ends, "target": tag})
            before = tag
    return rows


def rare() -> list[Row]:
    """Who leaves, by two of eight columns: about one in ten."""
    draw = np.random.default_rng(5)
    x = draw.normal(size=(LEARNED + RANKED + OUTER, 8))
    z = 1.3 * x[:, 0] - 1.3 * x[:, 1] * x[:, 2] - 3.0
    return numbered(x, (draw.random(len(x)) < 1 / (1 + np.exp(-z))).astype(int), True)


def drawn(make: Callable[..., Any], classes: bool, **options: Any) -> list[Row]:
    x, y = make(n_samples=LEARNED + RANKED + OUTER, random_state=SEED, **options)
    return numbered(x, y.astype(int) if classes else y / y.std(), classes)


TABLES: dict[str, Callable[[], Cut]] = {
    **{name: (lambda name=name: bundled(name)) for name in default_tables.SETS},
    "pollution": lambda: cut(pollution()),
    "transformer": lambda: cut(transformer()),
    "handwriting": lambda: cut(handwriting()),
    "words": lambda: cut(words()),
    "rare class": lambda: cut(rare()),
    "moons": lambda: cut(drawn(datasets.make_moons, True, noise=0.3), 400),
    "clusters": lambda: cut(
        drawn(datasets.make_classification, True, n_features=20, n_informative=8, n_classes=4)
    ),
    "friedman": lambda: cut(drawn(datasets.make_friedman1, False, noise=1.0)),
    "linear": lambda: cut(
        drawn(datasets.make_regression, False, n_features=15, n_informative=6, noise=50.0), 400
    ),
}


# --- texts → class -------------------------------------------------------------------------------


def named(rows: default_texts.Rows) -> list[Row]:
    return [{"text": text, "label": label} for text, label in sorted(set(rows))]


def languages() -> list[Row]:
    """A date as it is written, and the language it is written in."""
    strings = dates(SEED, "train", LEARNED + RANKED + OUTER)
    return [{"text": date.text, "label": FORMATS[date.format].language} for date in strings]


TEXTS: dict[str, Callable[[], Cut]] = {
    "polarity 1,000": lambda: cut(named(default_texts.polarity())),
    "genres": lambda: cut(named(default_texts.genres())),
    "speakers": lambda: cut(named(default_texts.speakers()), 1_400),
    "languages": lambda: cut(languages()),
    "stars": lambda: cut(named(default_texts.stars())),
    "polarity 3,000": lambda: cut(named(default_texts.polarity()), 3_000),
}


# --- labels of tokens ----------------------------------------------------------------------------


def parts_of_dates() -> list[default_labels.Sentence]:
    """The words of a date, and which of them are day, month and year."""
    strings = dates(SEED, "train", LEARNED + RANKED + OUTER)
    return [([*date.tokens], [*date.tags]) for date in strings]


LABELS: dict[str, Callable[[], Cut]] = {
    "tags": lambda: cut(default_labels.tags()),
    "spans": lambda: cut(default_labels.spans()),
    "dates": lambda: cut(parts_of_dates()),
}

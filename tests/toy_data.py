"""Small data files for runs of every task: sentences of a toy grammar, series, tables, pictures.

Each function writes the files of one case into a folder, always with the same bytes: the data to
train on, and `input.…`, what the finished run is asked."""

from __future__ import annotations

import csv
import json
import math
import random
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.data.pictures.images import write_image
from ensue.data.tasks.shapes import shapes
from ensue.data.tasks.write import expressions

DETERMINERS = ("the", "a")
MOODS = {"fine": "good", "lovely": "good", "dull": "bad", "grim": "bad"}
NOUNS = ("cat", "dog", "bird", "fish")
NAMES = (("Ann",), ("Old", "Tom"), ("Miss", "May"))
VERBS = ("sees", "has", "likes")
FRENCH = {
    "the": "le", "a": "un", "fine": "bon", "lovely": "joli", "dull": "morne", "grim": "sombre",
    "cat": "chat", "dog": "chien", "bird": "oiseau", "fish": "poisson",
    "sees": "voit", "has": "a", "likes": "aime",
    "Ann": "Anne", "Old": "Vieux", "Tom": "Thomas", "Miss": "Mlle", "May": "Mai",
}  # fmt: skip


@dataclass(frozen=True)
class Sentence:
    """tags: a word class for each token; spans: BIO tags of persons and animals."""

    tokens: list[str]
    tags: list[str]
    spans: list[str]
    mood: str

    @property
    def text(self) -> str:
        return " ".join(self.tokens)

    @property
    def french(self) -> str:
        """Word by word, nouns before their adjectives."""
        words = list(self.tokens)
        for k in range(len(words) - 1):
            if words[k] in MOODS:
                words[k], words[k + 1] = words[k + 1], words[k]
        return " ".join(FRENCH[word] for word in words)

    @property
    def topics(self) -> list[str]:
        """The animals; none may be named."""
        return sorted({token for token in self.tokens if token in NOUNS})


def sentences(count: int, seed: int = 1) -> list[Sentence]:
    """All different: a phrase, a verb, a phrase; a phrase is a person or an animal."""
    draw, sentences_by_text = random.Random(seed), dict[str, Sentence]()
    while len(sentences_by_text) < count:
        adjective = draw.choice(tuple(MOODS))
        noun, other = draw.choice(NOUNS), draw.choice(NOUNS)
        phrases = [
            [
                (draw.choice(DETERMINERS), "DET", "O"),
                (adjective, "ADJ", "O"),
                (noun, "NOUN", "B-ANI"),
            ],
            [(draw.choice(DETERMINERS), "DET", "O"), (other, "NOUN", "B-ANI")],
        ]
        if draw.random() < 0.5:
            name = draw.choice(NAMES)
            inside = ["B-PER"] + ["I-PER"] * (len(name) - 1)
            phrases[1] = [(word, "NAME", tag) for word, tag in zip(name, inside, strict=True)]
        draw.shuffle(phrases)
        steps = [*phrases[0], (draw.choice(VERBS), "VERB", "O"), *phrases[1]]
        words, tags, spans = (list(column) for column in zip(*steps, strict=True))
        sentences_by_text.setdefault(
            " ".join(words), Sentence(words, tags, spans, MOODS[adjective])
        )
    return list(sentences_by_text.values())


ASKED = 4  # rows of an input file


def parted(count: int, seed: int = 1) -> tuple[list[Sentence], list[Sentence]]:
    """Sentences to train on, and others to ask."""
    drawn = sentences(count + ASKED, seed)
    return drawn[:count], drawn[count:]


def write_table(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """As CSV, or with tabs where the file is called .tsv."""
    delimiter = "\t" if path.suffix == ".tsv" else ","
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        table.writerow(names)
        table.writerows(rows)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


# --- texts ---------------------------------------------------------------------------------


def moods(folder: Path) -> None:
    """data.csv: a text and its one label."""
    known, unknown = parted(72)
    write_table(
        folder / "data.csv",
        ["text", "label"],
        ((sentence.text, sentence.mood) for sentence in known),
    )
    write_table(folder / "input.csv", ["text"], ((sentence.text,) for sentence in unknown))


def moods_in_files(folder: Path) -> None:
    """data.tsv, validation.tsv and test.tsv; the input is plain lines."""
    drawn = sentences(80, seed=2)
    parts = {"data": drawn[:48], "validation": drawn[48:62], "test": drawn[62:76]}
    for name, part in parts.items():
        rows = ((sentence.mood, sentence.text) for sentence in part)
        write_table(folder / f"{name}.tsv", ["mood", "words"], rows)
    write_lines(folder / "input.txt", (sentence.text for sentence in drawn[76:]))


def moods_in_groups(folder: Path) -> None:
    """data.csv with a column `book`, and vectors.txt with a vector for most words."""
    known, unknown = parted(96, seed=3)
    rows = ((sentence.text, sentence.mood, f"book {k % 24}") for k, sentence in enumerate(known))
    write_table(folder / "data.csv", ["text", "label", "book"], rows)
    write_table(folder / "input.csv", ["text"], ((sentence.text,) for sentence in unknown))
    draw = random.Random(3)
    words = [*MOODS, *NOUNS, *VERBS]
    lines = (f"{word} " + " ".join(f"{draw.gauss(0, 1):.3f}" for _ in range(4)) for word in words)
    write_lines(folder / "vectors.txt", lines)


def topics(folder: Path) -> None:
    """data.csv: several labels of each row, with | between them."""
    known, unknown = parted(80, seed=4)
    rows = ((sentence.text, "|".join(sentence.topics)) for sentence in known)
    write_table(folder / "data.csv", ["text", "label"], rows)
    write_table(folder / "input.csv", ["text"], ((sentence.text,) for sentence in unknown))


def lengths(folder: Path) -> None:
    """data.csv: a text and a number that follows from it."""
    known, unknown = parted(72, seed=19)
    rows = (
        (sentence.text, len(sentence.text) + 10 * (sentence.mood == "good")) for sentence in known
    )
    write_table(folder / "data.csv", ["text", "score"], rows)
    write_table(folder / "input.csv", ["text"], ((sentence.text,) for sentence in unknown))


def pairs_of_texts(folder: Path) -> None:
    """data.csv: two texts, and whether the second is in French or the same again."""
    pairs_of_rows = [
        (sentence.text, sentence.text if k % 2 else sentence.french, "same" if k % 2 else "french")
        for k, sentence in enumerate(sentences(72 + ASKED, seed=20))
    ]
    write_table(folder / "data.csv", ["first", "second", "label"], pairs_of_rows[:-ASKED])
    write_table(
        folder / "input.csv", ["first", "second"], (row[:2] for row in pairs_of_rows[-ASKED:])
    )


def trees(folder: Path) -> None:
    """data.csv: a tree a line, with a label at each of its nodes."""
    lines = [*dict.fromkeys(row.strip() for row in expressions("logic", 1, "train", 400, 4))]
    write_table(folder / "data.csv", ["tree"], ((row,) for row in lines[:80]))
    write_table(folder / "input.csv", ["tree"], ((row,) for row in lines[80 : 80 + ASKED]))


def prose(folder: Path) -> None:
    """data.txt: a sentence a line."""
    known, unknown = parted(120, seed=5)
    write_lines(folder / "data.txt", (sentence.text for sentence in known))
    write_lines(folder / "input.txt", (sentence.text for sentence in unknown))


# --- tokens with labels ----------------------------------------------------------------------


def tagged_jsonl(folder: Path) -> None:
    known, unknown = parted(60, seed=6)
    rows = ({"tokens": sentence.tokens, "tags": sentence.tags} for sentence in known)
    write_lines(folder / "data.jsonl", map(json.dumps, rows))
    write_lines(
        folder / "input.jsonl", (json.dumps({"tokens": sentence.tokens}) for sentence in unknown)
    )


def tagged_conll(folder: Path) -> None:
    _conll(folder, [sentence.tags for sentence in sentences(60 + ASKED, seed=7)], seed=7)


def spans(folder: Path) -> None:
    _conll(folder, [sentence.spans for sentence in sentences(60 + ASKED, seed=8)], seed=8)


def _conll(folder: Path, labels: Sequence[Sequence[str]], seed: int) -> None:
    """data.conll: a token and its tag on each line, an empty line after each sentence."""
    drawn = sentences(len(labels), seed)
    blocks = [
        "".join(f"{token}\t{tag}\n" for token, tag in zip(sentence.tokens, tags, strict=True))
        for sentence, tags in zip(drawn, labels, strict=True)
    ]
    write_lines(folder / "data.conll", blocks[:-ASKED])
    write_lines(folder / "input.txt", (sentence.text for sentence in drawn[-ASKED:]))


# --- sequences of numbers ----------------------------------------------------------------------


def _walk(draw: random.Random) -> tuple[list[list[float]], str]:
    """Three to six steps of two numbers; rising or falling."""
    label = draw.choice(("rising", "falling"))
    slope = 0.5 if label == "rising" else -0.5
    steps = range(draw.randint(3, 6))
    return [
        [round(slope * t + draw.gauss(0, 0.3), 2), round(draw.random(), 2)] for t in steps
    ], label


def vectors(folder: Path) -> None:
    """data.jsonl: "features" and a label."""
    draw = random.Random(9)
    walks = [_walk(draw) for _ in range(64 + ASKED)]
    rows = ({"features": steps, "label": label} for steps, label in walks[:-ASKED])
    write_lines(folder / "data.jsonl", map(json.dumps, rows))
    questions = ({"features": steps} for steps, _ in walks[-ASKED:])
    write_lines(folder / "input.jsonl", map(json.dumps, questions))


def long_table(folder: Path) -> None:
    """data.csv: a line for each step, `id` tells which lines are one sequence."""
    draw = random.Random(10)
    walks = [(k, *_walk(draw)) for k in range(64 + ASKED)]
    rows = [(f"s{k}", *step, label) for k, steps, label in walks for step in steps]
    known = [row for row in rows if int(row[0][1:]) < 64]
    write_table(folder / "data.csv", ["id", "height", "noise", "label"], known)
    questions = [row[:3] for row in rows if int(row[0][1:]) >= 64]
    write_table(folder / "input.csv", ["id", "height", "noise"], questions)


# --- pairs -------------------------------------------------------------------------------------


def pairs(folder: Path) -> None:
    """data.tsv: a sentence and its translation."""
    known, unknown = parted(80, seed=11)
    write_table(folder / "data.tsv", ["source", "target"], ((s.text, s.french) for s in known))
    write_table(folder / "input.tsv", ["source"], ((sentence.text,) for sentence in unknown))


def parallel_files(folder: Path) -> None:
    """train, validation and test, each in English and, line by line, in French."""
    drawn = sentences(84, seed=12)
    for name, part in {
        "train": drawn[:60],
        "validation": drawn[60:70],
        "test": drawn[70:80],
    }.items():
        write_lines(folder / f"{name}.en", (sentence.text for sentence in part))
        write_lines(folder / f"{name}.fr", (sentence.french for sentence in part))
    write_lines(folder / "input.en", (sentence.text for sentence in drawn[80:]))


# --- series and tables -----------------------------------------------------------------------


def _months(count: int) -> list[str]:
    return [f"{2000 + k // 12}-{1 + k % 12:02}" for k in range(count)]


def series(folder: Path) -> None:
    """data.csv: a season of seven steps with a trend; short.csv: its beginning."""
    draw = random.Random(13)
    values = [10 + 0.1 * t + 3 * math.sin(math.tau * t / 7) + draw.gauss(0, 0.2) for t in range(84)]
    rows = [(t, f"{value:.2f}") for t, value in enumerate(values)]
    write_table(folder / "data.csv", ["step", "value"], rows)
    write_table(folder / "short.csv", ["step", "value"], rows[:50])


def driven_series(folder: Path) -> None:
    """data.csv: sales by day, visitors known up to now, offers known ahead; future.csv: the offers
    of the days after."""
    draw, level, rows = random.Random(14), 10.0, list[tuple[Any, ...]]()
    for day in _months(90 + 3):
        offer, visitors = int(draw.random() < 0.4), 20 + draw.gauss(0, 2)
        level = 0.5 * level + 5 + 3 * offer + draw.gauss(0, 0.3)
        rows.append((day, f"{level:.2f}", f"{visitors:.1f}", offer))
    write_table(folder / "data.csv", ["day", "sales", "visitors", "offer"], rows[:90])
    write_table(folder / "future.csv", ["day", "offer"], ((row[0], row[3]) for row in rows[90:]))


def houses(folder: Path) -> None:
    """data.csv: a price, of numbers and names, some cells of which are empty."""
    draw, rows = random.Random(15), list[tuple[Any, ...]]()
    for _ in range(100 + ASKED):
        area, place = draw.randint(40, 160), draw.choice(("town", "coast", "hills"))
        year = draw.choice(("", "", draw.randint(1900, 2020)))
        price = 2.0 * area + 50 * (place == "coast") + draw.gauss(0, 5)
        rows.append((area, year, place, f"{price:.1f}"))
    names = ["area", "year", "place", "price"]
    write_table(folder / "data.csv", names, rows[:-ASKED])
    write_table(folder / "input.csv", names[:-1], (row[:-1] for row in rows[-ASKED:]))


def flowers(folder: Path) -> None:
    """data.csv: the one class of a row, by two numbers and a name."""
    _flowers(folder, lambda height, width: "tall" if height > 0 else "short")


def flowers_of_several_kinds(folder: Path) -> None:
    """data.csv: the classes of a row, with | between them."""
    _flowers(
        folder, lambda height, width: "|".join(["tall"] * (height > 0) + ["wide"] * (width > 0))
    )


def _flowers(folder: Path, kind: Callable[[float, float], str]) -> None:
    draw, rows = random.Random(16), list[tuple[str, ...]]()
    for _ in range(90 + ASKED):
        height, width = draw.gauss(0, 1), draw.gauss(0, 1)
        rows.append((f"{height:.2f}", f"{width:.2f}", draw.choice("xyz"), kind(height, width)))
    names = ["height", "width", "bed", "kind"]
    write_table(folder / "data.csv", names, rows[:-ASKED])
    write_table(folder / "input.csv", names[:-1], (row[:-1] for row in rows[-ASKED:]))


# --- pictures ----------------------------------------------------------------------------------


def _pictures(count: int, seed: int) -> list[tuple[NDArray[np.uint8], str]]:
    """8 × 8 pixels with a bar across or upright."""
    draw, pictures = np.random.default_rng(seed), []
    for k in range(count):
        pixels, at = draw.integers(0, 60, (8, 8)).astype(np.uint8), int(draw.integers(1, 7))
        kind = ("across", "upright")[k % 2]
        pixels[(at, slice(1, 7)) if kind == "across" else (slice(1, 7), at)] = 255
        pictures.append((pixels, kind))
    return pictures


def picture_folder(folder: Path) -> None:
    """pictures/ with a folder for each class, and input/ with pictures alone."""
    pictures = _pictures(64 + ASKED, seed=17)
    (folder / "input").mkdir()
    for k, (pixels, kind) in enumerate(pictures):
        (folder / "pictures" / kind).mkdir(parents=True, exist_ok=True)
        place = folder / "pictures" / kind if k < 64 else folder / "input"
        write_image(place / f"{k:02}.png", pixels)


def picture_idx(folder: Path) -> None:
    """Pictures and labels as idx files, to train on and to test."""
    pictures = _pictures(80, seed=18)
    for name, part in {"train": pictures[:64], "test": pictures[64:]}.items():
        pixels = np.stack([pixels for pixels, _ in part])
        labels = np.array([kind == "upright" for _, kind in part], np.uint8)
        for kind, values in (("images-idx3", pixels), ("labels-idx1", labels)):
            head = bytes((0, 0, 8, values.ndim)) + struct.pack(f">{values.ndim}I", *values.shape)
            (folder / f"{name}-{kind}-ubyte").write_bytes(head + values.tobytes())


def captioned_shapes(folder: Path, train: int = 40, others: int = 10) -> None:
    """Tables of captions; their pictures, 16 × 16 pixels, lie in pictures/. train, others: how many
    to train on, and in each of the other parts."""
    (folder / "pictures").mkdir()
    for part, count in {"train": train, "validation": others, "test": others}.items():
        rows = []
        for k, scene in enumerate(shapes(1, part, count)):
            rows.append((f"pictures/{part}-{k:02}.png", scene.caption))
            write_image(folder / rows[-1][0], scene.picture[:, 1::3, 1::3])  # (3, 16, 16)
        write_table(folder / f"{part}.tsv", ["file", "caption"], rows)
    write_table(folder / "input.tsv", ["file"], ((name,) for name, _ in rows[:ASKED]))

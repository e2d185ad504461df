"""`ensue train FILE` without settings against scikit-learn, on texts → classes.

    ENSUE_DATA=… python benchmarks/default_texts.py [NAME …]

The outer rows that both are scored on are cut from training files; `imdb-official` alone, which
runs only where it is named, opens an official test file. Peers: TF-IDF of words, and of words and
letters, with LinearSVC and with logistic regression. Printed: accuracy of the default, of its parts
alone, of each peer, the difference to the best peer with its paired 95 % bootstrap interval, and
processor seconds.
"""

from __future__ import annotations

import csv
import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from default_runs import (
    DATA,
    Default,
    Peer,
    clocked,
    described,
    ensue,
    evaluated,
    opened,
    report,
    scratch,
    trained,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.svm import LinearSVC

Rows = list[tuple[str, str]]  # text, label
Split = tuple[Rows, Rows]  # to learn from, to be scored on


def cut(rows: Rows, learned: int, scored: int, seed: int = 7) -> Split:
    rows = sorted(set(rows))
    random.Random(seed).shuffle(rows)
    return rows[scored : scored + learned], rows[:scored]


# --- data ----------------------------------------------------------------------------------------


def polarity() -> Rows:
    folder = DATA / "rt-polarity"
    return [
        (line.strip(), label)
        for label in ("neg", "pos")
        for line in opened(folder / f"rt-polarity.{label}.gz", "cp1252")
        if line.strip()
    ]


def imdb(part: str = "train") -> list[list[str]]:
    lines = opened(DATA / "imdb" / f"imdb.{part}.tsv.gz")
    return [line.split("\t") for line in lines if line]


def reviews(part: str = "train") -> Rows:
    return [(row[3], row[0]) for row in imdb(part)]


def stars() -> Rows:
    """The first 20 words of a review, and its stars in four groups."""
    groups = {"1": "1-2", "2": "1-2", "3": "3-4", "4": "3-4"}
    groups |= {"7": "7-8", "8": "7-8", "9": "9-10", "10": "9-10"}
    return [(" ".join(row[3].split()[:20]), groups[row[1]]) for row in imdb()]


def treebank() -> list[str]:
    return opened(DATA / "ud-english-ewt" / "en_ewt-ud-train.conllu.gz")


def genres() -> Rows:
    """A sentence of the treebank, and where it comes from."""
    sentences_of_genres, genre = [], ""
    for line in treebank():
        if line.startswith("# sent_id = "):
            genre = line.removeprefix("# sent_id = ").split("-")[0]
        elif line.startswith("# text = "):
            sentences_of_genres.append((line.removeprefix("# text = "), genre))
    return sentences_of_genres


def word_tags() -> Rows:
    """A word of the treebank by itself, and its most frequent tag: what letters tell."""
    counts: dict[str, Counter[str]] = {}
    for line in treebank():
        cells = line.split("\t")
        if len(cells) == 10 and cells[0].isdigit() and cells[1].isalpha():
            counts.setdefault(cells[1], Counter())[cells[4]] += 1
    frequent = Counter(tags.most_common(1)[0][0] for tags in counts.values())
    tags = {tag for tag, _ in frequent.most_common(18)}
    both = [(word, tags.most_common(1)[0][0]) for word, tags in counts.items()]
    return [(word, tag) for word, tag in both if tag in tags]


def speakers() -> Rows:
    """A line of a play, and who says it, of the ten that say most."""
    said_lines, who = [], ""
    for line in opened(DATA / "tinyshakespeare" / "input.txt.gz"):
        if line.endswith(":"):
            who = line[:-1]
        elif line:
            said_lines.append((line, who))
    often = {name for name, _ in Counter(speaker for _, speaker in said_lines).most_common(10)}
    return [row for row in said_lines if row[1] in often]


SETS: dict[str, Callable[[], Split]] = {
    "polarity": lambda: cut(polarity(), 8_600, 2_000),
    "polarity-3k": lambda: cut(polarity(), 3_000, 2_000),
    "polarity-1k": lambda: cut(polarity(), 1_000, 2_000),
    "imdb-1k": lambda: cut(reviews(), 1_000, 2_000),
    "imdb-5k": lambda: cut(reviews(), 5_000, 2_000),
    "stars-8k": lambda: cut(stars(), 8_000, 2_000),
    "genres-5k": lambda: cut(genres(), 4_900, 2_000),
    "word-tags": lambda: cut(word_tags(), 10_000, 2_000),
    "speakers": lambda: cut(speakers(), 5_000, 1_500),
    "imdb-23k": lambda: cut(reviews(), 22_800, 2_000),
}
# As they come, sorted by label; opened where they are named, and with peers of words alone.
OFFICIAL: dict[str, Callable[[], Split]] = {
    "imdb-official": lambda: (reviews("train"), reviews("test")),
}


# --- contenders ----------------------------------------------------------------------------------


def words() -> Any:
    return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)


def letters() -> Any:
    return TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)


PEERS: dict[str, Callable[[], Any]] = {
    "words + LinearSVC": lambda: make_pipeline(words(), LinearSVC()),
    "words + logistic": lambda: make_pipeline(words(), LogisticRegression(C=10, max_iter=300)),
    "words, letters + LinearSVC": lambda: make_pipeline(
        make_union(words(), letters()), LinearSVC()
    ),
    "words, letters + logistic": lambda: make_pipeline(
        make_union(words(), letters()), LogisticRegression(C=10, max_iter=300)
    ),
}


def right(guess: list[str], gold: list[str]) -> np.ndarray:
    same = [float(one == other) for one, other in zip(guess, gold, strict=True)]
    return np.stack([same, np.ones(len(same))], 1)


def peer(name: str, learned: Rows, scored: Rows) -> Peer:
    with clocked() as seconds:
        model = PEERS[name]().fit(*zip(*learned, strict=True))
        guess = model.predict([text for text, _ in scored])
    return Peer(name, right(list(guess), [label for _, label in scored]), seconds[0])


def default(learned: Rows, scored: Rows) -> Default:
    with scratch() as folder:
        for name, rows in (("learned", learned), ("scored", scored)):
            with (folder / f"{name}.csv").open("w", newline="") as file:
                csv.writer(file).writerows([("text", "label"), *rows])
        seconds = trained(folder, "learned.csv", "--test", "scored.csv")
        evaluation = evaluated(folder)
        ensue("predict", "run", "scored.csv", "--out", "said.csv", folder=folder)
        with (folder / "said.csv").open(newline="") as file:
            answers = list(csv.DictReader(file))
        column = next(
            name for name in ("label_predicted", "prediction", "label") if name in answers[0]
        )
        guess = [row[column] for row in answers]
        rows = right(guess, [label for _, label in scored])
        return Default(rows, seconds, evaluation["baselines"], described(folder))


def main() -> None:
    for name in sys.argv[1:] or list(SETS):
        learned, scored = {**SETS, **OFFICIAL}[name]()
        tried = [peer_name for peer_name in PEERS if name in SETS or "letters" not in peer_name]
        peers = [peer(peer_of, learned, scored) for peer_of in tried]
        report(f"{name}, {len(learned):,} rows", default(learned, scored), peers)


if __name__ == "__main__":
    main()

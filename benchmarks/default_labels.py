"""`ensue train FILE` without settings against python-crfsuite, on labels of tokens.

    pip install --no-deps --target peers python-crfsuite
    ENSUE_DATA=… PYTHONPATH=peers python benchmarks/default_labels.py [NAME …]

The outer sentences that both are scored on are cut from the training file of UD English EWT;
`tags-official` alone, which runs only where it is named, opens its test file. Spans are made of the
treebank: runs of proper nouns, by the relation of the first of them, with a share of words written
in small letters, as in noisy text. Printed: accuracy or span F1 of the default, of its parts alone,
of CRFsuite, the difference with its paired 95 % bootstrap interval over sentences, and processor
seconds.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from default_runs import (
    DATA,
    Default,
    Peer,
    Score,
    clocked,
    described,
    ensue,
    evaluated,
    mean,
    opened,
    report,
    scratch,
    trained,
)

Sentence = tuple[list[str], list[str]]  # tokens, labels
Split = tuple[list[Sentence], list[Sentence]]
SMALL = 0.3  # share of the words of noisy text that lose their capitals


# --- data ----------------------------------------------------------------------------------------


def treebank(part: str = "train") -> Iterator[list[list[str]]]:
    """The words of each sentence, as the cells of its lines."""
    words: list[list[str]] = []
    for line in opened(DATA / "ud-english-ewt" / f"en_ewt-ud-{part}.conllu.gz"):
        cells = line.split("\t")
        if len(cells) == 10 and cells[0].isdigit():
            words.append(cells)
        elif not line and words:
            yield words
            words = []


def tags(part: str = "train") -> list[Sentence]:
    return [([w[1] for w in words], [w[3] for w in words]) for words in treebank(part)]


def spans() -> list[Sentence]:
    """Runs of proper nouns: as B- and I- with what the first is in its sentence."""
    draw, sentences_with_spans = random.Random(3), []
    for sentence in treebank():
        tokens = [w[1].lower() if draw.random() < SMALL else w[1] for w in sentence]
        labels, kind = [], ""
        for word in sentence:
            if word[3] != "PROPN":
                kind = ""
                labels.append("O")
                continue
            begins = not kind
            kind = kind or _kind(word[7])
            labels.append(f"{'B' if begins else 'I'}-{kind}")
        sentences_with_spans.append((tokens, labels))
    return sentences_with_spans


def _kind(relation: str) -> str:
    plain = relation.split(":")[0]
    return plain if plain in ("nsubj", "obl", "nmod", "compound") else "other"


def cut(rows: list[Sentence], learned: int, scored: int = 1_500) -> Split:
    random.Random(7).shuffle(rows)
    return rows[scored : scored + learned], rows[:scored]


SETS: dict[str, tuple[Callable[[], Split], bool]] = {
    "tags-1k": (lambda: cut(tags(), 1_000), False),
    "spans-1k": (lambda: cut(spans(), 1_000), True),
    "spans-3k": (lambda: cut(spans(), 3_400), True),
    "tags-11k": (lambda: cut(tags(), 11_000), False),
}
OFFICIAL: dict[str, tuple[Callable[[], Split], bool]] = {  # opened where they are named
    "tags-official": (lambda: (tags("train"), tags("test")), False),
}


# --- scores --------------------------------------------------------------------------------------


def right(gold: list[list[str]], predicted: list[list[str]]) -> np.ndarray:
    pairs = list(zip(gold, predicted, strict=True))
    same = [sum(a == b for a, b in zip(*pair, strict=True)) for pair in pairs]
    return np.array([[s, len(g)] for s, (g, _) in zip(same, pairs, strict=True)], float)


def found_spans(labels: list[str]) -> set[tuple[int, int, str]]:
    """First and last step and kind; an I- that follows nothing of its kind begins a span."""
    span_set, begin, kind = set(), 0, ""
    for at, label in enumerate([*labels, "O"]):
        head, _, name = label.partition("-")
        if kind and (head != "I" or name != kind):
            span_set.add((begin, at - 1, kind))
            kind = ""
        if name and not kind:
            begin, kind = at, name
    return span_set


def span_counts(gold: list[list[str]], predicted: list[list[str]]) -> np.ndarray:
    """Spans that are right, and those of both together."""
    both = [(found_spans(g), found_spans(s)) for g, s in zip(gold, predicted, strict=True)]
    return np.array([[len(g & s), len(g) + len(s)] for g, s in both], float)


def f1(sums: np.ndarray) -> float:
    return float(2 * sums[0] / max(sums[1], 1))


# --- contenders ----------------------------------------------------------------------------------


def features(tokens: list[str], at: int) -> list[str]:
    """The usual ones of python-crfsuite's own example, without part-of-speech tags."""
    word = tokens[at]
    names = ["bias", f"w={word.lower()}", f"s3={word[-3:]}", f"s2={word[-2:]}"]
    names += [f"upper={word.isupper()}", f"title={word.istitle()}", f"digit={word.isdigit()}"]
    for off, name in ((-1, "before"), (1, "after")):
        if 0 <= at + off < len(tokens):
            near = tokens[at + off]
            names += [f"{name}:w={near.lower()}", f"{name}:title={near.istitle()}"]
            names.append(f"{name}:upper={near.isupper()}")
        else:
            names.append(f"{name}:none")
    return names


def crfsuite(name: str, settings: dict[str, float], split: Split, scored: Callable) -> Peer:
    import pycrfsuite

    learned, outer = split
    with clocked() as seconds, scratch() as folder:
        trainer = pycrfsuite.Trainer(verbose=False)
        for tokens, labels in learned:
            trainer.append([features(tokens, k) for k in range(len(tokens))], labels)
        trainer.set_params({"feature.possible_transitions": True, **settings})
        trainer.train(str(folder / "model"))
        tagger = pycrfsuite.Tagger()
        tagger.open(str(folder / "model"))
        predicted = [tagger.tag([features(t, k) for k in range(len(t))]) for t, _ in outer]
    return Peer(name, scored([labels for _, labels in outer], predicted), seconds[0])


PEERS = {
    "CRFsuite, c1 1.0, c2 0.001": {"c1": 1.0, "c2": 1e-3, "max_iterations": 50},
    "CRFsuite, c1 0.1, c2 0.1": {"c1": 0.1, "c2": 0.1, "max_iterations": 100},
}


def default(split: Split, scored: Callable) -> Default:
    with scratch() as folder:
        for name, rows in zip(("learned", "scored"), split, strict=True):
            text = "\n\n".join("\n".join(map("\t".join, zip(*r, strict=True))) for r in rows)
            Path(folder / f"{name}.conll").write_text(text + "\n")
        seconds = trained(folder, "learned.conll", "--test", "scored.conll")
        evaluation = evaluated(folder)
        output = ensue("predict", "run", "scored.conll", "--json", folder=folder)
        answers = [json.loads(line)["labels"] for line in output.splitlines() if line.strip()]
        rows = scored([labels for _, labels in split[1]], answers)
        return Default(rows, seconds, evaluation["baselines"], described(folder))


def main() -> None:
    for name in sys.argv[1:] or list(SETS):
        make, is_spans = {**SETS, **OFFICIAL}[name]
        split = make()
        scored = span_counts if is_spans else right
        score: Score = f1 if is_spans else mean
        peers = [crfsuite(key, peer, split, scored) for key, peer in PEERS.items()]
        what = f"{name}, {'span F1' if is_spans else 'accuracy'}"
        report(what, default(split, scored), peers, score)


if __name__ == "__main__":
    main()

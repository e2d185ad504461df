"""Evaluation of captions against those that were expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ensue.tasks.seq2seq.evaluation import Compared, PairEvaluation, Scoring, evaluate_pairs


def evaluate_captions(
    rows: Compared, frequent: str, how: Scoring, attributes: Mapping[str, Sequence[str]]
) -> PairEvaluation:
    """frequent: the caption that is most frequent in training; attributes: words that answer one
    question, of which a caption is right where it has the same ones in the same order."""
    baselines = {"frequent caption": [frequent] * len(rows.expected)}
    found = evaluate_pairs(rows, baselines, how)
    right = {f"{name} right": _right(rows, words) for name, words in attributes.items()}
    known = {name: share for name, share in right.items() if share is not None}
    return replace(found, others={**found.others, **known})


def _right(rows: Compared, words: Sequence[str]) -> float | None:
    """The share of captions in which these words are as expected; None where none is expected."""
    known = frozenset(words)

    def of(text: str) -> list[str]:
        return [word for word in text.split() if word in known]

    pairs = [(of(found), of(text)) for found, text in zip(rows.found, rows.expected, strict=True)]
    if not any(expected for _, expected in pairs):
        return None
    return sum(found == expected for found, expected in pairs) / len(pairs)

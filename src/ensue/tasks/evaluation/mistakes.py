"""Answers beside gold labels, class by class, and the surest mistakes among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.metrics import classes as metrics
from ensue.metrics.answers import ClassAnswers
from ensue.tasks.evaluation.report import ClassRow, Error

WORST = 10
Shown = Callable[[int], tuple[str, str]]  # where an answer was given, and a look at it


def class_rows(names: Sequence[str], counts: NDArray[Any]) -> list[ClassRow]:
    """counts (3, classes): right, gold, predicted."""
    scores = metrics.class_scores(counts)
    rows = zip(names, scores.precision, scores.recall, scores.f1, scores.support, strict=True)
    return [ClassRow(n, float(p), float(r), float(f), int(s)) for n, p, r, f, s in rows]


def surest_mistakes(
    gold: NDArray[np.int64],
    guess: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    names: Sequence[str],
    shown: Shown,
) -> list[Error]:
    """The wrong answers with the highest probability (answers, classes)."""
    sure = np.where(gold != guess, probabilities[np.arange(len(guess)), guess], 0)
    found = []
    for at in np.argsort(-sure, kind="stable")[:WORST]:
        if gold[at] != guess[at]:
            place, text = shown(int(at))
            found.append(Error(place, text, names[gold[at]], names[guess[at]], float(sure[at])))
    return found


def surest_mistaken_sets(
    gold: NDArray[np.int64],
    guess: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    names: Sequence[str],
    shown: Shown,
) -> list[Error]:
    """Of several labels at once, (answers, labels) zeros and ones, the wrong sets with the surest
    mistake in them: a label given, or left out, with the highest probability (answers, labels)."""
    sure = np.where(gold == guess, 0, np.where(guess == 1, probabilities, 1 - probabilities))
    surest = sure.max(1, initial=0)
    found = []
    for at in np.argsort(-surest, kind="stable")[:WORST]:
        if (gold[at] != guess[at]).any():
            wanted, got = (
                ", ".join(name for name, is_there in zip(names, there[at], strict=True) if is_there)
                or "none"
                for there in (gold, guess)
            )
            place, text = shown(int(at))
            found.append(Error(place, text, wanted, got, float(surest[at])))
    return found


def log_loss_of_known(
    gold: NDArray[np.int64], probabilities: NDArray[np.float64]
) -> dict[str, float]:
    """The log loss where gold is one of the classes; a label that no answer can be has no
    probability to take the logarithm of."""
    known = gold < probabilities.shape[1]
    return {"log loss": metrics.log_loss(gold[known], probabilities[known])} if known.any() else {}


def known_answers(
    gold: NDArray[np.int64], predicted: NDArray[np.int64], probabilities: NDArray[np.float64]
) -> ClassAnswers:
    """Answers to rows whose gold is one of the classes that can be answered; of several labels at
    once, all rows and the labels that can be."""
    classes = probabilities.shape[1]
    if gold.ndim == 2:
        return ClassAnswers(gold[:, :classes], predicted[:, :classes], probabilities)
    known = gold < classes
    return ClassAnswers(gold[known], predicted[known], probabilities[known])

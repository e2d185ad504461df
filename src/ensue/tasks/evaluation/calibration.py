"""Calibration of probabilities and intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.metrics import classes as metrics
from ensue.metrics.classes import ClassAnswers
from ensue.tasks.evaluation.report import ClassRow, Error

BINS = 10


class Bin(NamedTuple):
    """Answers of like confidence: how many, what they claimed on average, how many were right."""

    low: float
    high: float
    rows: int
    confidence: float
    accuracy: float


def reliability(
    right: NDArray[Any], confidence: NDArray[np.float64], bins: int = BINS
) -> list[Bin]:
    """Reliability in bins of equal width, each with its upper end; empty bins are left out. For
    calibrated probabilities, accuracy = confidence in every bin. right, confidence (answers,)."""
    sure = np.asarray(confidence, np.float64)
    which = np.clip(np.ceil(sure * bins).astype(np.int64) - 1, 0, bins - 1)
    result = []
    for k in range(bins):
        in_bin = which == k
        if in_bin.any():
            claimed, met = (
                float(sure[in_bin].mean()),
                float(np.asarray(right, float)[in_bin].mean()),
            )
            result.append(Bin(k / bins, (k + 1) / bins, int(in_bin.sum()), claimed, met))
    return result


def reliability_lines(bins: Sequence[Bin]) -> list[str]:
    """As a table for a terminal."""
    lines = ["reliability      rows  confidence  accuracy"]
    for each in bins:
        numbers = f"{each.rows:10,}{each.confidence:12.4f}{each.accuracy:10.4f}"
        lines.append(f"  {each.low:.1f} … {each.high:.1f}{numbers}")
    return lines


class Coverage(NamedTuple):
    """Intervals that claim to hold a share of the values: how many they do hold, how wide they
    are on average."""

    claimed: float
    covered: float
    width: float


def coverage_of(
    values: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64], claimed: float
) -> Coverage:
    """values, low, high: (rows,)."""
    inside = (low <= values) & (values <= high)
    return Coverage(claimed, float(inside.mean()), float((high - low).mean()))


def coverage_lines(coverages: Sequence[Coverage]) -> list[str]:
    return [
        "intervals      nominal   observed  mean width",
        *(
            f"  {'':9}{100 * coverage.claimed:9.0f} %{100 * coverage.covered:9.1f} "
            f"%{coverage.width:12.4g}"
            for coverage in coverages
        ),
    ]


WORST = 10
RowDisplay = Callable[[int], tuple[str, str]]  # where an answer was given, and a look at it


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
    show_row: RowDisplay,
) -> list[Error]:
    """The wrong answers with the highest probability (answers, classes)."""
    sure = np.where(gold != guess, probabilities[np.arange(len(guess)), guess], 0)
    mistakes = []
    for at in np.argsort(-sure, kind="stable")[:WORST]:
        if gold[at] != guess[at]:
            place, text = show_row(int(at))
            mistakes.append(Error(place, text, names[gold[at]], names[guess[at]], float(sure[at])))
    return mistakes


def surest_mistaken_sets(
    gold: NDArray[np.int64],
    guess: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    names: Sequence[str],
    show_row: RowDisplay,
) -> list[Error]:
    """Of several labels at once, (answers, labels) zeros and ones, the wrong sets with the surest
    mistake in them: a label given, or left out, with the highest probability (answers, labels)."""
    sure = np.where(gold == guess, 0, np.where(guess == 1, probabilities, 1 - probabilities))
    surest = sure.max(1, initial=0)
    sets = []
    for at in np.argsort(-surest, kind="stable")[:WORST]:
        if (gold[at] != guess[at]).any():
            expected, got = (
                ", ".join(
                    name for name, is_there in zip(names, label_set[at], strict=True) if is_there
                )
                or "none"
                for label_set in (gold, guess)
            )
            place, text = show_row(int(at))
            sets.append(Error(place, text, expected, got, float(surest[at])))
    return sets


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

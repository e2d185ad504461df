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
    """A bin of answers with similar confidence: their number, mean confidence, and accuracy."""

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
    """The bins as a table for a terminal."""
    lines = ["reliability      rows  confidence  accuracy"]
    for each in bins:
        numbers = f"{each.rows:10,}{each.confidence:12.4f}{each.accuracy:10.4f}"
        lines.append(f"  {each.low:.1f} … {each.high:.1f}{numbers}")
    return lines


class Coverage(NamedTuple):
    """The coverage of intervals: the claimed share of values, the actual share, and the mean
    width."""

    claimed: float
    covered: float
    width: float


def coverage_of(
    values: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64], claimed: float
) -> Coverage:
    """The coverage of intervals. values, low, high: (rows,)."""
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
RowDisplay = Callable[[int], tuple[str, str]]  # the name of a row, and its text


def class_rows(names: Sequence[str], counts: NDArray[Any]) -> list[ClassRow]:
    """A row for each class. counts (3, classes): right, gold, predicted."""
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
    """For multi-label answers, (answers, labels) of zeros and ones: the wrong sets whose worst
    mistake, a label predicted or missing, has the highest probability (answers, labels)."""
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
    """The log loss of rows whose gold label is a known class; other labels have no probability."""
    known = gold < probabilities.shape[1]
    return {"log loss": metrics.log_loss(gold[known], probabilities[known])} if known.any() else {}


def known_answers(
    gold: NDArray[np.int64], predicted: NDArray[np.int64], probabilities: NDArray[np.float64]
) -> ClassAnswers:
    """The answers to rows whose gold label is a known class; for multi-label answers, all rows with
    the known labels."""
    classes = probabilities.shape[1]
    if gold.ndim == 2:
        return ClassAnswers(gold[:, :classes], predicted[:, :classes], probabilities)
    known = gold < classes
    return ClassAnswers(gold[known], predicted[known], probabilities[known])

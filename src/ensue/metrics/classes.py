"""Scores of predicted classes.

gold and predicted are class indices (rows,), or zeros and ones (rows, labels) for multi-label
answers. Scores that depend on counts accept any leading axes: one call scores a thousand resamples
(`bootstrap`). 0/0 is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.errors import DataError


class ClassAnswers(NamedTuple):
    """Answers of a classifier. gold, predicted: class indices (rows,), or zeros and ones (rows,
    labels) for multi-label answers; probabilities (rows, classes)."""

    gold: NDArray[np.int64]
    predicted: NDArray[np.int64]
    probabilities: NDArray[np.float64]


class StepAnswers(NamedTuple):
    """Answers of a labeller. gold, predicted: a label index for each step; names: the names of the
    labels; cost: mean per step."""

    gold: Ragged
    predicted: Ragged
    names: Sequence[str]
    cost: float


class NumberAnswers(NamedTuple):
    """gold, predicted (rows,), in the units of the data; costs (rows,): −log p of each."""

    gold: NDArray[np.float64]
    predicted: NDArray[np.float64]
    costs: NDArray[np.float64]


class TokenAnswers(NamedTuple):
    """The cost of a language model. cost: mean −log p per token."""

    cost: float


class TextAnswers(NamedTuple):
    """Generated texts and their references. tokenize, lowercase: options of sacrebleu; cost: mean
    −log p per token."""

    predicted: Sequence[str]
    references: Sequence[str]
    tokenize: str
    lowercase: bool
    cost: float


Numbers = NDArray[Any]
Floats = NDArray[np.float64]


# --- one class of many -----------------------------------------------------------------------


def accuracy(gold: Numbers, predicted: Numbers) -> float:
    """The share of right rows; a multi-label row is right if all its labels are."""
    _same_shape(gold, predicted)
    right = gold == predicted
    return float(np.mean(right if right.ndim == 1 else right.all(1))) if len(gold) else 0.0


def confusion(gold: Numbers, predicted: Numbers, classes: int) -> NDArray[np.int64]:
    """Counts of gold (row) predicted as (column); shape (classes, classes)."""
    _same_shape(gold, predicted)
    pairs = np.asarray(gold, np.int64) * classes + np.asarray(predicted, np.int64)
    return np.bincount(pairs, minlength=classes * classes).reshape(classes, classes)


def row_counts(gold: Numbers, predicted: Numbers, classes: int) -> NDArray[np.int64]:
    """Right, gold, predicted — for each row and class 0 or 1; shape (rows, 3, classes)."""
    _same_shape(gold, predicted)
    if gold.ndim == 1:
        gold, predicted = (v[:, None] == np.arange(classes) for v in (gold, predicted))
    gold_classes, other = np.asarray(gold, bool), np.asarray(predicted, bool)
    return np.stack([gold_classes & other, gold_classes, other], 1).astype(np.int64)


def class_counts(gold: Numbers, predicted: Numbers, classes: int) -> NDArray[np.int64]:
    """Counts of each class: right, gold, predicted; shape (3, classes)."""
    if np.ndim(gold) == 2:
        return np.asarray(row_counts(gold, predicted, classes).sum(0))
    table = confusion(gold, predicted, classes)
    return np.stack([table.diagonal(), table.sum(1), table.sum(0)])


# --- from counts (…, 3, classes) -------------------------------------------------------------


class ClassScores(NamedTuple):
    """Precision, recall and F1, each (…, classes)."""

    precision: Floats
    recall: Floats
    f1: Floats
    support: Numbers


def class_scores(counts: Numbers) -> ClassScores:
    """right/predicted, right/gold, 2·right/(gold + predicted) of each class."""
    right, gold, predicted = np.moveaxis(np.asarray(counts), -2, 0)
    return ClassScores(
        share(right, predicted), share(right, gold), share(2 * right, gold + predicted), gold
    )


def micro_f1(counts: Numbers) -> Any:
    """F1 of the counts of all classes together. It equals accuracy if each row has one class."""
    return class_scores(np.asarray(counts).sum(-1, keepdims=True)).f1[..., 0]


def macro_f1(counts: Numbers) -> Any:
    """The mean F1 of the classes that occur in gold or predicted."""
    occurs = np.asarray(counts)[..., 1:, :].sum(-2) > 0
    return share((class_scores(counts).f1 * occurs).sum(-1), occurs.sum(-1))


def span_f1(counts: Numbers) -> Any:
    """F1 of span counts (…, 3), right, gold, predicted."""
    return micro_f1(np.asarray(counts)[..., None])


def ratio(sums: Numbers) -> Any:
    """sums[…, 0]/sums[…, 1], such as right steps of all steps."""
    return share(sums[..., 0], sums[..., 1])


def share(part: Any, whole: Any) -> Any:
    """part/whole, and 0 where the whole is 0."""
    part, whole = np.asarray(part, np.float64), np.asarray(whole, np.float64)
    return np.divide(part, whole, out=np.zeros_like(part), where=whole != 0)


# --- of probabilities (rows, classes) --------------------------------------------------------


def log_loss(gold: Numbers, probabilities: Numbers) -> float:
    """−mean log p(gold); for multi-label answers, the mean over rows and labels."""
    tiny = np.finfo(probabilities.dtype).eps
    p = np.clip(np.asarray(probabilities, np.float64), tiny, 1 - tiny)
    if np.ndim(gold) == 2:
        return float(-np.mean(np.where(np.asarray(gold, bool), np.log(p), np.log1p(-p))))
    return float(-np.mean(np.log(p[np.arange(len(gold)), gold])))


def brier(gold: Numbers, probabilities: Numbers) -> float:
    """mean Σ_k (p_k − [k = gold])², halved for two classes, where it is (p_1 − [gold = 1])²."""
    p = np.asarray(probabilities, np.float64)
    indicators = np.arange(p.shape[1]) == np.asarray(gold)[:, None]
    total = float(np.mean(((p - indicators) ** 2).sum(1)))
    return total / 2 if p.shape[1] == 2 else total


def roc_auc(gold: Numbers, scores: Numbers) -> float:
    """The probability that a row of class 1 has a higher score than a row of class 0; ties count
    half."""
    positive = np.asarray(gold, bool)
    ones, zeros = int(positive.sum()), int((~positive).sum())
    if not ones or not zeros:
        raise DataError(f"roc_auc: expected rows of both classes, got {ones} of 1 and {zeros} of 0")
    _, place, times = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(times) - (times - 1) / 2  # ranks from 1; ties get their mean
    return float((ranks[place][positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def calibration_error(gold: Numbers, probabilities: Numbers, bins: int = 15) -> float:
    """Expected calibration error: rows in bins of equal width by the probability of the answer;
    |share right − mean probability| of each bin, weighted by its rows."""
    answer = np.asarray(probabilities).argmax(1)
    sure = np.asarray(probabilities, np.float64).max(1)
    which = np.clip(np.ceil(sure * bins).astype(np.int64) - 1, 0, bins - 1)
    right = np.bincount(which, weights=answer == gold, minlength=bins)
    claimed = np.bincount(which, weights=sure, minlength=bins)
    return float(np.abs(right - claimed).sum() / len(sure))


def _same_shape(gold: Numbers, predicted: Numbers) -> None:
    if np.shape(gold) != np.shape(predicted):
        raise DataError(
            f"expected a prediction for each gold label, got {np.shape(gold)} gold and "
            f"{np.shape(predicted)} predicted"
        )

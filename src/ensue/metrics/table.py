"""The metrics by name: their function, and whether higher is better.

A new metric is a row in the group of its kind of answers. Every task with such answers can then
watch it, and reports it on validation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensue.metrics import classes
from ensue.metrics.bleu import corpus_of
from ensue.metrics.classes import (
    ClassAnswers,
    NumberAnswers,
    StepAnswers,
    TextAnswers,
    TokenAnswers,
)
from ensue.metrics.spans import scheme_of, span_counts

LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class Metric:
    """A metric. function: returns the score of answers of one kind, or None if it does not apply;
    costly: computed only if it is watched."""

    name: str
    higher_is_better: bool
    function: Callable[[Any], float | None]
    costly: bool = False

    def better(self, score: float, best: float | None) -> bool:
        """Whether a score is better than the best so far; equal scores are not."""
        if best is None:
            return True
        return score > best if self.higher_is_better else score < best


def _macro_f1(answers: ClassAnswers) -> float:
    count = answers.probabilities.shape[1]
    return float(classes.macro_f1(classes.class_counts(answers.gold, answers.predicted, count)))


def _span_f1(answers: StepAnswers) -> float | None:
    if scheme_of(answers.names) is None:
        return None
    gold, predicted = (
        [[answers.names[k] for k in labels.row(row)] for row in range(len(labels))]
        for labels in (answers.gold, answers.predicted)
    )
    return float(classes.span_f1(span_counts(gold, predicted).sum(0)))


def _perplexity(answers: TokenAnswers | TextAnswers) -> float:
    return math.exp(min(answers.cost, LARGEST_EXPONENT))


def _exact(answers: TextAnswers) -> float | None:
    pairs = list(zip(answers.predicted, answers.references, strict=True))
    return sum(answer == gold for answer, gold in pairs) / len(pairs) if pairs else None


def _r2(answers: NumberAnswers) -> float | None:
    total = float(((answers.gold - answers.gold.mean()) ** 2).sum())
    return 1 - float(((answers.predicted - answers.gold) ** 2).sum()) / total if total else None


def _corpus(name: str) -> Callable[[TextAnswers], float | None]:
    def score(answers: TextAnswers) -> float | None:
        if not answers.references:
            return None
        bleu = corpus_of(
            answers.predicted,
            answers.references,
            tokenize=answers.tokenize,
            lowercase=answers.lowercase,
        )
        return float(getattr(bleu, name))

    return score


ACCURACY = Metric(
    "accuracy", True, lambda answers: classes.accuracy(answers.gold, answers.predicted)
)
CLASS_METRICS = (
    ACCURACY,
    Metric("cost", False, lambda answers: classes.log_loss(answers.gold, answers.probabilities)),
    Metric("macro_f1", True, _macro_f1),
)
STEP_METRICS = (
    Metric(
        "accuracy",
        True,
        lambda answers: classes.accuracy(answers.gold.values, answers.predicted.values),
    ),
    Metric("cost", False, lambda answers: answers.cost),
    Metric("span_f1", True, _span_f1),
)
NUMBER_METRICS = (
    Metric("cost", False, lambda answers: float(answers.costs.mean())),
    Metric("mae", False, lambda answers: float(np.abs(answers.predicted - answers.gold).mean())),
    Metric(
        "rmse", False, lambda answers: math.sqrt(((answers.predicted - answers.gold) ** 2).mean())
    ),
    Metric("r2", True, _r2),
)
TOKEN_METRICS = (
    Metric("perplexity", False, _perplexity),
    Metric("cost", False, lambda answers: answers.cost),
)
TEXT_METRICS = (
    Metric("cost", False, lambda answers: answers.cost),
    Metric("perplexity", False, _perplexity),
    Metric("exact", True, _exact),
    Metric("bleu", True, _corpus("bleu"), costly=True),
    Metric("chrf", True, _corpus("chrf"), costly=True),
)
ERROR = Metric(
    "error", False, lambda answers: float(((answers.predicted - answers.gold) ** 2).mean())
)
F1 = Metric("f1", True, lambda answers: float(classes.micro_f1(answers)))

METRICS = {
    metric.name: metric
    for metric in (
        *CLASS_METRICS,
        *STEP_METRICS,
        *NUMBER_METRICS,
        *TOKEN_METRICS,
        *TEXT_METRICS,
        ERROR,
        F1,
    )
}


def further_scores(
    metrics: tuple[Metric, ...], answers: Any, known: Collection[str]
) -> dict[str, float]:
    """The scores that an evaluation adds: every metric that is not yet known and needs no search; a
    known cost is listed as the log loss."""
    left = (
        metric for metric in metrics if not metric.costly and metric.name not in (*known, "cost")
    )
    scores = {metric.name: metric.function(answers) for metric in left}
    return {name: score for name, score in scores.items() if score is not None}


def scores_of(metrics: tuple[Metric, ...], answers: Any, watch: str) -> dict[str, float]:
    """The validation scores of answers; costly metrics only if a costly one is watched."""
    scores = {}
    for metric in metrics:
        if metric.costly and not (watch == metric.name or METRICS[watch].costly):
            continue
        score = metric.function(answers)
        if score is not None:
            scores[metric.name] = score
    return scores

"""The metrics by name: which way is better, and the function.

A new metric is one row of the group of its kind of answers: every task with such answers can then
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
    """function: the score of answers of one kind, None where these have none; costly: computed
    only where it is watched."""

    name: str
    higher_is_better: bool
    function: Callable[[Any], float | None]
    costly: bool = False

    def better(self, score: float, best: float | None) -> bool:
        """Whether a score beats the best so far; of equals the earlier one stays."""
        if best is None:
            return True
        return score > best if self.higher_is_better else score < best


def _macro_f1(own: ClassAnswers) -> float:
    count = own.probabilities.shape[1]
    return float(classes.macro_f1(classes.class_counts(own.gold, own.predicted, count)))


def _span_f1(own: StepAnswers) -> float | None:
    if scheme_of(own.names) is None:
        return None
    gold, predicted = (
        [[own.names[k] for k in labels.row(row)] for row in range(len(labels))]
        for labels in (own.gold, own.predicted)
    )
    return float(classes.span_f1(span_counts(gold, predicted).sum(0)))


def _perplexity(own: TokenAnswers | TextAnswers) -> float:
    return math.exp(min(own.cost, LARGEST_EXPONENT))


def _exact(own: TextAnswers) -> float | None:
    pairs = list(zip(own.predicted, own.references, strict=True))
    return sum(found == wanted for found, wanted in pairs) / len(pairs) if pairs else None


def _r2(own: NumberAnswers) -> float | None:
    total = float(((own.gold - own.gold.mean()) ** 2).sum())
    return 1 - float(((own.predicted - own.gold) ** 2).sum()) / total if total else None


def _corpus(name: str) -> Callable[[TextAnswers], float | None]:
    def score(own: TextAnswers) -> float | None:
        if not own.references:
            return None
        found = corpus_of(
            own.predicted, own.references, tokenize=own.tokenize, lowercase=own.lowercase
        )
        return float(getattr(found, name))

    return score


ACCURACY = Metric("accuracy", True, lambda own: classes.accuracy(own.gold, own.predicted))
CLASS_METRICS = (
    ACCURACY,
    Metric("cost", False, lambda own: classes.log_loss(own.gold, own.probabilities)),
    Metric("macro_f1", True, _macro_f1),
)
STEP_METRICS = (
    Metric("accuracy", True, lambda own: classes.accuracy(own.gold.values, own.predicted.values)),
    Metric("cost", False, lambda own: own.cost),
    Metric("span_f1", True, _span_f1),
)
NUMBER_METRICS = (
    Metric("cost", False, lambda own: float(own.costs.mean())),
    Metric("mae", False, lambda own: float(np.abs(own.predicted - own.gold).mean())),
    Metric("rmse", False, lambda own: math.sqrt(((own.predicted - own.gold) ** 2).mean())),
    Metric("r2", True, _r2),
)
TOKEN_METRICS = (
    Metric("perplexity", False, _perplexity),
    Metric("cost", False, lambda own: own.cost),
)
TEXT_METRICS = (
    Metric("cost", False, lambda own: own.cost),
    Metric("perplexity", False, _perplexity),
    Metric("exact", True, _exact),
    Metric("bleu", True, _corpus("bleu"), costly=True),
    Metric("chrf", True, _corpus("chrf"), costly=True),
)
ERROR = Metric("error", False, lambda own: float(((own.predicted - own.gold) ** 2).mean()))
F1 = Metric("f1", True, lambda own: float(classes.micro_f1(own)))

METRICS = {
    own.name: own
    for own in (
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
    """What an evaluation adds to the scores that it has: every metric that is none of these and
    costs no search; a cost stands there as the log loss."""
    left = (own for own in metrics if not own.costly and own.name not in (*known, "cost"))
    found = {own.name: own.function(answers) for own in left}
    return {name: score for name, score in found.items() if score is not None}


def scores_of(metrics: tuple[Metric, ...], answers: Any, watch: str) -> dict[str, float]:
    """What validation says of answers; a costly metric only where it is the one watched."""
    found = {}
    for metric in metrics:
        if metric.costly and not (watch == metric.name or METRICS[watch].costly):
            continue
        score = metric.function(answers)
        if score is not None:
            found[metric.name] = score
    return found

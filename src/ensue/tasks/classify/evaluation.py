"""Evaluation of the classes of rows against gold labels."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ensue.metrics import classes as metrics
from ensue.metrics.table import CLASS_METRICS, further_scores
from ensue.tasks.classify.learned import class_targets
from ensue.tasks.classify.scoring import ClassifierModel, Floats, decided_of
from ensue.tasks.evaluation.bootstrap import RowSums, intervals
from ensue.tasks.evaluation.mistakes import (
    class_rows,
    known_answers,
    log_loss_of_known,
    surest_mistaken_sets,
    surest_mistakes,
)
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.rows.labels import unknown_rows, with_unknown
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.shown import shown_of
from ensue.tasks.targets.classes import THRESHOLD
from ensue.tasks.targets.decision import Decision
from ensue.tasks.task import Asked

T = TypeVar("T", np.int64, np.float64)


def evaluated(
    probabilities: Floats,
    part: Part,
    model: ClassifierModel,
    asked: Asked,
    alone: Floats | None = None,
) -> Evaluation:
    """probabilities (rows, classes), of what answers; alone: of the networks, where a linear model
    answers with them."""
    learned, seed = model.learned, model.train.seed
    names = with_unknown(part, learned.labels)
    gold = class_targets(part, names, model.model.several)
    decision = Decision.of(asked, learned.labels, model.model.several)
    if model.model.several:
        guess = _among(decision.marks(probabilities, THRESHOLD), len(names))
    else:
        guess = decision.classes(probabilities, decided_of(probabilities, model))
    counts = metrics.row_counts(gold, guess, len(names))
    right = (gold == guess) if gold.ndim == 1 else (gold == guess).all(1)
    pairs = np.stack([right, np.ones(len(right))], 1)
    shown = shown_of(part)
    if gold.ndim == 1:
        others = log_loss_of_known(gold, probabilities)
        others["calibration error"] = metrics.calibration_error(gold, probabilities)
        others |= decision.scores(right, decision.answered(probabilities, guess))
        worst = surest_mistakes(gold, guess, probabilities, names, shown)
        confusion = metrics.confusion(gold, guess, len(names)).tolist()
    else:
        others = {"log loss": metrics.log_loss(gold[:, : len(learned.labels)], probabilities)}
        every = _among(probabilities, len(names))
        worst = surest_mistaken_sets(gold, guess, every, names, shown)
        confusion = []
    sums = {"accuracy": RowSums("ratio", pairs), "macro_f1": RowSums("macro_f1", counts)}
    others |= further_scores(CLASS_METRICS, known_answers(gold, guess, probabilities), sums)
    baselines = _baselines(part, model, gold)
    if alone is not None:
        own = _among(decided_of(alone, model), len(names))
        baselines["network alone"] = metrics.accuracy(gold, own)
    return Evaluation(
        rows=len(part),
        steps=len(part),
        scores=intervals(sums, seed),
        others=others,
        baselines=baselines,
        classes=class_rows(names, counts.sum(0)),
        confusion=confusion,
        worst=worst,
        unknown=len(unknown_rows(part, learned.labels.tokens)),
        notes=decision.lines(),
        sums=sums,
    )


def _baselines(part: Part, model: ClassifierModel, gold: NDArray[np.int64]) -> dict[str, float]:
    learned = model.learned
    most = int(np.argmax(learned.labels.counts))
    if gold.ndim == 1:
        found = {"majority class": metrics.accuracy(gold, np.full_like(gold, most))}
    else:
        found = {"no label": metrics.accuracy(gold, np.zeros_like(gold))}
    linear: Floats | None = None
    if learned.text_linear is not None:
        z = learned.text_scores(part)
        linear = (z.sigmoid() if model.model.several else z.softmax(1)).numpy()
    elif learned.linear is not None:
        linear = learned.linear.probabilities(learned.ngram_inputs(part)).astype(np.float64)
    if linear is not None:
        guess = _among(decided_of(linear, model), gold.shape[-1])
        found["linear n-grams"] = metrics.accuracy(gold, guess)
    return found


def _among(guess: NDArray[T], labels: int) -> NDArray[T]:
    """Of several labels (rows, known), zeros for those that are not known; classes as they are."""
    if guess.ndim == 1:
        return guess
    return np.pad(guess, ((0, 0), (0, labels - guess.shape[1])))

"""What is to be said of answers whose truth is known: scores, classes, the surest mistakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.models import metrics
from ensue.models.bootstrap import Interval, bootstrap
from ensue.models.evaluation import ClassRow, Error, Evaluation
from ensue.models.spans import scheme_of, span_counts

WORST = 10
Shown = Callable[[int], tuple[str, str]]  # where an answer was given, and a look at it


def class_rows(names: Sequence[str], counts: NDArray[Any]) -> list[ClassRow]:
    """counts (3, classes): right, gold, predicted."""
    own = metrics.class_scores(counts)
    rows = zip(names, own.precision, own.recall, own.f1, own.support, strict=True)
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
                ", ".join(name for name, own in zip(names, there[at], strict=True) if own) or "none"
                for there in (gold, guess)
            )
            place, text = shown(int(at))
            found.append(Error(place, text, wanted, got, float(surest[at])))
    return found


# --- of steps --------------------------------------------------------------------------------


class StepAnswers(NamedTuple):
    """gold, guess: a label number for each step, gold also numbers that no answer can be;
    probabilities (steps, labels)."""

    gold: Ragged
    guess: Ragged
    probabilities: NDArray[np.float64]

    def right(self) -> NDArray[np.int64]:
        """(rows,): how many steps of each row are right."""
        total = np.concatenate([[0], np.cumsum(self.gold.values == self.guess.values)])
        return np.asarray(np.diff(total[self.gold.starts]), np.int64)


def log_loss_of_known(
    gold: NDArray[np.int64], probabilities: NDArray[np.float64]
) -> dict[str, float]:
    """The log loss where gold is one of the classes; a label that no answer can be has no
    probability to take the logarithm of."""
    known = gold < probabilities.shape[1]
    return {"log loss": metrics.log_loss(gold[known], probabilities[known])} if known.any() else {}


def spans_counted(names: Sequence[str], gold: Ragged, guess: Ragged) -> NDArray[np.int64]:
    """(rows, 3): spans right, in the gold, predicted."""
    return span_counts(tags_of_rows(names, gold), tags_of_rows(names, guess))


def tags_of_rows(names: Sequence[str], labels: Ragged) -> list[list[str]]:
    return [[names[k] for k in labels.row(row)] for row in range(len(labels))]


def judge_steps(
    names: Sequence[str],
    given: StepAnswers,
    baselines: Mapping[str, Ragged],
    unknown: NDArray[np.bool_],
    shown: Shown,
    seed: int,
) -> Evaluation:
    """names: those of training, then those of gold alone; baselines: the labels that others give;
    unknown (steps,): words that training had not."""
    gold, guess, known = given.gold, given.guess, given.probabilities.shape[1]
    spans = scheme_of(names[:known]) is not None
    scores: dict[str, Interval] = {}
    if spans:
        scores["span F1"] = bootstrap(spans_counted(names, gold, guess), metrics.span_f1, seed=seed)
    pairs = np.stack([given.right(), gold.lengths], 1)
    scores["accuracy"] = bootstrap(pairs, metrics.ratio, seed=seed)
    totals = metrics.class_counts(gold.values, guess.values, len(names))
    others = {"macro-F1": float(metrics.macro_f1(totals))}
    others |= log_loss_of_known(gold.values, given.probabilities)
    if unknown.any():
        others["on unknown words"] = float((gold.values == guess.values)[unknown].mean())
    compared = {}
    for name, other in baselines.items():
        if spans:
            compared[name] = float(metrics.span_f1(spans_counted(names, gold, other).sum(0)))
        else:
            compared[name] = metrics.accuracy(gold.values, other.values)
    return Evaluation(
        rows=len(gold),
        steps=len(gold.values),
        scores=scores,
        others=others,
        baselines=compared,
        classes=class_rows(names, totals),
        confusion=metrics.confusion(gold.values, guess.values, len(names)).tolist(),
        worst=surest_mistakes(gold.values, guess.values, given.probabilities, names, shown),
        unknown=sum(bool((gold.row(row) >= known).any()) for row in range(len(gold))),
    )

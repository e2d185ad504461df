"""Decision rules: thresholds of a question, and abstention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.data.vocabulary import Vocabulary
from ensue.errors import OptionError, unknown

Floats = NDArray[np.float64]
Guess = NDArray[np.int64]
POSITIVE = ("positive", "pos", "yes", "y", "true", "1")
RARE = 0.4  # share of rows below which one of two classes is a minority
THRESHOLD, ABSTAIN = "threshold", "abstain_below"  # names in a question's options
NO_THRESHOLDS: Mapping[int, float] = {}


@dataclass(frozen=True)
class Decision:
    """The choice of an answer. thresholds: the minimum probability to predict a label, by the
    label's index; abstain_below: answers with a lower probability are left empty. labels: the names
    of the labels.

    >>> decision = Decision(("no", "yes"), {1: 0.7})
    >>> decision.classes(np.array([[0.4, 0.6], [0.2, 0.8]]), np.array([1, 1])).tolist()
    [0, 1]
    """

    labels: Sequence[str]
    thresholds: Mapping[int, float] = field(default_factory=dict)
    abstain_below: float | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any], labels: Vocabulary, several: bool = False) -> Decision:
        """The threshold of a request: one number, or numbers by label. several: a row may have
        several labels, each decided separately."""
        names, below = labels.tokens, options.get(ABSTAIN)
        if below is not None and several:
            raise OptionError(
                "abstain-below: a row may have several labels here, each with a probability of its "
                "own; use the threshold of labels instead"
            )
        if below is not None:
            below = _probability("abstain-below", below)
        threshold = options.get(THRESHOLD)
        if threshold is None:
            return cls(names, {}, below)
        by_label = _by_label(threshold)
        if isinstance(by_label, Mapping):
            return cls(names, {_number(n, names): value for n, value in by_label.items()}, below)
        if several:
            return cls(names, dict.fromkeys(range(len(names)), by_label), below)
        return cls(names, {_positive(labels, by_label): by_label}, below)

    def classes(self, p: Floats, usual: Guess) -> Guess:
        """The classes (rows,) from p (rows, classes). usual: the classes predicted without
        thresholds."""
        if not self.thresholds:
            return usual
        limits = np.full(p.shape[1], np.inf)
        limits[[*self.thresholds]] = [*self.thresholds.values()]
        reached, free = p >= limits, np.isinf(limits)
        least = np.where(reached.any(1, keepdims=True), reached, free[None] | (not free.any()))
        return np.asarray(np.where(least, p, -1.0).argmax(1))

    def marks(self, p: Floats, usual: float) -> Guess:
        """(rows, labels) of zeros and ones from p. usual: the threshold of the other labels."""
        marked = p > usual
        for k, least in self.thresholds.items():
            marked[:, k] = p[:, k] >= least
        return marked.astype(np.int64)

    def answered(
        self, p: Floats, guess: Guess, usual: Mapping[int, float] = NO_THRESHOLDS
    ) -> NDArray[np.bool_]:
        """Whether the answer is probable enough to be given; shape (rows,). usual: thresholds of
        the model, if the question has none. For a class with threshold t, the neutral probability
        is t instead of 1/2, so its odds are divided by the odds of t."""
        if self.abstain_below is None:
            return np.ones(len(p), bool)
        sure = np.array(p, np.float64)
        for k, t in (self.thresholds or usual).items():
            weight = p[:, k] * (1 - t), (1 - p[:, k]) * t
            sure[:, k] = weight[0] / np.maximum(weight[0] + weight[1], 1e-300)
            if p.shape[1] == 2 and len(self.thresholds or usual) == 1:
                sure[:, 1 - k] = 1 - sure[:, k]
        return np.asarray(sure[np.arange(len(p)), guess] >= self.abstain_below)

    def scores(self, right: NDArray[np.bool_], answered: NDArray[np.bool_]) -> dict[str, float]:
        """The scores: coverage, the share of answered rows, and their accuracy."""
        if self.abstain_below is None:
            return {}
        by_name = {"coverage": float(answered.mean())}
        if answered.any():
            by_name["accuracy answered"] = float(right[answered].mean())
        return by_name

    def lines(self) -> list[str]:
        """Lines on the decision rule, for the user."""
        texts = [
            f"answered with {self.labels[k]!r} from probability {least:.2f} on"
            for k, least in self.thresholds.items()
        ]
        if self.abstain_below is not None:
            note = ", counted from the threshold" * bool(self.thresholds)
            texts.append(f"no answer below probability {self.abstain_below:.2f}{note}")
        return texts


def rarer(labels: Vocabulary) -> int:
    """The class that the training part has least of."""
    return int(np.argmin(labels.counts))


def _positive(labels: Vocabulary, threshold: float) -> int:
    """The class that a single threshold such as 0.7 is meant for: of two classes the one with a
    name such as yes, else a clearly rarer one. Raises an error if neither decides, and for more
    than two classes."""
    names = labels.tokens
    named = [k for k, name in enumerate(names) if name.lower() in POSITIVE]
    if len(names) == 2 and len(named) == 1:
        return named[0]
    rare = rarer(labels)
    if len(names) == 2 and labels.counts[rare] < RARE * sum(labels.counts):
        return rare
    pairs = " or ".join(f"{name}={threshold:g}" for name in names[:2])
    raise OptionError(
        f"threshold: which of the {len(names)} classes is it for? Write its label, {pairs}"
    )


def refuse_decision(options: Mapping[str, Any]) -> None:
    """Raises an error for decision options if answers are numbers."""
    for word in (THRESHOLD, ABSTAIN):
        if word in options:
            raise OptionError(
                f"{word.replace('_', '-')}: the answers of this model are numbers with intervals, "
                "not classes with probabilities; leave it out"
            )


def _by_label(threshold: Any) -> float | dict[str, float]:
    """Parses 0.7, "0.7", "yes=0.7,no=0.4" or the same as a mapping."""
    if isinstance(threshold, str) and "=" in threshold:
        threshold = dict(pair.rpartition("=")[::2] for pair in threshold.split(","))
    if isinstance(threshold, Mapping):
        return {name.strip(): _probability(THRESHOLD, value) for name, value in threshold.items()}
    return _probability(THRESHOLD, threshold)


def _probability(word: str, value: Any) -> float:
    try:
        probability = float(value)
    except (TypeError, ValueError):
        probability = np.nan
    if not 0 <= probability <= 1:
        more = ", or label=0.7" if word == THRESHOLD else ""
        raise OptionError(f"{word}: expected a probability from 0 to 1{more}, got {value!r}")
    return probability


def _number(name: str, names: Sequence[str]) -> int:
    if name not in names:
        raise unknown("label", name, names)
    return list(names).index(name)

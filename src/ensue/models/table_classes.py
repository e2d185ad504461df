"""What a model of tables predicts: one class of many, or several labels at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError
from ensue.models import metrics
from ensue.models.bootstrap import bootstrap
from ensue.models.calibration import reliability, reliability_lines
from ensue.models.classifier import THRESHOLD, Classified
from ensue.models.collect import Collected, Numbers
from ensue.models.distributions import Bernoulli, Categorical, Distribution
from ensue.models.evaluation import Evaluation
from ensue.models.judge import class_rows, log_loss_of_known, surest_mistakes
from ensue.models.labels import label_numbers, learned_labels, unknown_rows, with_unknown
from ensue.models.table_targets import Asked, Outputs

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LabelTarget:
    """Labels that were learned from the training part, a number of the output for each."""

    labels: Vocabulary
    distribution: ClassVar[Distribution]

    @classmethod
    def learn(cls, train: Collected, numbers: Numbers) -> Self:
        return cls(learned_labels(train, numbers))

    @property
    def width(self) -> int:
        return len(self.labels)

    answers_wide = width

    def cost(self, z: Tensor, y: Tensor) -> Tensor:
        return self.distribution.cost(z, y)

    def facts(self) -> dict[str, Any]:
        return {"labels": self.labels.to_dict()}

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> Self:
        return cls(Vocabulary.from_dict(facts["labels"]))


@dataclass(frozen=True)
class ClassTarget(LabelTarget):
    """One class of two or more."""

    distribution: ClassVar[Distribution] = Categorical()
    kind: ClassVar[str] = "class"
    regression: ClassVar[str] = "softmax"

    def encode(self, part: Collected, numbers: Numbers) -> NDArray[np.int64]:
        return classes_of(part, numbers, self.labels.tokens)

    def probabilities(self, outputs: Outputs) -> Floats:
        """(rows, classes), the mean over the members."""
        return np.asarray(np.mean([z.double().softmax(-1).numpy() for z in outputs], 0))

    def score(self, z: Tensor, y: Tensor) -> dict[str, float]:
        gold, guess = y.numpy(), z.argmax(-1).numpy()
        counts = metrics.class_counts(gold, guess, self.width)
        return {
            "cost": float(self.cost(z, y).mean()),
            "accuracy": metrics.accuracy(gold, guess),
            "macro_f1": float(metrics.macro_f1(counts)),
        }

    def answers(self, outputs: Outputs) -> list[Classified]:
        found = []
        for own in self.probabilities(outputs):
            shown = _by_probability(self.labels, own)
            label = next(iter(shown))
            found.append(Classified(label, (label,), shown))
        return found

    def judge(self, asked: Asked) -> Evaluation:
        part, numbers = asked.part, asked.numbers
        names = with_unknown(part, numbers, self.labels)
        gold = classes_of(part, numbers, names)
        p = self.probabilities(asked.outputs)
        guess = p.argmax(1)
        counts = metrics.row_counts(gold, guess, len(names))
        right = np.stack([gold == guess, np.ones(len(gold))], 1)
        others = log_loss_of_known(gold, p)
        others["Brier"] = metrics.brier(gold, p)
        if len(names) == 2 and len(set(gold.tolist())) == 2:
            others["AUC"] = metrics.roc_auc(gold, p[:, 1])
        others["calibration error"] = metrics.calibration_error(gold, p)
        most = int(np.argmax(self.labels.counts))
        linear = asked.linear.argmax(-1).numpy()
        return Evaluation(
            rows=len(gold),
            steps=len(gold),
            scores={
                "accuracy": bootstrap(right, metrics.ratio, seed=asked.seed),
                "macro-F1": bootstrap(counts, metrics.macro_f1, seed=asked.seed),
            },
            others=others,
            baselines={
                "majority class": metrics.accuracy(gold, np.full_like(gold, most)),
                "linear model": metrics.accuracy(gold, linear),
            },
            classes=class_rows(names, counts.sum(0)),
            confusion=metrics.confusion(gold, guess, len(names)).tolist(),
            worst=surest_mistakes(gold, guess, p, names, asked.shown),
            unknown=len(unknown_rows(part, self.labels.tokens, numbers)),
            notes=reliability_lines(reliability(gold == guess, p.max(1))),
        )

    def described(self) -> str:
        return f"one of {_listed(self.labels)}"


@dataclass(frozen=True)
class SeveralTarget(LabelTarget):
    """Any of two labels or more, each there or not."""

    distribution: ClassVar[Distribution] = Bernoulli()
    kind: ClassVar[str] = "several"
    regression: ClassVar[str] = "logistic"

    def encode(self, part: Collected, numbers: Numbers) -> NDArray[np.float32]:
        return _marks(part, numbers, self.labels.tokens).astype(np.float32)

    def probabilities(self, outputs: Outputs) -> Floats:
        return np.asarray(np.mean([z.double().sigmoid().numpy() for z in outputs], 0))

    def score(self, z: Tensor, y: Tensor) -> dict[str, float]:
        gold, guess = y.numpy() > 0, z.numpy() > 0
        counts = metrics.class_counts(gold, guess, self.width)
        return {
            "cost": float(self.cost(z, y).mean()),
            "accuracy": metrics.accuracy(gold, guess),
            "macro_f1": float(metrics.macro_f1(counts)),
        }

    def answers(self, outputs: Outputs) -> list[Classified]:
        found = []
        for own in self.probabilities(outputs):
            there = zip(self.labels.tokens, own, strict=True)
            kept = tuple(name for name, p in there if p > THRESHOLD)
            found.append(Classified("", kept, _by_probability(self.labels, own)))
        return found

    def judge(self, asked: Asked) -> Evaluation:
        part, numbers, known = asked.part, asked.numbers, len(self.labels)
        names = with_unknown(part, numbers, self.labels)
        gold = _marks(part, numbers, names)
        p = np.pad(self.probabilities(asked.outputs), ((0, 0), (0, len(names) - known)))
        guess = (p > THRESHOLD).astype(np.int64)
        counts = metrics.row_counts(gold, guess, len(names))
        right = np.stack([(gold == guess).all(1), np.ones(len(gold))], 1)
        linear = np.zeros_like(gold)
        linear[:, :known] = asked.linear.numpy() > 0
        sure = np.where(guess > 0, p, 1 - p)
        return Evaluation(
            rows=len(gold),
            steps=len(gold),
            scores={
                "accuracy": bootstrap(right, metrics.ratio, seed=asked.seed),
                "macro-F1": bootstrap(counts, metrics.macro_f1, seed=asked.seed),
            },
            others={"log loss": metrics.log_loss(gold[:, :known], p[:, :known])},
            baselines={
                "no label": metrics.accuracy(gold, np.zeros_like(gold)),
                "linear model": metrics.accuracy(gold, linear),
            },
            classes=class_rows(names, counts.sum(0)),
            confusion=(),
            worst=(),
            unknown=len(unknown_rows(part, self.labels.tokens, numbers)),
            notes=reliability_lines(reliability((gold == guess).ravel(), sure.ravel())),
        )

    def described(self) -> str:
        return f"any of {_listed(self.labels)}"


def classes_of(part: Collected, numbers: Numbers, labels: Sequence[str]) -> NDArray[np.int64]:
    """(rows,): the number of each row's one label."""
    assert part.labels is not None
    if len(wrong := np.flatnonzero(part.labels.lengths != 1)):
        row = int(wrong[0])
        raise DataError(
            f"{part.names[row]}: expected one label, got {part.labels.lengths[row]}; for several "
            "labels at once set model.target = several"
        )
    return label_numbers(part, numbers, labels)


def _marks(part: Collected, numbers: Numbers, labels: Sequence[str]) -> NDArray[np.int64]:
    """(rows, labels) of zeros and ones."""
    assert part.labels is not None
    found = np.zeros((len(part), len(labels)), np.int64)
    rows = np.repeat(np.arange(len(part)), part.labels.lengths)
    found[rows, label_numbers(part, numbers, labels)] = 1
    return found


def _by_probability(labels: Vocabulary, p: Floats) -> dict[str, float]:
    return {labels.tokens[k]: float(p[k]) for k in np.argsort(-p, kind="stable")}


def _listed(labels: Vocabulary) -> str:
    names = labels.tokens
    return ", ".join(names[:6]) + ", …" * (len(names) > 6)

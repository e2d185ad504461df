"""Targets that are classes: one class, or several labels at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError
from ensue.metrics import classes as metrics
from ensue.metrics.classes import ClassAnswers
from ensue.metrics.table import CLASS_METRICS, Metric, further_scores, scores_of
from ensue.tasks.abilities import NOTHING, RequestOptions
from ensue.tasks.baselines.mixture import (
    EQUAL,
    BaselineMixture,
    FirstGuess,
    fitted_mixture,
)
from ensue.tasks.blocks.distributions import Bernoulli, Categorical, Distribution
from ensue.tasks.blocks.heads import BernoulliHead, CategoricalHead, Head, balanced
from ensue.tasks.declarations import IN_FACTS, Labels, Range
from ensue.tasks.evaluation.bootstrap import RowSums, intervals
from ensue.tasks.evaluation.calibration import (
    class_rows,
    known_answers,
    log_loss_of_known,
    reliability,
    reliability_lines,
    surest_mistaken_sets,
    surest_mistakes,
)
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.explaining.measures import (
    THRESHOLD,
    ExplainedOutput,
    label_number,
    labels_there,
    odds_of,
    odds_of_scores,
)
from ensue.tasks.explaining.methods import against_others
from ensue.tasks.exported import Step
from ensue.tasks.rows.labels import label_numbers, learned_labels, unknown_rows, with_unknown
from ensue.tasks.rows.part import LabelledPart
from ensue.tasks.targets.decision import NO_THRESHOLDS, Decision, rarer
from ensue.tasks.targets.exported import Answering, Probabilities
from ensue.tasks.targets.target import (
    Abstained,
    Classified,
    NumberSettings,
    Outputs,
    Target,
    TargetOutputs,
)

Floats = NDArray[np.float64]


TRIED = np.exp(np.linspace(-1.5, 1.5, 121))
DOUBT = 2.0  # weight of (log T)²


@torch.no_grad()
def temperature(outputs: Sequence[Tensor], targets: Tensor) -> float:
    """Temperature T with the lowest cost of p = softmax(z/T), the mean over members: Σ −log p_y on
    rows outside the training part, plus 2·(log T)², so that few rows change it only little.

    outputs: z (rows, classes) of each member; targets (rows,): class indices."""
    costs = []
    for divisor in TRIED:
        p = torch.stack([(z.double() / divisor).softmax(-1) for z in outputs]).mean(0)
        right = p.gather(1, targets[:, None]).clamp(min=torch.finfo(p.dtype).tiny)
        costs.append(float(-right.log().sum()) + DOUBT * np.log(divisor) ** 2)
    return float(TRIED[int(np.argmin(costs))])


@dataclass(frozen=True)
class LabelTarget(Target):
    """A target with the labels of the training part; z has a number for each."""

    labels: Annotated[Labels, IN_FACTS]
    kind: ClassVar[str]
    mixture: ClassVar[type[BaselineMixture]] = BaselineMixture
    distribution: ClassVar[Distribution]
    several: ClassVar[bool]
    head_class: ClassVar[type[Head]]
    metrics: ClassVar[tuple[Metric, ...]] = CLASS_METRICS

    @classmethod
    def learn(cls, train: LabelledPart, settings: NumberSettings | None = None) -> Self:
        return cls(learned_labels(train))

    @property
    def width(self) -> int:
        return len(self.labels)

    @property
    def linear_width(self) -> int:  # type: ignore[override]
        return self.width

    def cost(self, z: Tensor, y: Tensor) -> Tensor:
        return self.distribution.cost(z, y)

    def head(self, settings: Any) -> Head:
        weights = None
        if getattr(settings, "class_weights", "none") == "balanced":
            weights = balanced(torch.tensor(self.labels.counts))
        smoothing = getattr(settings, "smoothing", 0.0)
        return self.head_class(len(self.labels), smoothing=smoothing, class_weights=weights)

    def is_label(self, text: str) -> bool:
        return text in self.labels.tokens

    def linear_directions(
        self, explained: Sequence[ExplainedOutput]
    ) -> tuple[NDArray[np.float64], float]:
        return against_others(self.width, [one.number for one in explained], self.several), 0.0

    def answering(self) -> Answering:
        labels = {"labels": list(self.labels.tokens), "several": self.several}
        step: Step = {"step": "labels", **labels, **self._threshold_facts()}
        return Answering(Probabilities(self.several), ("probabilities",), (step,))

    def _threshold_facts(self) -> dict[str, Any]:
        """Lines on the thresholds of labels."""
        return {"threshold": THRESHOLD}

    # ------------------------------------------------------------- with a linear model
    def first_mixture(self, share: Literal["fitted"] | float) -> BaselineMixture:
        return EQUAL if share == "fitted" else BaselineMixture(1 - share, share)

    def fitted_mixture(
        self, outputs: Outputs, linear: Tensor, y: Tensor, guess: FirstGuess
    ) -> BaselineMixture:
        scores = [z.double() for z in outputs]
        return fitted_mixture(scores, linear.double(), y.to(torch.int64), guess)

    def mixed(self, mixture: BaselineMixture, z: Tensor, linear: Tensor) -> Tensor:
        """log p (rows, classes), or z of several labels."""
        return mixture.scores(z.double(), linear.double(), self.several)


@dataclass(frozen=True)
class ClassTarget(LabelTarget):
    """One class of two or more. threshold: minimum probability for predicting the minority class of
    two; None predicts the more probable class."""

    threshold: Annotated[float, Range(above=0, high=1)] | None = None

    distribution: ClassVar[Distribution] = Categorical()
    several: ClassVar[bool] = False
    head_class: ClassVar[type[Head]] = CategoricalHead
    kind: ClassVar[str] = "class"
    answer_names: ClassVar[tuple[str, ...]] = ("label", "probability")
    regression: ClassVar[str] = "softmax"

    def encode(self, part: LabelledPart) -> NDArray[np.int64]:
        return classes_of(part, self.labels.tokens)

    def probabilities(self, outputs: Outputs) -> Floats:
        """Mean probabilities of the members (rows, classes)."""
        return np.asarray(np.mean([z.double().softmax(-1).numpy() for z in outputs], 0))

    def mean_of(self, outputs: Outputs) -> Tensor:
        return _logs(self.probabilities(outputs))

    def score(self, z: Tensor, y: Tensor, watch: str) -> dict[str, float]:
        answers = ClassAnswers(y.numpy(), z.argmax(-1).numpy(), self.probabilities([z]))
        return scores_of(self.metrics, answers, watch)

    def mean_score(self, outputs: Outputs, y: Tensor, watch: str) -> dict[str, float]:
        p = self.probabilities(outputs)
        return scores_of(self.metrics, ClassAnswers(y.numpy(), self.decided(p), p), watch)

    @property
    def rare(self) -> int:
        """The least frequent class of the training part."""
        return rarer(self.labels)

    def decided(self, p: Floats) -> NDArray[np.int64]:
        """The predicted classes (rows,) from probabilities (rows, classes)."""
        for rare, threshold in self._thresholds.items():
            return np.where(p[:, rare] >= threshold, rare, 1 - rare)
        return np.asarray(p.argmax(1))

    @property
    def _thresholds(self) -> dict[int, float]:
        """The thresholds by class; none if the more probable class is predicted."""
        if self.threshold is None or len(self.labels) != 2:
            return {}
        return {self.rare: self.threshold}

    def answers(self, outputs: Outputs, options: RequestOptions = NOTHING) -> list[Classified]:
        p = self.probabilities(outputs)
        usual = self.decided(p)
        return class_answers(p, usual, Decision.of(options, self.labels), self._thresholds)

    def decision_lines(self, options: RequestOptions) -> list[str]:
        return Decision.of(options, self.labels).lines()

    def evaluate(self, outputs: TargetOutputs) -> Evaluation:
        part = outputs.part
        names = with_unknown(part, self.labels)
        gold = classes_of(part, names)
        p = self.probabilities(outputs.outputs)
        decision = Decision.of(outputs.options, self.labels)
        guess = decision.classes(p, self.decided(p))
        sure = p[np.arange(len(p)), guess]
        counts = metrics.row_counts(gold, guess, len(names))
        others = log_loss_of_known(gold, p)
        others["Brier"] = metrics.brier(gold, p)
        if len(names) == 2 and len(set(gold.tolist())) == 2:
            others["AUC"] = metrics.roc_auc(gold, p[:, 1])
        others["calibration error"] = metrics.calibration_error(gold, p)
        sums = _sums(gold == guess, counts)
        others |= further_scores(self.metrics, known_answers(gold, guess, p), sums)
        others |= decision.scores(gold == guess, decision.answered(p, guess, self._thresholds))
        lines = [*([] if decision.thresholds else self._threshold_lines()), *decision.lines()]
        most = int(np.argmax(self.labels.counts))
        baselines = {"majority class": np.full_like(gold, most)}
        baselines |= {name: z.argmax(-1).numpy() for name, z in outputs.baselines.items()}
        return Evaluation(
            rows=len(gold),
            steps=len(gold),
            scores=intervals(sums, outputs.seed),
            others=others,
            baselines={name: metrics.accuracy(gold, labels) for name, labels in baselines.items()},
            baseline_sums={name: right_sums(gold == labels) for name, labels in baselines.items()},
            classes=class_rows(names, counts.sum(0)),
            confusion=metrics.confusion(gold, guess, len(names)).tolist(),
            worst=surest_mistakes(gold, guess, p, names, outputs.row_text),
            unknown=len(unknown_rows(part, self.labels.tokens)),
            notes=[*lines, *reliability_lines(reliability(gold == guess, sure))],
            sums=sums,
        )

    def _threshold_lines(self) -> list[str]:
        if self.threshold is None or len(self.labels) != 2:
            return []
        name = self.labels.tokens[self.rare]
        return [f"answered with {name!r} from probability {self.threshold:.2f} on"]

    def temperature(self, outputs: Outputs, y: Tensor) -> float:
        return temperature(outputs, y)

    def measure(self) -> ClassMeasure:
        return ClassMeasure(self)

    def _threshold_facts(self) -> dict[str, Any]:
        if self.threshold is None or self.width != 2:
            return super()._threshold_facts()
        return {"threshold": self.threshold, "rare": self.rare}

    def describe(self) -> str:
        return "; ".join([f"one of {_listed(self.labels)}", *self._threshold_lines()])


@dataclass(frozen=True)
class SeveralTarget(LabelTarget):
    """Several labels of two or more, each present or not."""

    distribution: ClassVar[Distribution] = Bernoulli()
    several: ClassVar[bool] = True
    head_class: ClassVar[type[Head]] = BernoulliHead
    kind: ClassVar[str] = "several"
    answer_names: ClassVar[tuple[str, ...]] = ("labels", "probability")
    regression: ClassVar[str] = "logistic"

    def encode(self, part: LabelledPart) -> NDArray[np.float32]:
        return _marks(part, self.labels.tokens).astype(np.float32)

    def probabilities(self, outputs: Outputs) -> Floats:
        """Mean probabilities of the members (rows, labels)."""
        return np.asarray(np.mean([z.double().sigmoid().numpy() for z in outputs], 0))

    def mean_of(self, outputs: Outputs) -> Tensor:
        p = self.probabilities(outputs)
        return _logs(p) - _logs(1 - p)

    def score(self, z: Tensor, y: Tensor, watch: str) -> dict[str, float]:
        gold, guess = ((values.numpy() > 0).astype(np.int64) for values in (y, z))
        return scores_of(self.metrics, ClassAnswers(gold, guess, self.probabilities([z])), watch)

    def mean_score(self, outputs: Outputs, y: Tensor, watch: str) -> dict[str, float]:
        p = self.probabilities(outputs)
        gold, guess = (y.numpy() > 0).astype(np.int64), (p > THRESHOLD).astype(np.int64)
        return scores_of(self.metrics, ClassAnswers(gold, guess, p), watch)

    def answers(self, outputs: Outputs, options: RequestOptions = NOTHING) -> list[Classified]:
        decision = Decision.of(options, self.labels, several=True)
        return several_answers(self.probabilities(outputs), decision)

    def decision_lines(self, options: RequestOptions) -> list[str]:
        return Decision.of(options, self.labels, several=True).lines()

    def evaluate(self, outputs: TargetOutputs) -> Evaluation:
        part, known = outputs.part, len(self.labels)
        names = with_unknown(part, self.labels)
        gold = _marks(part, names)
        decision = Decision.of(outputs.options, self.labels, several=True)
        p = np.pad(self.probabilities(outputs.outputs), ((0, 0), (0, len(names) - known)))
        guess = decision.marks(p, THRESHOLD)
        counts = metrics.row_counts(gold, guess, len(names))
        baselines = {"no label": np.zeros_like(gold)}
        for name, z in outputs.baselines.items():
            baselines[name] = np.zeros_like(gold)
            baselines[name][:, :known] = z.numpy() > 0
        sure = np.where(guess > 0, p, 1 - p)
        sums = _sums((gold == guess).all(1), counts)
        others = {"log loss": metrics.log_loss(gold[:, :known], p[:, :known])}
        others |= further_scores(self.metrics, known_answers(gold, guess, p[:, :known]), sums)
        return Evaluation(
            rows=len(gold),
            steps=len(gold),
            scores=intervals(sums, outputs.seed),
            others=others,
            baselines={name: metrics.accuracy(gold, labels) for name, labels in baselines.items()},
            baseline_sums={
                name: right_sums((gold == labels).all(1)) for name, labels in baselines.items()
            },
            classes=class_rows(names, counts.sum(0)),
            confusion=(),
            worst=surest_mistaken_sets(gold, guess, p, names, outputs.row_text),
            unknown=len(unknown_rows(part, self.labels.tokens)),
            notes=[
                *decision.lines(),
                *reliability_lines(reliability((gold == guess).ravel(), sure.ravel())),
            ],
            sums=sums,
        )

    def measure(self) -> SeveralMeasure:
        return SeveralMeasure(self)

    def describe(self) -> str:
        return f"any of {_listed(self.labels)}"


def _logs(p: Floats) -> Tensor:
    return torch.from_numpy(np.log(np.maximum(p, np.finfo(np.float64).tiny)))


def _sums(right: NDArray[np.bool_], counts: NDArray[np.int64]) -> dict[str, RowSums]:
    """right (rows,): whether a row is right; counts (rows, 3, classes)."""
    return {"accuracy": right_sums(right), "macro_f1": RowSums("macro_f1", counts)}


def right_sums(right: NDArray[np.bool_]) -> RowSums:
    """The accuracy of rows; right (rows,)."""
    return RowSums("ratio", np.stack([right, np.ones(len(right))], 1))


def classes_of(part: LabelledPart, labels: Sequence[str]) -> NDArray[np.int64]:
    """The index of each row's single label; shape (rows,)."""
    assert part.labels is not None
    if len(wrong := np.flatnonzero(part.labels.lengths != 1)):
        row = int(wrong[0])
        raise DataError(
            f"{part.names[row]}: expected one label, got {part.labels.lengths[row]}; for several "
            "labels at once set model.target = several, of texts model.several = true"
        )
    return label_numbers(part, labels)


def _marks(part: LabelledPart, labels: Sequence[str]) -> NDArray[np.int64]:
    """Whether each row has each label: zeros and ones (rows, labels)."""
    assert part.labels is not None
    marks = np.zeros((len(part), len(labels)), np.int64)
    rows = np.repeat(np.arange(len(part)), part.labels.lengths)
    marks[rows, label_numbers(part, labels)] = 1
    return marks


def class_answers(
    p: Floats,
    usual: NDArray[np.int64],
    decision: Decision,
    thresholds: Mapping[int, float] = NO_THRESHOLDS,
) -> list[Classified]:
    """An answer for each row of p (rows, classes). usual: the predicted class unless a threshold
    changes it; thresholds: the thresholds of the model, by which the usual classes were chosen."""
    guess = decision.classes(p, usual)
    answers = []
    for row, k, is_answered in zip(p, guess, decision.answered(p, guess, thresholds), strict=True):
        name, ranked = decision.labels[k], _by_probability(decision.labels, row)
        answers.append(
            Classified(name, (name,), ranked) if is_answered else Abstained("", (), ranked)
        )
    return answers


def several_answers(p: Floats, decision: Decision) -> list[Classified]:
    """An answer for each row of p (rows, labels), with its labels."""
    answers = []
    for row, marks in zip(p, decision.marks(p, THRESHOLD), strict=True):
        labels = tuple(name for name, holds in zip(decision.labels, marks, strict=True) if holds)
        answers.append(Classified("", labels, _by_probability(decision.labels, row)))
    return answers


def _by_probability(labels: Sequence[str], p: Floats) -> dict[str, float]:
    return {labels[k]: float(p[k]) for k in np.argsort(-p, kind="stable")}


def _listed(labels: Vocabulary) -> str:
    names = labels.tokens
    return ", ".join(names[:6]) + ", …" * (len(names) > 6)


# --- explained -----------------------------------------------------------------------------------

AGAINST_OTHERS = "score against the mean of the other labels"


class ClassMeasure:
    """The log-odds of a class."""

    name = "log-odds"

    def __init__(self, target: ClassTarget) -> None:
        self._target = target
        self.of_linear = self.name if target.width == 2 else AGAINST_OTHERS

    def explained(self, outputs: Outputs, label: str | None) -> list[ExplainedOutput]:
        p, names = self._target.probabilities(outputs), self._target.labels.tokens
        number = int(self._target.decided(p)[0]) if label is None else label_number(label, names)
        return [ExplainedOutput(names[number], number, float(p[0, number]))]

    def whole(self, outputs: Outputs, explained: Sequence[ExplainedOutput]) -> Floats:
        p = self._target.probabilities(outputs)
        return np.stack([odds_of(p, item.number) for item in explained], 1)

    def of_network(self, z: Tensor, explained: Sequence[ExplainedOutput]) -> Tensor:
        return torch.stack([odds_of_scores(z, item.number) for item in explained], 1)


class SeveralMeasure:
    """The log-odds of each predicted label; without one, the log-odds of the most probable
    label."""

    name = of_linear = "log-odds"

    def __init__(self, target: SeveralTarget) -> None:
        self._target = target

    def explained(self, outputs: Outputs, label: str | None) -> list[ExplainedOutput]:
        p, names = self._target.probabilities(outputs)[0], self._target.labels.tokens
        numbers = labels_there(p) if label is None else [label_number(label, names)]
        return [ExplainedOutput(names[number], number, float(p[number])) for number in numbers]

    def whole(self, outputs: Outputs, explained: Sequence[ExplainedOutput]) -> Floats:
        p = self._target.probabilities(outputs)
        return np.stack([odds_of(p, item.number, several=True) for item in explained], 1)

    def of_network(self, z: Tensor, explained: Sequence[ExplainedOutput]) -> Tensor:
        return z[:, [item.number for item in explained]]

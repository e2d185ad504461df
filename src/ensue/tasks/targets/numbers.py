"""Targets that are numbers, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.series import is_number, number_hint, number_of
from ensue.errors import DataError
from ensue.metrics.classes import NumberAnswers
from ensue.metrics.table import NUMBER_METRICS, Metric, scores_of
from ensue.tasks.abilities import NOTHING, RequestOptions
from ensue.tasks.baselines.mixture import (
    EVEN,
    FirstGuess,
    NumberMixture,
    fitted_numbers,
)
from ensue.tasks.blocks.distributions import Distribution, Gaussian, Mixture
from ensue.tasks.declarations import Derived, Positive, Range
from ensue.tasks.evaluation.bootstrap import RowSums, intervals
from ensue.tasks.evaluation.calibration import coverage_lines, coverage_of
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.explaining.measures import ExpectedNumber, ExplainedOutput
from ensue.tasks.exported import Step
from ensue.tasks.rows.part import LabelledPart
from ensue.tasks.targets.decision import refuse_decision
from ensue.tasks.targets.exported import Answering, Numbers
from ensue.tasks.targets.target import (
    Estimated,
    NumberSettings,
    Outputs,
    Target,
    TargetOutputs,
)

SHARES = (0.5, 0.8, 0.9, 0.95)  # whose intervals are checked
DISTRIBUTIONS: Mapping[str, Callable[[NumberSettings], Distribution]] = {
    "gaussian": lambda settings: Gaussian(),
    "mixture": lambda settings: Mixture(settings.components),
}


def distribution(settings: NumberSettings) -> Distribution:
    return DISTRIBUTIONS[settings.distribution](settings)


@dataclass(frozen=True)
class NumberTarget(Target):
    """A number y, scaled by the training part: (y − mean)/spread. share: the probability of the
    intervals of answers."""

    mean: float
    spread: Positive
    distribution: Annotated[Distribution, Derived(lambda record: distribution(record.settings))]
    share: Annotated[float, Range(above=0, high=1 - 1e-9)]

    kind: ClassVar[str] = "number"
    numeric: ClassVar[bool] = True
    mixture: ClassVar[type[NumberMixture]] = NumberMixture
    metrics: ClassVar[tuple[Metric, ...]] = NUMBER_METRICS
    answer_names: ClassVar[tuple[str, ...]] = ("value", "low", "high")

    @classmethod
    def learn(cls, train: LabelledPart, settings: NumberSettings) -> NumberTarget:
        values = label_values(train)
        if len(values) < 2 or not values.std():
            raise DataError(
                "the training part: expected a target with different numbers, got "
                f"{'one only, ' + format(values[0], 'g') if len(values) else 'none'}"
            )
        fitted = distribution(settings)
        return cls(float(values.mean()), float(values.std()), fitted, settings.interval)

    @property
    def width(self) -> int:
        return self.distribution.width(1)

    def encode(self, part: LabelledPart) -> NDArray[np.float32]:
        scaled = (label_values(part) - self.mean) / self.spread
        return scaled.astype(np.float32)[:, None]

    def cost(self, z: Tensor, y: Tensor) -> Tensor:
        return self.distribution.cost(z, y)

    def is_label(self, text: str) -> bool:
        return is_number(text)

    # ------------------------------------------------------------- with a linear model
    def mean_of(self, outputs: Outputs) -> Tensor:
        return torch.stack([self.distribution.mean(z) for z in outputs]).mean(0)

    def why_not_mixed(self) -> str:
        if isinstance(self.distribution, Gaussian):
            return ""
        return (
            "a linear model in the answer: expected model.distribution = gaussian, because only "
            f"this distribution can be mixed, got {self.distribution.name}"
        )

    def first_mixture(self, share: Literal["fitted"] | float) -> NumberMixture:
        return EVEN if share == "fitted" else NumberMixture(1 - share, share, 0.0, 1.0)

    def fitted_mixture(
        self, outputs: Outputs, linear: Tensor, y: Tensor, guess: FirstGuess
    ) -> NumberMixture:
        return fitted_numbers(outputs, linear, y)

    def mixed(self, mixture: NumberMixture, z: Tensor, linear: Tensor) -> Tensor:
        return mixture.outputs(z, linear)

    def linear_directions(
        self, explained: Sequence[ExplainedOutput]
    ) -> tuple[NDArray[np.float64], float]:
        return np.full((1, 1), self.spread), self.mean

    # ------------------------------------------------------------- scored
    def mean_score(self, outputs: Outputs, y: Tensor, watch: str) -> dict[str, float]:
        """The watched score. The cost is for the scaled number; errors are in units of the data."""
        cost = np.mean([self.cost(z, y).double().numpy() for z in outputs], 0)
        answers = NumberAnswers(self._restored(y), self.means(outputs), cost)
        return scores_of(self.metrics, answers, watch)

    def _restored(self, scaled: Tensor) -> NDArray[np.float64]:
        return scaled[:, 0].double().numpy() * self.spread + self.mean

    def means(self, outputs: Outputs) -> NDArray[np.float64]:
        """The expected values, averaged over members; shape (rows,)."""
        values = [self._restored(self.distribution.mean(z)) for z in outputs]
        return np.asarray(np.mean(values, 0))

    def intervals(self, outputs: Outputs, share: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """Both ends (rows,) of the central intervals with this share of the probability, averaged
        over members."""
        pairs = [self.distribution.interval(z.double(), share) for z in outputs]
        low, high = ([self._restored(pair[k]) for pair in pairs] for k in (0, 1))
        return np.asarray(np.mean(low, 0)), np.asarray(np.mean(high, 0))

    def answers(self, outputs: Outputs, options: RequestOptions = NOTHING) -> list[Estimated]:
        refuse_decision(options)
        low, high = self.intervals(outputs, self.share)
        rows = zip(self.means(outputs), low, high, strict=True)
        return [Estimated(float(m), float(a), float(b), self.share) for m, a, b in rows]

    def evaluate(self, outputs: TargetOutputs) -> Evaluation:
        refuse_decision(outputs.options)
        gold, guess = label_values(outputs.part), self.means(outputs.outputs)
        wrong = guess - gold
        ones = np.ones(len(gold))
        sums = {
            "rmse": square_sums(wrong),
            "mae": RowSums("ratio", np.stack([abs(wrong), ones], 1)),
        }
        y = torch.from_numpy((gold - self.mean) / self.spread)[:, None]
        cost = [self.cost(z.double(), y).mean() for z in outputs.outputs]
        around = float(((gold - gold.mean()) ** 2).mean())
        others = {"log loss": float(np.mean(cost)) + float(np.log(self.spread))}
        if around:
            others["r2"] = 1 - float((wrong**2).mean()) / around
        shares = sorted({*SHARES, self.share})
        coverages = [
            coverage_of(gold, *self.intervals(outputs.outputs, share), share) for share in shares
        ]
        baselines = {"mean": np.full_like(gold, self.mean)}
        baselines |= {name: self._restored(z) for name, z in outputs.baselines.items()}
        return Evaluation(
            rows=len(gold),
            steps=len(gold),
            scores=intervals(sums, outputs.seed),
            others=others,
            baselines={
                name: float(((values - gold) ** 2).mean() ** 0.5)
                for name, values in baselines.items()
            },
            baseline_sums={name: square_sums(values - gold) for name, values in baselines.items()},
            classes=(),
            confusion=(),
            worst=(),
            higher_is_better=False,
            notes=coverage_lines(coverages),
            sums=sums,
        )

    def measure(self) -> ExpectedNumber:
        return ExpectedNumber(self._expected)

    def _expected(self, outputs: Outputs) -> Tensor:
        """The expected values (rows, 1) in units of the data."""
        return self.mean_of(outputs) * self.spread + self.mean

    def answering(self) -> Answering:
        numbers = Numbers(self.distribution, self.share, self.mean, self.spread)
        step: Step = {"step": "number", "share": self.share}
        return Answering(numbers, ("value", "low", "high"), (step,))

    def describe(self) -> str:
        return f"a number, {self.distribution.name}"


def square_sums(wrong: NDArray[np.float64]) -> RowSums:
    """The root of the mean squared error; wrong (rows,)."""
    return RowSums("root_ratio", np.stack([wrong**2, np.ones(len(wrong))], 1))


def label_values(part: LabelledPart) -> NDArray[np.float64]:
    """Each row's label as a number (rows,)."""
    assert part.labels is not None
    if len(wrong := np.flatnonzero(part.labels.lengths != 1)):
        row = int(wrong[0])
        raise DataError(f"{part.names[row]}: expected one number, got {part.labels.lengths[row]}")
    texts = list(part.numbers.labels)
    table = np.array([np.nan if (n := number_of(text)) is None else n for text in texts])
    values = table[part.labels.values]
    if len(wrong := np.flatnonzero(np.isnan(values))):
        row = int(wrong[0])
        text = texts[part.labels.values[row]]
        raise DataError(
            f"{part.names[row]}: the target: expected a finite number, got "
            f"{text!r}{number_hint(text)}"
        )
    return np.asarray(values, np.float64)

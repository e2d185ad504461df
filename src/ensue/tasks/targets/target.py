"""`Target`: one kind of target, for any input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from ensue.drawing.document import Document, Range, as_block
from ensue.drawing.layout import between
from ensue.metrics.table import Metric
from ensue.settings import OFF, Expected, Table, Width
from ensue.tasks.abilities import NOTHING, RequestOptions
from ensue.tasks.answers import Answer, Columns, columns_table, share_bar, tabbed
from ensue.tasks.baselines.mixture import BaselineMixture, FirstGuess, NumberMixture
from ensue.tasks.blocks.heads import OutputHead, TargetHead
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.explaining.measures import ExplainedOutput, Measure
from ensue.tasks.exported import refuse
from ensue.tasks.rows.part import LabelledPart
from ensue.tasks.targets.exported import Answering


@runtime_checkable
class Readable(Protocol):
    """An input that is not a text but can be shown as one, such as the row of a table."""

    def as_text(self) -> str: ...


def shown_texts(inputs: object) -> list[str]:
    """The displayed texts of an input, each on one line; "" for inputs that are not readable."""
    if isinstance(inputs, str):
        return [" ".join(inputs.split())]
    if isinstance(inputs, tuple):
        return [text for item in inputs for text in shown_texts(item)]
    return shown_texts(inputs.as_text()) if isinstance(inputs, Readable) else [""]


@dataclass(frozen=True)
class Classified(Answer):
    """The classes of a row. label: the most probable class ("" for multi-label answers); labels:
    all predicted labels; probabilities: the probability of each class, most probable first.

    >>> Classified("good", ("good",), {"good": 0.75, "bad": 0.25}).as_line("a fine film")
    'good\\t0.7500\\ta fine film'
    """

    label: str
    labels: tuple[str, ...]
    probabilities: Mapping[str, float]

    def as_line(self, inputs: object) -> str:
        """label, probability and input, separated by tabs. White space of the input becomes single
        spaces, so an answer is one line. Several labels are separated by commas, with the
        probability of the least probable one."""
        chosen = ",".join(self.labels)
        probability = f"{self.probability:.4f}" if self.labels else ""
        return tabbed(chosen, probability, *shown_texts(inputs)).rstrip("\t")

    def as_row(self) -> dict[str, Any]:
        """The answer as a row: label and probability; for multi-label answers, labels with the
        probability of the least probable one."""
        answer = {"label": self.label} if self.label else {"labels": list(self.labels)}
        return {**answer, "probability": self.probability if self.labels else None}

    @property
    def probability(self) -> float:
        """The probability of the label. For several labels, the probability of the least probable
        label; 0 without labels."""
        return min((self.probabilities[label] for label in self.labels), default=0.0)

    @classmethod
    def as_columns(cls, answers: Sequence[Self]) -> Columns:
        return {
            "label": [", ".join(answer.labels) for answer in answers],
            "probability": [share_bar(answer.probability) for answer in answers],
        }

    def _repr_html_(self) -> str:
        """Every class with its probability."""
        bars = [share_bar(p) for p in self.probabilities.values()]
        table = columns_table({"class": [*self.probabilities], "probability": bars})
        return as_block(Document(", ".join(self.labels) or "no label", "", [table]))


@dataclass(frozen=True)
class Abstained(Classified):
    """No class is probable enough to be predicted. The probability belongs to the most probable
    class.

    >>> Abstained("", (), {"good": 0.55, "bad": 0.45}).as_line("a film")
    '\\t0.5500\\ta film'
    """

    def as_line(self, inputs: object) -> str:
        return tabbed("", f"{self.probability:.4f}", *shown_texts(inputs)).rstrip("\t")

    def as_row(self) -> dict[str, Any]:
        return {"label": None, "probability": self.probability}

    @property
    def probability(self) -> float:
        return next(iter(self.probabilities.values()))


@dataclass(frozen=True)
class Estimated(Answer):
    """A number: its expected value, and the interval that contains it with probability share.

    >>> Estimated(7.5, low=6.0, high=9.0, share=0.9).as_line("a fine film")
    '7.5\\t6\\t9\\ta fine film'
    """

    value: float
    low: float
    high: float
    share: float

    def as_line(self, inputs: object) -> str:
        """value, low, high and input, with tabs between."""
        numbers = (f"{number:.6g}" for number in (self.value, self.low, self.high))
        return tabbed(*numbers, *shown_texts(inputs)).rstrip("\t")

    def as_row(self) -> dict[str, float]:
        return {"value": self.value, "low": self.low, "high": self.high}

    @classmethod
    def as_columns(cls, answers: Sequence[Self]) -> Columns:
        """Columns for several answers; their intervals have a common scale."""
        scale = min(answer.low for answer in answers), max(answer.high for answer in answers)
        shares = {f"{answer.share:.0%} " for answer in answers}
        return {
            "value": [answer.value for answer in answers],
            f"{shares.pop() if len(shares) == 1 else ''}interval": [
                Range(
                    answer.value, answer.low, answer.high, scale, between(answer.low, answer.high)
                )
                for answer in answers
            ],
        }


Outputs = Sequence[Tensor]  # z of each member, (rows, width)
Mixture = BaselineMixture | NumberMixture  # mixture of a network and a linear model


class NumberSettings(Table):
    """The distribution of a number that is predicted."""

    distribution: Literal["gaussian", "mixture"] = Field(
        "gaussian", description="Distribution of a predicted number: a Gaussian, or several."
    )
    components: Width = Field(3, description="Number of Gaussians in a mixture.")
    interval: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.9, description="Nominal coverage of the interval of an answer."
    )


class ThresholdSettings(Table):
    """The probability from which one of two classes is predicted."""

    threshold: Annotated[
        Literal["auto"] | Annotated[float, Field(gt=0, lt=1)] | None,
        OFF,
        Expected("auto, a number > 0 and < 1, or off"),
    ] = Field(
        None,
        description="Minimum probability for predicting the minority class of two; auto: "
        "the probability with the highest macro-F1 on the validation part, or for a "
        "small table by cross-validation of a linear model; off: predict the more "
        "probable class.",
    )


class TargetOutputs(NamedTuple):
    """The inputs of an evaluation. outputs: z of each member, (rows, width); baselines: z of linear
    models by name, (rows, linear_width); part: with gold labels; row_text: maps a row to its name
    and beginning; options: for the choice of answers."""

    outputs: Outputs
    baselines: Mapping[str, Tensor]
    part: LabelledPart
    row_text: Callable[[int], tuple[str, str]]
    seed: int
    options: RequestOptions = NOTHING


class Target(ABC):
    """The learned target, a dataclass: what was learned of the labels of the training part. z is a
    network's output for a row. Methods that are not abstract have defaults for a target with one
    number per row, without a mixture with a linear model, and without export.

    kind: its name in settings; metrics: reported on validation; answer_names: names of its answers
    in a data frame; numeric: whether y are numbers (rows, 1), which linear models predict by ridge
    regression; regression: the kind of a linear model, as in `Regression`; linear_width: size of a
    linear model's output for a row; mixture: the class of mixtures of a network and a linear model,
    None if only networks answer."""

    kind: ClassVar[str]
    metrics: ClassVar[tuple[Metric, ...]]
    answer_names: ClassVar[tuple[str, ...]]
    numeric: ClassVar[bool] = False
    regression: ClassVar[str] = "linear"
    linear_width: int = 1
    mixture: ClassVar[type[Mixture] | None] = None

    @classmethod
    @abstractmethod
    def learn(cls, train: LabelledPart, settings: Any) -> Self: ...

    # ------------------------------------------------------------- trained
    @property
    @abstractmethod
    def width(self) -> int:
        """The width of z (rows, width)."""

    @abstractmethod
    def encode(self, part: LabelledPart) -> NDArray[Any]:
        """The labels as y, (rows,) classes or (rows, n) numbers."""

    @abstractmethod
    def cost(self, z: Tensor, y: Tensor) -> Tensor:
        """The cost of each row, −log p(y | z) (rows,)."""

    def head(self, settings: Any) -> OutputHead:
        """The cost in training, by the settings."""
        return TargetHead(self.width, self.cost)

    def is_label(self, text: str) -> bool:
        """Whether a text can be a label."""
        return True

    def score(self, z: Tensor, y: Tensor, watch: str) -> dict[str, float]:
        """The validation metrics by name."""
        return self.mean_score([z], y, watch)

    @abstractmethod
    def mean_score(self, outputs: Outputs, y: Tensor, watch: str) -> dict[str, float]:
        """The validation metrics of all members together."""

    def temperature(self, outputs: Outputs, y: Tensor) -> float:
        """The temperature T that divides z if only networks answer, fitted to held-out rows."""
        return 1.0

    # ------------------------------------------------------------- with a linear model
    @abstractmethod
    def mean_of(self, outputs: Outputs) -> Tensor:
        """The scores of all members together, in the form of a linear
        model; shape (rows, linear_width)."""

    def why_not_mixed(self) -> str:
        """Why a linear model cannot contribute to answers; "" if it can."""
        return ""

    def first_mixture(self, share: Literal["fitted"] | float) -> Mixture:
        """The mixture of a network and a linear model before it is fitted. share: the share of the
        linear model."""
        raise AssertionError(f"{self.kind} has no mixture")

    def fitted_mixture(
        self, outputs: Outputs, linear: Tensor, y: Tensor, guess: FirstGuess
    ) -> Mixture:
        """The mixture fitted to held-out rows; guess: its initial value."""
        raise AssertionError(f"{self.kind} has no mixture")

    def mixed(self, mixture: Any, z: Tensor, linear: Tensor) -> Tensor:
        """z of a network, mixed with z of a linear model."""
        raise AssertionError(f"{self.kind} has no mixture")

    def linear_directions(
        self, explained: Sequence[ExplainedOutput]
    ) -> tuple[NDArray[np.float64], float]:
        """(linear_width, wanted) and a constant: from the outputs of a linear model to the
        explained measure."""
        return np.ones((1, 1)), 0.0

    # ------------------------------------------------------------- answers
    @abstractmethod
    def answers(self, outputs: Outputs, options: RequestOptions = NOTHING) -> list[Any]:
        """One answer per row, of all members together. options: for the choice of answers."""

    def decision_lines(self, options: RequestOptions) -> list[str]:
        """Descriptions of the options for the choice of answers."""
        return []

    @abstractmethod
    def evaluate(self, outputs: TargetOutputs) -> Evaluation:
        """Evaluation against gold labels."""

    @abstractmethod
    def measure(self) -> Measure:
        """The explained value of an answer."""

    def answering(self) -> Answering:
        """The exported answers from z."""
        raise refuse("target", self.kind)

    @abstractmethod
    def describe(self) -> str:
        """A short description: "one of bad, good"."""

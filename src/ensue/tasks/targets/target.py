"""`Target`: one kind of thing that is predicted, whatever it is predicted from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, Self

from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from ensue.metrics.table import Metric
from ensue.settings import Table, Width
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.rows.part import LabelledPart
from ensue.tasks.task import NOTHING, Asked

Outputs = Sequence[Tensor]  # z of each member, (rows, width)


class NumberSettings(Table):
    """The distribution of a number that is predicted."""

    distribution: Literal["gaussian", "mixture"] = Field(
        "gaussian", description="Distribution of a predicted number: a Gaussian, or several."
    )
    components: Width = Field(3, description="Gaussians of a mixture.")
    interval: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.9, description="Probability that the interval of an answer should have."
    )


class TargetOutputs(NamedTuple):
    """What an evaluation is made of. outputs: z of each member, (rows, width); baselines: z of
    linear models by name, (rows, linear_width); part: with gold labels; shown: where a row comes
    from, and its beginning; asked: how answers are chosen, where it is said."""

    outputs: Outputs
    baselines: Mapping[str, Tensor]
    part: LabelledPart
    shown: Callable[[int], tuple[str, str]]
    seed: int
    asked: Asked = NOTHING


class Target(Protocol):
    """What was learned of the labels of the training part; z is what a network says of a row.

    regression: the kind of a linear model for the same target, as `Regression` has them."""

    kind: ClassVar[str]
    regression: ClassVar[str]
    metrics: ClassVar[tuple[Metric, ...]]
    answer_names: ClassVar[tuple[str, ...]]  # what its answers are called in a data frame

    @classmethod
    def learn(cls, train: LabelledPart, settings: NumberSettings) -> Self: ...

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any], settings: NumberSettings) -> Self:
        """The inverse of `facts`."""
        ...

    @property
    def width(self) -> int:
        """Of z (rows, width)."""
        ...

    @property
    def linear_width(self) -> int:
        """Of the z of a linear model."""
        ...

    def encode(self, part: LabelledPart) -> NDArray[Any]:
        """The labels as y, (rows,) classes or (rows, n) numbers."""
        ...

    def cost(self, z: Tensor, y: Tensor) -> Tensor:
        """(rows,): −log p(y | z)."""
        ...

    def score(self, z: Tensor, y: Tensor, watch: str) -> dict[str, float]:
        """What validation reports: the metrics by name."""
        ...

    def mean_score(self, outputs: Outputs, y: Tensor, watch: str) -> dict[str, float]:
        """The same of all members together."""
        ...

    def answers(self, outputs: Outputs, asked: Asked = NOTHING) -> list[Any]:
        """One a row, of all members together. asked: how they are chosen, where it is said."""
        ...

    def decision_lines(self, asked: Asked) -> list[str]:
        """How answers are chosen, where it is said."""
        ...

    def evaluate(self, given: TargetOutputs) -> Evaluation:
        """Evaluation against gold labels."""
        ...

    def facts(self) -> dict[str, Any]:
        """As JSON holds it."""
        ...

    def describe(self) -> str:
        """In a few words: "one of bad, good"."""
        ...

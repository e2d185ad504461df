"""The learned part of a supervised model, except the weights of its networks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.tasks.baselines.regression import Regression
from ensue.tasks.codec import Packed, packed, weights
from ensue.tasks.declarations import NOT_SAVED, Arrays, Derived, Kinds, OfClass, Range
from ensue.tasks.explaining.attribution import LinearAttribution
from ensue.tasks.exported import Exported, Graph, Piecewise, Rounding, Step, refuse
from ensue.tasks.exported import Input as GraphInput
from ensue.tasks.rows.part import Tokenisers
from ensue.tasks.rows.source import Encoded
from ensue.tasks.supervised.network import InputEncoder, SideScores
from ensue.tasks.targets.target import Mixture, Target

if TYPE_CHECKING:
    from ensue.tasks.any_model import ModelView
    from ensue.tasks.explaining.measures import ExplainedOutput

Share = Literal["fitted"] | float | None  # the mixture with a linear model; None without one
Named = Mapping[str, Tensor]  # the inputs of an exported graph


class LinearQuestion(NamedTuple):
    """A linear model in an exported graph: further inputs, the steps to their values, and a module
    from all inputs by name to z (rows, outputs). scores: a module, so that an export stores its
    parameters like the parameters of networks."""

    inputs: tuple[GraphInput, ...]
    steps: tuple[Step, ...]
    scores: nn.Module


class Linear(ABC):
    """A linear model of an input: a baseline of the network, or mixed with it."""

    knows_validation: ClassVar[bool] = False  # whether it also learns from the validation part

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in evaluations."""

    @abstractmethod
    def scores(self, part: Any) -> Tensor:
        """z (rows, outputs) with the target's linear width."""

    def pack(self) -> Packed:
        """The model in the form of files; names of arrays begin with `linear.`."""
        return packed(self)

    def rounded(self, rounding: Rounding) -> Linear:
        """The model with its matrix rounded, as stored in an export."""
        return self

    def question(self, model: ModelView) -> LinearQuestion | None:
        """The linear model in an export; None if it cannot be exported."""
        return None

    def attributions(
        self, part: Any, explained: Sequence[ExplainedOutput], target: Target
    ) -> tuple[LinearAttribution, ...]:
        """Attributions of the parts of the only row; () if there are none."""
        return ()


class FittedLinear(NamedTuple):
    """A fitted model. held: z of the validation rows by models that did not learn from them; None
    if the model itself did not."""

    model: Linear
    out_of_sample: Tensor | None = None


class InputQuestion(NamedTuple):
    """How an exported graph reads an input: its inputs, the steps from a question to their values,
    and the encoder's batch of all inputs by name. piecewise: if it can be read in pieces."""

    inputs: tuple[GraphInput, ...]
    steps: tuple[Step, ...]
    batch: Callable[[Named], Any]
    piecewise: Piecewise | None = None


class Occlusions(NamedTuple):
    """The only row of a part without each of its units. names: the names of the units; how:
    description of the replacement; part: a row for each unit; inputs: for several inputs, their
    names (prefixes of unit names) with their number of units."""

    names: tuple[str, ...]
    how: str
    part: Any
    inputs: Mapping[str, int] = {}


class LearnedInput(ABC):
    """The learned part of an input: vocabulary, scale, shape. by_unit: whether a row is explained
    by occlusion of units, even if it could be explained by steps."""

    by_unit: ClassVar[bool] = False

    @property
    def tokenisers(self) -> Tokenisers:
        """The tokenisers of the texts of parts, if there are any."""
        return Tokenisers(Tokeniser("spaces"))

    @abstractmethod
    def encode(self, part: Any, model: ModelView) -> Encoded:
        """A part, encoded for the networks."""

    @abstractmethod
    def encoder(self, model: ModelView) -> InputEncoder:
        """The encoder with fresh weights."""

    def side(self, model: ModelView, outputs: int) -> SideScores | None:
        """Scores that are added to the scores of the output layer."""
        return None

    @abstractmethod
    def row_texts(self, part: Any) -> Callable[[int], tuple[str, str]]:
        """A function from a row to its name and its beginning."""

    def linear(
        self, train: Any, validation: Any, target: Target, model: ModelView
    ) -> FittedLinear | None:
        """The linear model of this input, if it has one."""
        return None

    def labelled(self, part: Any) -> Any:
        """A part with one label for each row, if its units have labels too."""
        return part

    def unit_targets(self, part: Any, target: Target) -> Ragged | None:
        """The target of each unit inside the rows; None if only rows have targets."""
        return None

    def features(self, part: Any, model: ModelView) -> Tensor | None:
        """The dense features of a linear model; None if they are sparse; shape (rows, n)."""
        return None

    def question(self, model: ModelView) -> InputQuestion:
        """The question in an export."""
        raise refuse("input", type(self).__name__)

    def members(self, model: ModelView) -> tuple[Sequence[nn.Module], tuple[Graph, ...]]:
        """The networks for an exported graph, and the graphs that its steps run."""
        return list(model.networks), ()

    def vectors_graph(self, model: ModelView) -> Graph | None:
        """The separate graph for the vectors of one of several inputs, if any."""
        return None

    def exported(self, model: ModelView) -> Exported | None:
        """The complete export, if answering takes more than one pass through one graph (a tree: one
        pass for each node); None for other models."""
        return None

    def remarks(self, train: Any, target: Target, model: ModelView) -> list[str]:
        """Remarks on the training part for the user."""
        return []

    def fact(self) -> str:
        """A line on what was learned; "" without anything to report."""
        return ""

    def encoder_facts(self, encoder: Any) -> list[str]:
        """Lines on learned values that have a meaning by themselves, such as the month α of a
        feature; [] if there are none."""
        return []

    def occlusions(self, part: Any, model: ModelView) -> Occlusions | None:
        """The occlusions of the only row of a part; None if it is explained in another way."""
        return None

    def answerers(self, networks: Sequence[Any]) -> str:
        """A description of other contributions to the networks' outputs; "" for none."""
        return ""

    def side_attributions(
        self,
        part: Any,
        explained: Sequence[ExplainedOutput],
        learned: Learned,
        networks: Sequence[Any],
    ) -> tuple[LinearAttribution, ...]:
        """Attributions of the side scores inside the networks; () without side scores."""
        return ()

    def pack(self) -> Packed:
        """The learned part in the form of files."""
        return packed(self)


def saved_regression(inputs: Callable[[Any], int]) -> Arrays:
    """A regression on this number of inputs, in the stored form of a target's linear model."""
    return weights(
        lambda record: Regression(
            inputs(record), record.target.linear_width, record.target.regression
        )
    )


@dataclass(frozen=True)
class Learned:
    """Everything that is learned except weights. mixture: the mixture of network and linear model,
    if both contribute; temperature: the softmax temperature, if only networks answer.
    out_of_sample: see `FittedLinear`; not saved."""

    input: Annotated[Any, Derived("input")]  # a LearnedInput
    target: Annotated[Target, Kinds("targets")]
    linear: Annotated[Linear | None, Derived(lambda record: record.linear_of(record.target))] = None
    mixture: Annotated[Mixture | None, OfClass(lambda record: record.mixture_of(record))] = None
    temperature: Annotated[float, Range(above=0, high=1e6)] = 1.0
    out_of_sample: Annotated[Tensor | None, NOT_SAVED] = None

    @property
    def tokenisers(self) -> Tokenisers:
        tokenisers: Tokenisers = self.input.tokenisers
        return tokenisers

    @property
    def mixed_linear(self) -> Linear | None:
        """The linear model, if it contributes to answers."""
        return None if self.mixture is None else self.linear

    def combined(self, outputs: Sequence[Tensor], linear: Tensor | None) -> list[Tensor]:
        """z of each network, mixed with z of the linear model, or divided by the temperature."""
        if self.mixture is not None and linear is not None:
            return [self.target.mixed(self.mixture, z, linear) for z in outputs]
        if self.temperature != 1.0:
            return [z / self.temperature for z in outputs]
        return list(outputs)

    def rounded(self, rounding: Rounding) -> Learned:
        if self.mixed_linear is None:
            return self
        return replace(self, linear=self.mixed_linear.rounded(rounding))

    def pack(self) -> Packed:
        parts = [packed(self), self.input.pack()]
        if self.linear is not None:
            parts.append(self.linear.pack())
        return joined_pack(parts)


def joined_pack(parts: Sequence[Packed]) -> Packed:
    """Merges packed parts; names must differ."""
    facts: dict[str, Any] = {}
    vocabularies: dict[str, Any] = {}
    arrays: dict[str, NDArray[np.generic]] = {}
    for one in parts:
        facts |= one.facts
        vocabularies |= one.vocabularies
        arrays |= one.arrays
    return Packed(facts, vocabularies, arrays)

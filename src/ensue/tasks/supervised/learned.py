"""What a supervised model has learned, except the weights of its networks."""

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

Share = Literal["fitted"] | float | None  # of a linear model in the answer; None: it has none
Named = Mapping[str, Tensor]  # the inputs of an exported graph


class LinearQuestion(NamedTuple):
    """How an exported graph asks a linear model: further inputs, the steps to their values, and
    z (rows, outputs) of all inputs by name. scores: a module, so that an export stores its
    parameters as it stores those of the networks."""

    inputs: tuple[GraphInput, ...]
    steps: tuple[Step, ...]
    scores: nn.Module


class Linear(ABC):
    """A linear model of an input: what the network is compared with, or mixed with."""

    knows_validation: ClassVar[bool] = False  # whether it learns from the validation part too

    @property
    @abstractmethod
    def name(self) -> str:
        """As an evaluation calls it."""

    @abstractmethod
    def scores(self, part: Any) -> Tensor:
        """z (rows, outputs), as the target's linear width says."""

    def pack(self) -> Packed:
        """As files hold it; arrays under names that begin with `linear.`."""
        return packed(self)

    def rounded(self, rounding: Rounding) -> Linear:
        """With its matrix rounded, as an export stores it."""
        return self

    def question(self, model: ModelView) -> LinearQuestion | None:
        """How an export asks it; None where it cannot be exported."""
        return None

    def attributions(
        self, part: Any, explained: Sequence[ExplainedOutput], target: Target
    ) -> tuple[LinearAttribution, ...]:
        """Attributions of the parts of the only row; () without any."""
        return ()


class FittedLinear(NamedTuple):
    """held: z of the validation rows by models that did not learn from them, None where the model
    itself did not."""

    model: Linear
    out_of_sample: Tensor | None = None


class InputQuestion(NamedTuple):
    """How an exported graph reads an input: its inputs, the steps from a question to their values,
    and the encoder's batch of all inputs by name. piecewise: where it can be fed in pieces."""

    inputs: tuple[GraphInput, ...]
    steps: tuple[Step, ...]
    batch: Callable[[Named], Any]
    piecewise: Piecewise | None = None


class Occlusions(NamedTuple):
    """The only row of a part without each of its units. names: of the units; how: what takes the
    place of one; part: a row for each unit; inputs: of several inputs, how many units each has,
    by its name, which begins the names of its units."""

    names: tuple[str, ...]
    how: str
    part: Any
    inputs: Mapping[str, int] = {}


class LearnedInput(ABC):
    """What was learned of an input: vocabulary, scale, shape. by_unit: whether a row is explained
    by its occlusions, even where its steps could be."""

    by_unit: ClassVar[bool] = False

    @property
    def tokenisers(self) -> Tokenisers:
        """The tokenisers of the texts of parts, if there are any."""
        return Tokenisers(Tokeniser("spaces"))

    @abstractmethod
    def encode(self, part: Any, model: ModelView) -> Encoded:
        """A part as the networks read it."""

    @abstractmethod
    def encoder(self, model: ModelView) -> InputEncoder:
        """With fresh weights."""

    def side(self, model: ModelView, outputs: int) -> SideScores | None:
        """What is added to the scores of the output layer."""
        return None

    @abstractmethod
    def row_texts(self, part: Any) -> Callable[[int], tuple[str, str]]:
        """Where a row comes from, and its beginning."""

    def linear(
        self, train: Any, validation: Any, target: Target, model: ModelView
    ) -> FittedLinear | None:
        """The linear model of this input, if it has one."""
        return None

    def labelled(self, part: Any) -> Any:
        """A part with one label for each row, where its units have labels too."""
        return part

    def unit_targets(self, part: Any, target: Target) -> Ragged | None:
        """The target of each unit inside the rows; None where rows alone have targets."""
        return None

    def features(self, part: Any, model: ModelView) -> Tensor | None:
        """(rows, n): the dense features of a linear model; None where they are sparse."""
        return None

    def question(self, model: ModelView) -> InputQuestion:
        """How an export asks for it."""
        raise refuse("input", type(self).__name__)

    def members(self, model: ModelView) -> tuple[Sequence[nn.Module], tuple[Graph, ...]]:
        """The networks as an exported graph runs them, and the graphs that its steps run."""
        return list(model.networks), ()

    def vectors_graph(self, model: ModelView) -> Graph | None:
        """What makes the vectors of one input of several, where a graph of its own does."""
        return None

    def exported(self, model: ModelView) -> Exported | None:
        """The whole export of a model, where a question does not go through one graph once."""
        return None

    def remarks(self, train: Any, target: Target, model: ModelView) -> list[str]:
        """What a user should know of the training part."""
        return []

    def fact(self) -> str:
        """A line on what was learned; "" without anything to report."""
        return ""

    def encoder_facts(self, encoder: Any) -> list[str]:
        """What a trained encoder has learned that a person can read."""
        return []

    def occlusions(self, part: Any, model: ModelView) -> Occlusions | None:
        """The only row of a part, taken apart; None where it is explained in another way."""
        return None

    def answerers(self, networks: Sequence[Any]) -> str:
        """What contributes to the networks' outputs besides their layers; "" for nothing."""
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
        """As files hold it."""
        return packed(self)


def saved_regression(inputs: Callable[[Any], int]) -> Arrays:
    """A regression on this number of inputs, as a linear model of a target stores it."""
    return weights(
        lambda record: Regression(
            inputs(record), record.target.linear_width, record.target.regression
        )
    )


@dataclass(frozen=True)
class Learned:
    """mixture: of network and linear model, where both answer; temperature: of the softmax of a
    network that answers alone. out_of_sample: as `FittedLinear` has it; not saved."""

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
        """The linear model, where it answers with the network."""
        return None if self.mixture is None else self.linear

    def combined(self, outputs: Sequence[Tensor], linear: Tensor | None) -> list[Tensor]:
        """z of each network, mixed with that of the linear model, or tempered."""
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
    """All of them in one: names must differ."""
    facts: dict[str, Any] = {}
    vocabularies: dict[str, Any] = {}
    arrays: dict[str, NDArray[np.generic]] = {}
    for one in parts:
        facts |= one.facts
        vocabularies |= one.vocabularies
        arrays |= one.arrays
    return Packed(facts, vocabularies, arrays)

"""What the answer to a pair rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.errors import OptionError
from ensue.tasks.explaining.measures import MEASURES, Measure, Wanted
from ensue.tasks.explaining.methods import Sides
from ensue.tasks.explaining.rows import ExplainRows, RowExplainer, batch_of
from ensue.tasks.match.network import MatchBatch, MatchNetwork, network_outputs
from ensue.tasks.rows.part import Part
from ensue.tasks.task import Asked

if TYPE_CHECKING:
    from ensue.tasks.match.averaging import MatcherModel


class PairExplainer(RowExplainer):
    """The tokens of the first side, then those of the second."""

    def __init__(self, model: MatcherModel, part: Part, label: str | None) -> None:
        super().__init__(model, part)
        self._measure: Measure = MEASURES[model.learned.target.kind](model.learned.target)
        self.measure = self._measure.name
        self._wanted: list[Wanted] = self._measure.wanted(self._outputs(part), label)

    @property
    def wanted(self) -> Sequence[Wanted]:
        return self._wanted

    def _outputs(self, part: Part) -> list[Tensor]:
        model = self.model
        columns = model.learned.columns(part, model.text)
        return [network_outputs(own, columns, model.model.batch_tokens) for own in model.networks]

    def whole(self, part: Part) -> NDArray[np.float64]:
        return self._measure.whole(self._outputs(part), self.wanted)

    def _batch(self, part: Part, rows: int = 1) -> MatchBatch:
        columns = self.model.learned.columns(part, self.model.text)
        return MatchBatch(batch_of(columns.first, rows), batch_of(columns.second, rows))

    def embedded(self, network: nn.Module, part: Part) -> Sides:
        assert isinstance(network, MatchNetwork)
        batch = self._batch(part)
        return network.embed(batch.first.inputs), network.embed(batch.second.inputs)

    def outputs(self, network: nn.Module, sides: Sides) -> Tensor:
        assert isinstance(network, MatchNetwork)
        first, second = sides
        batch = self._batch(self.part, first.shape[1])
        z = network.scores_of(first, second, batch.first.lengths, batch.second.lengths)
        return self._measure.of_network(z, self.wanted)


class ExplainPair(ExplainRows):
    def explainer(self, model: MatcherModel, part: Part, asked: Asked) -> RowExplainer:
        return PairExplainer(model, part, asked.get("label"))

    def question(self, given: Any, asked: Asked) -> Any:
        return both_sides(given, asked)


def both_sides(given: Any, asked: Asked) -> Any:
    """A pair as it is; a text with the second one that was asked with it."""
    if not isinstance(given, str):
        return given
    if asked.get("second") is None:
        raise OptionError("--second: expected the text that --text is matched with, got none")
    return given, asked["second"]


def run_network(network: nn.Module, part: Part, model: MatcherModel) -> object:
    """A network over the rows of a part."""
    columns = model.learned.columns(part, model.text)
    return network_outputs(network, columns, model.model.batch_tokens)

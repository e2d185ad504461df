"""What the number of a sequence rests on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.tasks.baselines.contributions import text_contributions
from ensue.tasks.explaining.attribution import LinearAttribution
from ensue.tasks.explaining.linear import linear_attributions
from ensue.tasks.explaining.measures import NumberMeasure, Wanted
from ensue.tasks.explaining.pooled import PooledExplainer
from ensue.tasks.explaining.rows import ExplainRows, RowExplainer
from ensue.tasks.regress.outputs import RegressorModel, mixed_outputs, network_outputs
from ensue.tasks.rows.batch import Columns
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.words import texts_of
from ensue.tasks.task import Asked


class NumberExplainer(PooledExplainer):
    """The expected number, in units of the data."""

    def __init__(self, model: RegressorModel, part: Part) -> None:
        super().__init__(model, part)
        self.learned = model.learned
        self._measure = NumberMeasure(model.learned.target)
        self.measure = self.linear_measure = self._measure.name
        self._wanted = self._measure.wanted(self._outputs(part), None)

    @property
    def wanted(self) -> Sequence[Wanted]:
        return self._wanted

    def columns(self, part: Part) -> Columns:
        return self.learned.columns(part, self.model.text)

    def _outputs(self, part: Part) -> list[Tensor]:
        columns, model = self.columns(part), self.model
        outputs = [network_outputs(network, columns, model) for network in model.networks]
        return mixed_outputs(outputs, self.learned.baselines(part), model)

    def whole(self, part: Part) -> NDArray[np.float64]:
        return self._measure.whole(self._outputs(part), self.wanted)

    def measured(self, z: Tensor) -> Tensor:
        return self._measure.of_network(z, self.wanted)

    def answerers(self) -> str:
        mixture = self.learned.mixture
        return "" if mixture is None else f"network and linear model, {mixture}"

    def linear(self) -> tuple[LinearAttribution, ...]:
        learned, target = self.learned, self.learned.target
        if learned.mixture is None or learned.text_linear is None:
            return ()
        texts = texts_of(self.part)
        parts = text_contributions(learned.text_linear, texts, np.full((1, 1), target.spread))
        more = None if learned.beside is None else learned.beside.matrix(self.part)
        bias = learned.text_linear.without_text(more) * target.spread + target.mean
        words = [texts.words[k] for k in texts.rows.values]
        return linear_attributions(self.wanted, words, parts, bias)


class ExplainNumber(ExplainRows):
    def explainer(self, model: RegressorModel, part: Part, asked: Asked) -> RowExplainer:
        return NumberExplainer(model, part)


def run_network(network: nn.Module, part: Part, model: RegressorModel) -> object:
    """A network over the rows of a part."""
    return network_outputs(network, model.learned.columns(part, model.text), model)

"""Explanations of answers, for any input and target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.errors import OptionError
from ensue.tasks.abilities import NOTHING, RequestOptions
from ensue.tasks.any_model import AnyModel
from ensue.tasks.columns.cells import row_of_line
from ensue.tasks.explaining.attribution import Attribution, Attributions, LinearAttribution
from ensue.tasks.explaining.measures import Measure
from ensue.tasks.explaining.methods import Sides
from ensue.tasks.explaining.rows import ExplainRows, RowExplainer
from ensue.tasks.options import Option
from ensue.tasks.rows.inputs import Scale
from ensue.tasks.rows.part import Part
from ensue.tasks.supervised.network import StepEncoder, SupervisedNetwork

if TYPE_CHECKING:
    from ensue.tasks.supervised.task import SupervisedModel


class StepExplainer(RowExplainer):
    """Explains a row by its steps: words, letters or vectors; for a pair, of both sides."""

    def __init__(self, model: SupervisedModel, part: Part, label: str | None) -> None:
        super().__init__(model, part)
        self.learned, target = model.learned, model.learned.target
        self._measure: Measure = target.measure()
        self.measure, self.linear_measure = self._measure.name, self._measure.of_linear
        self.explained = self._measure.explained(self._outputs(part), label)

    @property
    def scale(self) -> Scale | None:
        scale: Scale | None = self.learned.input.inputs.scale
        return scale

    def _outputs(self, part: Part) -> list[Tensor]:
        from ensue.tasks.supervised.task import combined_outputs

        return combined_outputs(part, self.model)

    def whole(self, part: Part) -> NDArray[np.float64]:
        return self._measure.whole(self._outputs(part), self.explained)

    def _batch(self, part: Part, rows: int = 1) -> Any:
        """The only row, repeated `rows` times, with its real numbers in float64."""
        return self.learned.input.repeated(part, self.model, rows)

    def embedded(self, network: nn.Module, part: Part) -> Sides:
        assert isinstance(network, SupervisedNetwork)
        assert isinstance(network.reader, StepEncoder)
        return network.reader.embedded(self._batch(part))

    def outputs(self, network: nn.Module, sides: Sides) -> Tensor:
        assert isinstance(network, SupervisedNetwork)
        assert isinstance(network.reader, StepEncoder)
        batch = self._batch(self.part, sides[0].shape[1])
        z = network.scores_of(network.reader.read_steps(sides, batch), batch)
        if self.learned.mixture is None:  # only the network answers: with its temperature
            z = z / self.learned.temperature
        return self._measure.of_network(z, self.explained)

    def answerers(self) -> str:
        if self.learned.mixture is not None:
            return f"network and linear model, {self.learned.mixture}"
        return self.learned.input.answerers(self.model.networks)  # type: ignore[no-any-return]

    def linear(self) -> tuple[LinearAttribution, ...]:
        mixed, target = self.learned.mixed_linear, self.learned.target
        if mixed is not None:
            return mixed.attributions(self.part, self.explained, target)
        return self.learned.input.side_attributions(  # type: ignore[no-any-return]
            self.part, self.explained, self.learned, self.model.networks
        )


class ExplainUnits:
    """Occlusion of the units of a row: how much the measure falls when a unit is made neutral."""

    def __init__(self, option: Option) -> None:
        self.option = option

    def explain(
        self, model: AnyModel, inputs: Any, options: RequestOptions = NOTHING
    ) -> Attributions:
        """Explains the answer. options: label."""
        from ensue.tasks.supervised.task import combined_outputs

        model.must_be_fitted()
        row = (
            row_of_line(inputs)
            if isinstance(inputs, str) and inputs.lstrip()[:1] == "{"
            else inputs
        )
        learned, part = model.learned, model.reader.questions([row])
        measure: Measure = learned.target.measure()
        outputs = combined_outputs(part, model)
        explained = measure.explained(outputs, options.get("label"))
        units = learned.input.occlusions(part, model)
        assert units is not None
        whole = measure.whole(outputs, explained)[0]
        without = measure.whole(combined_outputs(units.part, model), explained)
        answers = tuple(
            Attribution(one.name, None, one.probability, float(output), tuple(scores.tolist()))
            for one, output, scores in zip(explained, whole, (whole - without).T, strict=True)
        )
        beside = (
            "" if learned.mixture is None else f" (network and linear model, {learned.mixture})"
        )
        return Attributions(
            units.names,
            tuple(units.inputs.values()) or (len(units.names),),
            "occlusion",
            units.how,
            measure.name,
            f"the whole answer{beside}",
            answers,
            inputs=tuple(units.inputs),
        )


class ExplainSteps(ExplainRows):
    """Explains a row by its steps."""

    def explain(
        self, model: AnyModel, inputs: Any, options: RequestOptions = NOTHING
    ) -> Attributions:
        """Explains several inputs by their units, and a single input by its steps."""
        model.must_be_fitted()
        if not model.learned.input.by_unit:
            return super().explain(model, inputs, options)
        for word, usual in (("method", "occlusion"), ("baseline", "")):
            if options.get(word, usual) != usual:
                raise OptionError(
                    f"--{word}: several inputs are always explained by occlusion, "
                    f"without a baseline; expected {usual or 'none'}, got {options[word]}"
                )
        return ExplainUnits(self.option).explain(model, inputs, options)

    def explainer(
        self, model: SupervisedModel, part: Part, options: RequestOptions
    ) -> RowExplainer:
        return StepExplainer(model, part, options.get("label"))

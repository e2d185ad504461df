"""The mean answer of several regressors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray
from torch import Tensor

from ensue.tasks.regress.outputs import RegressorModel, mixed_outputs, network_outputs
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.shown import shown_of
from ensue.tasks.targets.averaging import TargetAverages


class NumberAverages(TargetAverages):
    """Outputs are z (rows, width) of the scaled number, mixed with the linear model's."""

    def of_networks(self, part: Part, model: RegressorModel) -> list[Tensor]:
        return _mixed(part, self.baselines(part, model), model)

    def held(self, validation: Part, model: RegressorModel) -> list[NDArray[Any]]:
        held = model.learned.held
        linear = self.baselines(validation, model) if held is None else {"linear": held}
        return [z.numpy() for z in _mixed(validation, linear, model)]

    def baselines(self, part: Part, model: RegressorModel) -> dict[str, Tensor]:
        return model.learned.baselines(part)

    def shown(self, part: Part) -> Callable[[int], tuple[str, str]]:
        return shown_of(part)


def _mixed(part: Part, linear: Mapping[str, Tensor], model: RegressorModel) -> list[Tensor]:
    columns = model.learned.columns(replace(part, labels=None), model.text)
    outputs = [network_outputs(network, columns, model) for network in model.networks]
    return mixed_outputs(outputs, linear, model)

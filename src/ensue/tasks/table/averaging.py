"""The outputs of the networks of a table, and the mean answer of several."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import torch
from torch import Tensor, nn

from ensue.tasks.columns.cells import texts_of
from ensue.tasks.evaluation.report import preview
from ensue.tasks.model import Model
from ensue.tasks.rows.fixed_width import Arrays, taken
from ensue.tasks.rows.part import Part
from ensue.tasks.table.learned import LearnedTable
from ensue.tasks.table.network import TableNetwork
from ensue.tasks.table.settings import TableSettings
from ensue.tasks.targets.averaging import TargetAverages
from ensue.training.devices import device_of_weights, moved

AT_ONCE = 4096  # rows that the networks see together when they answer

RowModel = Model[TableSettings, Part, LearnedTable]


class CellAverages(TargetAverages):
    """Outputs are z (rows, width), mixed with the linear model's, which learned from the training
    part alone."""

    @torch.no_grad()
    def of_networks(self, part: Part, model: RowModel) -> list[Tensor]:
        """In float64: in float32 the last digits depend on which other rows are asked together."""
        inputs, width = model.learned.inputs(part, model.model), model.learned.target.width
        networks = [deepcopy(network).double() for network in model.networks]
        outputs = [network_outputs(network, inputs, width) for network in networks]
        return model.learned.mixed(outputs, inputs)

    @torch.no_grad()
    def baselines(self, part: Part, model: RowModel) -> dict[str, Tensor]:
        inputs = model.learned.inputs(part, model.model)
        return {"linear model": model.learned.linear_outputs(inputs)}

    def shown(self, part: Part) -> Callable[[int], tuple[str, str]]:
        texts = part.numbers.token_names

        def shown(row: int) -> tuple[str, str]:
            return part.names[row], preview(texts_of(texts[k] for k in part.inputs.row(row)))

        return shown


@torch.no_grad()
def network_outputs(network: nn.Module, arrays: Arrays, width: int) -> Tensor:
    """z (rows, width)."""
    assert isinstance(network, TableNetwork)
    rows = len(arrays["numbers"])
    inputs = {name: values for name, values in arrays.items() if name != "targets"}
    device = device_of_weights(network)
    found = [
        network.scores(moved(taken(inputs, slice(first, first + AT_ONCE)), device)).cpu()
        for first in range(0, rows, AT_ONCE)
    ]
    return torch.cat(found) if found else torch.zeros(0, width)

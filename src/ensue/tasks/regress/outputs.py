"""What the networks of a regressor give, and what becomes of it beside the linear model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from ensue.tasks.blocks.pooled_network import PooledNetwork
from ensue.tasks.model import Model
from ensue.tasks.regress.learned import LearnedNumber
from ensue.tasks.regress.settings import RegressorSettings
from ensue.tasks.rows.batch import Columns
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.source import in_batches

RegressorModel = Model[RegressorSettings, Part, LearnedNumber]


@torch.no_grad()
def network_outputs(network: nn.Module, columns: Columns, model: RegressorModel) -> Tensor:
    """z (rows, width)."""
    assert isinstance(network, PooledNetwork)
    found = torch.zeros(len(columns), model.learned.target.width)
    for rows, batch in in_batches(columns, network, 2 * model.model.batch_tokens):
        found[torch.from_numpy(rows)] = network.scores(batch).cpu()
    return found


def mixed_outputs(
    outputs: Sequence[Tensor], baselines: Mapping[str, Tensor], model: RegressorModel
) -> list[Tensor]:
    """z of each member, mixed with the numbers of the linear model where it answers, too."""
    mixture = model.learned.mixture
    if mixture is None:
        return list(outputs)
    (linear,) = baselines.values()
    return [mixture.outputs(z, linear) for z in outputs]

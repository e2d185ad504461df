"""A classifier for export: words or vectors in, the probability of each class out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ensue.tasks.baselines.mixture import BaselineMixture
from ensue.tasks.blocks.pooled_network import PooledNetwork
from ensue.tasks.exported import Exported, Graph, Piecewise, refuse
from ensue.tasks.model import Model
from ensue.tasks.rows.batch import SequenceBatch
from ensue.tasks.rows.exported import LinearScores, linear_member, read_steps
from ensue.tasks.targets.classes import THRESHOLD


class MeanOfMembers(nn.Module):
    """p = mean over the members of softmax(z), of several labels of σ(z): (batch, classes); each
    member's z mixed with that of a linear model, where there is one."""

    def __init__(
        self,
        members: Sequence[nn.Module],
        name: str,
        several: bool,
        linear: LinearScores | None = None,
        mixture: BaselineMixture | None = None,
    ) -> None:
        super().__init__()
        self.members, self.name, self.several = nn.ModuleList(members), name, several
        self.linear, self.mixture = linear, mixture

    def forward(self, x: Tensor, lengths: Tensor, *linear: Tensor) -> Tensor:
        batch = SequenceBatch({self.name: x}, lengths)
        found = [own.scores(batch) for own in self.members]  # type: ignore[operator]
        if self.linear is not None and self.mixture is not None:
            beside = self.linear(*linear)
            found = [self.mixture.scores(z, beside, self.several) for z in found]
        each = [z.sigmoid() if self.several else z.softmax(-1) for z in found]
        return torch.stack(each).mean(0)


def exported(model: Model[Any, Any, Any]) -> Exported:
    settings, learned = model.model, model.learned
    for network in model.networks:
        if not isinstance(network, PooledNetwork) or network.ngrams is not None:
            raise refuse("ngrams", "classify")
    if learned.beside is not None:
        raise refuse("columns", "classify")
    if learned.mixture is not None and learned.text_linear is None:
        raise refuse("ngrams", "classify")
    read = read_steps(learned.inputs, model.text)
    inputs, before, linear = read.inputs, read.steps, None
    if learned.text_linear is not None:
        linear, more = linear_member(learned.text_linear, learned.tokenisers.input, "classify")
        inputs, before = (*inputs, *more.inputs), (*before, *more.steps)
    members = list(model.networks)
    network = MeanOfMembers(members, inputs[0].name, settings.several, linear, learned.mixture)
    labels = {"labels": list(learned.labels.tokens), "several": settings.several}
    return Exported(
        "classify",
        (Graph("model", network, inputs, ("probabilities",)),),
        before,
        ({"step": "labels", **labels, "threshold": THRESHOLD},),
        Piecewise(),
    )

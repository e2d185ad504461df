"""A classifier for export: words or vectors in, the probability of each class out."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from ensue.tasks.blocks.pooled_network import PooledNetwork
from ensue.tasks.columns.exported_texts import TextMembers, text_question
from ensue.tasks.exported import Exported, Graph, refuse
from ensue.tasks.model import Model
from ensue.tasks.targets.classes import THRESHOLD
from ensue.tasks.targets.exported import Probabilities


class MeanOfMembers(nn.Module):
    """p = mean over the members of softmax(z), of several labels of σ(z): (batch, classes)."""

    def __init__(self, members: TextMembers, several: bool) -> None:
        super().__init__()
        self.members, self.answers = members, Probabilities(several)

    def forward(self, *given: Tensor) -> Tensor:
        found: Tensor = self.answers(self.members(*given))
        return found


def exported(model: Model[Any, Any, Any]) -> Exported:
    settings, learned = model.model, model.learned
    for network in model.networks:
        if not isinstance(network, PooledNetwork) or network.ngrams is not None:
            raise refuse("ngrams", "classify")
    if learned.mixture is not None and learned.text_linear is None:
        raise refuse("ngrams", "classify")

    def mixed(z: Tensor, linear: Tensor) -> Tensor:
        found: Tensor = learned.mixture.scores(z, linear, settings.several)
        return found

    asked = text_question(model, mixed)
    graph = Graph(
        "model", MeanOfMembers(asked.members, settings.several), asked.inputs, ("probabilities",)
    )
    labels = {"labels": list(learned.labels.tokens), "several": settings.several}
    after = ({"step": "labels", **labels, "threshold": THRESHOLD},)
    return Exported("classify", (graph,), asked.before, after, asked.piecewise)

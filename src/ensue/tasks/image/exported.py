"""A model of pictures for export: bytes in, the probability of each class out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from ensue.tasks.exported import BATCH, Exported, Graph, Input
from ensue.tasks.model import Model
from ensue.tasks.pictures.exported import picture_step
from ensue.tasks.targets.exported import answering


class Tempered(nn.Module):
    """p of z/T, the mean over the members."""

    def __init__(
        self, members: Sequence[nn.Module], temperature: float, answers: nn.Module
    ) -> None:
        super().__init__()
        self.members, self.temperature = nn.ModuleList(members), temperature
        self.answers = answers

    def forward(self, pictures: Tensor) -> Any:
        z = [own.scores(pictures) / self.temperature for own in self.members]  # type: ignore[operator]
        return self.answers(z)


def exported(model: Model[Any, Any, Any]) -> Exported:
    learned = model.learned
    answers = answering(learned.target)
    members = list(model.networks)
    network = Tempered(members, learned.temperature, answers.answers)
    graph = Graph("model", network, (Input("pictures", (BATCH, *learned.shape)),), answers.outputs)
    step = picture_step(learned.shape)
    return Exported("image", (graph,), (step,), answers.after)

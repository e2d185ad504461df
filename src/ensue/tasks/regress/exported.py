"""A regressor for export: words or vectors in, a number and its interval out."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from ensue.tasks.columns.exported_texts import TextMembers, text_question
from ensue.tasks.exported import Exported, Graph
from ensue.tasks.model import Model
from ensue.tasks.targets.exported import answering


class MixedNumbers(nn.Module):
    """What the target makes of z of each member."""

    def __init__(self, members: TextMembers, answers: nn.Module) -> None:
        super().__init__()
        self.members, self.answers = members, answers

    def forward(self, *given: Tensor) -> Any:
        return self.answers(self.members(*given))


def exported(model: Model[Any, Any, Any]) -> Exported:
    learned, answers = model.learned, answering(model.learned.target)

    def mixed(z: Tensor, linear: Tensor) -> Tensor:
        found: Tensor = learned.mixture.outputs(z, linear)
        return found

    asked = text_question(model, mixed)
    network = MixedNumbers(asked.members, answers.answers)
    graph = Graph("model", network, asked.inputs, answers.outputs)
    return Exported("regress", (graph,), asked.before, answers.after, asked.piecewise)

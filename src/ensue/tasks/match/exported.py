"""A matcher for export: two texts or sequences in, classes or a score out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from ensue.tasks.exported import Exported, Graph
from ensue.tasks.match.network import MatchBatch
from ensue.tasks.model import Model
from ensue.tasks.rows.batch import SequenceBatch
from ensue.tasks.rows.exported import read_steps
from ensue.tasks.targets.exported import answering

SECOND = "second_"  # begins the names of the second side


class Matched(nn.Module):
    def __init__(self, members: Sequence[nn.Module], name: str, answers: nn.Module) -> None:
        super().__init__()
        self.members, self.name, self.answers = nn.ModuleList(members), name, answers

    def forward(self, x: Tensor, lengths: Tensor, second: Tensor, second_lengths: Tensor) -> Any:
        both = MatchBatch(
            SequenceBatch({self.name: x}, lengths),
            SequenceBatch({self.name: second}, second_lengths),
        )
        return self.answers([own.scores(both) for own in self.members])  # type: ignore[operator]


def exported(model: Model[Any, Any, Any]) -> Exported:
    learned, sides = model.learned, ("first_text", "second_text")
    first = read_steps(learned.inputs, model.text, sides[0])
    second = read_steps(learned.inputs, model.text, sides[1], SECOND)
    answers = answering(learned.target)
    members = list(model.networks)
    network = Matched(members, first.inputs[0].name, answers.answers)
    graph = Graph("model", network, (*first.inputs, *second.inputs), answers.outputs)
    apart = {"step": "pair", "from": "question", "to": list(sides)}
    return Exported("match", (graph,), (apart, *first.steps, *second.steps), answers.after)

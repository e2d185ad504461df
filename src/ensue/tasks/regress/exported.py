"""A regressor for export: words or vectors in, a number and its interval out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from ensue.tasks.baselines.mixture import NumberMixture
from ensue.tasks.exported import Exported, Graph, Piecewise, refuse
from ensue.tasks.model import Model
from ensue.tasks.rows.batch import SequenceBatch
from ensue.tasks.rows.exported import LinearScores, linear_member, read_steps
from ensue.tasks.targets.exported import answering


class MixedNumbers(nn.Module):
    """z of each member, mixed with the number of a linear model where there is one."""

    def __init__(
        self,
        members: Sequence[nn.Module],
        name: str,
        answers: nn.Module,
        linear: LinearScores | None,
        mixture: NumberMixture | None,
    ) -> None:
        super().__init__()
        self.members, self.name, self.answers = nn.ModuleList(members), name, answers
        self.linear, self.mixture = linear, mixture

    def forward(self, x: Tensor, lengths: Tensor, *linear: Tensor) -> Any:
        batch = SequenceBatch({self.name: x}, lengths)
        found = [own.scores(batch) for own in self.members]  # type: ignore[operator]
        if self.linear is not None and self.mixture is not None:
            beside = self.linear(*linear)
            found = [self.mixture.outputs(z, beside) for z in found]
        return self.answers(found)


def exported(model: Model[Any, Any, Any]) -> Exported:
    learned = model.learned
    if learned.beside is not None:
        raise refuse("columns", "regress")
    read, answers = read_steps(learned.inputs, model.text), answering(learned.target)
    inputs, before, linear = read.inputs, read.steps, None
    if learned.text_linear is not None:
        linear, more = linear_member(learned.text_linear, learned.tokenisers.input, "regress")
        inputs, before = (*inputs, *more.inputs), (*before, *more.steps)
    members = list(model.networks)
    network = MixedNumbers(members, inputs[0].name, answers.answers, linear, learned.mixture)
    graph = Graph("model", network, inputs, answers.outputs)
    return Exported("regress", (graph,), before, answers.after, Piecewise())

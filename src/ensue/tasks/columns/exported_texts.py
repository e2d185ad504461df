"""A text, alone or with columns beside it, and the linear model beside a network, for export."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ensue.tasks.columns.beside import MOST_CATEGORIES, ColumnsBeside
from ensue.tasks.columns.exported import CATEGORIES, NUMBERS, column_inputs, row_step
from ensue.tasks.columns.network import CATEGORIES as CATEGORIES_BESIDE
from ensue.tasks.columns.network import NUMBERS as NUMBERS_BESIDE
from ensue.tasks.exported import Input, Piecewise, Step
from ensue.tasks.model import Model
from ensue.tasks.rows.batch import SequenceBatch
from ensue.tasks.rows.exported import COLUMNS, VALUES, LinearScores, linear_steps, read_steps

TEXT = "text"
Mixed = Callable[[Tensor, Tensor], Tensor]  # z of a network and of the linear model


class TextMembers(nn.Module):
    """z (batch, k) of each network, mixed with that of a linear model where there is one."""

    def __init__(
        self,
        members: Sequence[nn.Module],
        inputs: Sequence[Input],
        linear: LinearScores | None,
        mixed: Mixed,
        beside: ColumnsBeside | None,
    ) -> None:
        super().__init__()
        self.members, self.names = nn.ModuleList(members), [own.name for own in inputs]
        self.linear, self.mixed, self.beside = linear, mixed, beside

    def forward(self, *given: Tensor) -> list[Tensor]:
        named = dict(zip(self.names, given, strict=True))
        steps = {self.names[0]: given[0]}
        if self.beside is not None:
            steps |= {NUMBERS_BESIDE: named[NUMBERS], CATEGORIES_BESIDE: named[CATEGORIES]}
        batch = SequenceBatch(steps, named["lengths"])
        found = [own.scores(batch) for own in self.members]  # type: ignore[operator]
        if self.linear is None:
            return found
        z = self.linear(named[COLUMNS], named[VALUES], self._dense(named))
        return [self.mixed(own, z) for own in found]

    def _dense(self, named: dict[str, Tensor]) -> Tensor | None:
        """The columns as the linear model sees them: numbers, and the most frequent categories as
        zeros and ones."""
        if self.beside is None:
            return None
        parts = [named[NUMBERS]]
        for k, own in enumerate(self.beside.columns.categories):
            kinds = torch.arange(1, min(len(own.categories), MOST_CATEGORIES) + 1)
            parts.append((named[CATEGORIES][:, k, None] == kinds).to(torch.float32))
        return torch.cat(parts, 1)


class TextQuestion(NamedTuple):
    """members: the networks and the linear model as one; before: the steps to their inputs."""

    members: TextMembers
    inputs: tuple[Input, ...]
    before: tuple[Step, ...]
    piecewise: Piecewise | None


def text_question(model: Model[Any, Any, Any], mixed: Mixed) -> TextQuestion:
    """Of a model that reads a text or a sequence, columns beside it, and mixes in a linear model.
    A question with columns is a row by column name."""
    learned = model.learned
    beside: ColumnsBeside | None = learned.beside
    column = str(model.roles.get("text", ""))
    asked = "question" if beside is None else TEXT
    read = read_steps(learned.inputs, model.text, asked, column="" if beside else column)
    inputs, before, linear = read.inputs, read.steps, None
    if beside is not None:
        text = {"name": column or TEXT, "to": TEXT}
        before = ({**row_step(beside.columns, gaps=True), TEXT: text}, *before)
        inputs = (*inputs, *column_inputs(beside.columns))
    if learned.text_linear is not None:
        linear = LinearScores(learned.text_linear)
        more = linear_steps(learned.text_linear.features, learned.tokenisers.input)
        inputs, before = (*inputs, *more.inputs), (*before, *more.steps)
    members = TextMembers(list(model.networks), inputs, linear, mixed, beside)
    return TextQuestion(members, inputs, before, Piecewise() if beside is None else None)

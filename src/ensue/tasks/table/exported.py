"""A model of tables for export: numbers, categories and dates in, the column to predict out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ensue.tasks.columns.exported import (
    CATEGORIES,
    NUMBERS,
    column_inputs,
    features_read,
    row_step,
)
from ensue.tasks.exported import Exported, Graph
from ensue.tasks.model import Model
from ensue.tasks.table.learned import BASELINE_CATEGORIES, LearnedTable
from ensue.tasks.targets.classes import SeveralTarget
from ensue.tasks.targets.exported import answering


class TableAnswers(nn.Module):
    """Every member's z, mixed with that of the linear model where both answer."""

    def __init__(
        self, members: Sequence[nn.Module], learned: LearnedTable, answers: nn.Module
    ) -> None:
        super().__init__()
        self.members, self.answers = nn.ModuleList(members), answers
        self.mixture, self.several = learned.mixture, isinstance(learned.target, SeveralTarget)
        self.linear = learned.linear if learned.mixture is not None else None
        self.columns = learned.columns
        self.features = learned.columns.features.layer()  # an α that is learned, as it begins
        self.names = [own.name for own in column_inputs(learned.columns)]

    def forward(self, *given: Tensor) -> Any:
        batch = dict(zip(self.names, given, strict=True))
        if self.features is not None:
            batch["features"] = features_read(self.columns.features, batch)
        found = [own.scores(batch) for own in self.members]  # type: ignore[operator]
        if self.linear is not None and self.mixture is not None:
            beside = self.linear.scores(self._dense(batch))
            found = [self.mixture.scores(z, beside, self.several) for z in found]
        return self.answers(found)

    def _dense(self, batch: dict[str, Tensor]) -> Tensor:
        """Numbers, features, and each column's most frequent categories as zeros and ones."""
        numbers, categories = batch[NUMBERS], batch[CATEGORIES]
        parts = [numbers] if self.features is None else [numbers, self.features(batch["features"])]
        for k, own in enumerate(self.columns.categories):
            kinds = torch.arange(1, min(len(own.categories), BASELINE_CATEGORIES) + 1)
            parts.append((categories[:, k, None] == kinds).to(numbers.dtype))
        return torch.cat(parts, 1)


def exported(model: Model[Any, Any, Any]) -> Exported:
    learned = model.learned
    answers = answering(learned.target)
    network = TableAnswers(list(model.networks), learned, answers.answers)
    graph = Graph("model", network, column_inputs(learned.columns), answers.outputs)
    before = row_step(learned.columns, model.model.missing != "error")
    return Exported("table", (graph,), (before,), answers.after)

"""A model of tables for export: numbers and categories in, the column to predict out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ensue.data.series import MISSING
from ensue.tasks.columns.features import NO_FEATURES
from ensue.tasks.exported import BATCH, Exported, Graph, Input, refuse
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
        self.counts = [len(own.categories) for own in learned.columns.categories]

    def forward(self, numbers: Tensor, categories: Tensor) -> Any:
        batch = {"numbers": numbers, "categories": categories}
        found = [own.scores(batch) for own in self.members]  # type: ignore[operator]
        if self.linear is not None and self.mixture is not None:
            beside = self.linear.scores(self._dense(numbers, categories))
            found = [self.mixture.scores(z, beside, self.several) for z in found]
        return self.answers(found)

    def _dense(self, numbers: Tensor, categories: Tensor) -> Tensor:
        """Each column's most frequent categories as zeros and ones."""
        parts = [numbers]
        for k, count in enumerate(self.counts):
            kinds = torch.arange(1, min(count, BASELINE_CATEGORIES) + 1)
            parts.append((categories[:, k, None] == kinds).to(numbers.dtype))
        return torch.cat(parts, 1)


def exported(model: Model[Any, Any, Any]) -> Exported:
    learned, columns = model.learned, model.learned.columns
    if columns.features != NO_FEATURES:
        raise refuse("features", "table")
    answers = answering(learned.target)
    members = list(model.networks)
    least = min((len(own.categories) + 1 for own in columns.categories), default=1)
    inputs = (
        Input("numbers", (BATCH, columns.width)),
        Input("categories", (BATCH, len(columns.categories)), least),
    )
    before = {
        "step": "row",
        "from": "question",
        "numbers": [
            {
                "name": own.name,
                "mean": own.mean,
                "spread": own.spread,
                "indicator": own.indicator,
            }
            for own in columns.numbers
        ],
        "categories": [
            {"name": own.name, "categories": list(own.categories)} for own in columns.categories
        ],
        "missing": sorted(MISSING),
        "gaps": model.model.missing != "error",
    }
    network = TableAnswers(members, learned, answers.answers)
    graph = Graph("model", network, inputs, answers.outputs)
    return Exported("table", (graph,), (before,), answers.after)

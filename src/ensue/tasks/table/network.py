"""The network of a model of tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from ensue.tasks.table.features import TableFeatures
from ensue.tasks.table.settings import TableSettings
from ensue.training import Carried

MOST_WIDE = 16  # numbers of a category's vector, where the settings do not say

Cost = Callable[[Tensor, Tensor], Tensor]


class Category(nn.Module):
    """Numbers 0 … count of a column (rows,) → (rows, width): a learned vector, or zeros and a
    one. Number 0, of categories that training has not, is a zero vector until it occurs."""

    def __init__(self, count: int, settings: TableSettings) -> None:
        super().__init__()
        self.count = count
        self.table: nn.Embedding | None = None
        if settings.categories == "one-hot":
            self.width = count
            return
        self.width = settings.embedding_size or min(MOST_WIDE, math.ceil(count / 2) + 1)
        self.table = nn.Embedding(count + 1, self.width)
        with torch.no_grad():
            self.table.weight[0] = 0

    def forward(self, ids: Tensor) -> Tensor:
        if self.table is None:
            return one_hot(ids, self.count + 1)[:, 1:].to(torch.get_default_dtype())
        found: Tensor = self.table(ids)
        return found


class TableNetwork(nn.Module):
    """numbers (rows, n), categories (rows, c) and what features read (rows, f), where there are
    features → z (rows, outputs); its call is the cost."""

    def __init__(
        self,
        width: int,
        counts: Sequence[int],
        outputs: int,
        cost: Cost,
        settings: TableSettings,
        features: TableFeatures | None = None,
    ) -> None:
        super().__init__()
        self.cost, self.features = cost, features
        columns = [Category(count, settings) for count in counts]
        inputs = width + sum(column.width for column in columns)
        inputs += 0 if features is None else features.width
        self.columns = nn.ModuleList(columns)
        self.layers = settings.network(inputs, outputs)

    def scores(self, batch: Mapping[str, Tensor]) -> Tensor:
        """z (rows, outputs)."""
        numbers, ids = batch["numbers"], batch["categories"]
        found = [column(ids[:, k]) for k, column in enumerate(self.columns)]
        dtype = next(self.layers.parameters()).dtype
        if self.features is not None:
            found.append(self.features(batch["features"].to(dtype)))
        z: Tensor = self.layers(torch.cat([numbers.to(dtype), *found], -1))
        return z

    def forward(self, batch: Mapping[str, Tensor], carried: Carried) -> tuple[Tensor, Carried]:
        return self.cost(self.scores(batch), batch["targets"]).sum(), {}

"""The network of a model of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from ensue.tasks.columns.features import TableFeatures
from ensue.tasks.columns.network import Category
from ensue.tasks.table.settings import TableSettings
from ensue.training import Carried

Cost = Callable[[Tensor, Tensor], Tensor]


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
        one_hot, wide = settings.categories == "one-hot", settings.embedding_size
        columns = [Category(count, wide, one_hot=one_hot) for count in counts]
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

"""Columns as a network takes them: numbers as they are, a vector for each category."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot, relu

NUMBERS, CATEGORIES = "column_numbers", "column_categories"  # of a batch
MOST_WIDE = 16  # numbers of a category's vector, where the settings do not say


class Category(nn.Module):
    """Numbers 0 … count of a column (rows,) → (rows, width): a learned vector, or zeros and a
    one. Number 0, of categories that training has not, is a zero vector until it occurs."""

    def __init__(self, count: int, width: int | None = None, *, one_hot: bool = False) -> None:
        super().__init__()
        self.count = count
        self.table: nn.Embedding | None = None
        if one_hot:
            self.width = count
            return
        self.width = width or min(MOST_WIDE, math.ceil(count / 2) + 1)
        self.table = nn.Embedding(count + 1, self.width)
        with torch.no_grad():
            self.table.weight[0] = 0

    def forward(self, ids: Tensor) -> Tensor:
        if self.table is None:
            return one_hot(ids, self.count + 1)[:, 1:].to(torch.get_default_dtype())
        found: Tensor = self.table(ids)
        return found


class ColumnVector(nn.Module):
    """What is known of a row beside its sequence, as one vector: c = [u, relu(A·u + a)], with u the
    numbers (rows, n) and the vectors of the categories (rows, k) side by side.

    counts: how many categories each column has; units: rows of A, 0 for u alone."""

    def __init__(self, numbers: int, counts: Sequence[int], units: int) -> None:
        super().__init__()
        columns = [Category(count) for count in counts]
        inputs = numbers + sum(column.width for column in columns)
        self.columns = nn.ModuleList(columns)
        self.hidden = nn.Linear(inputs, units) if units else None
        self.width = inputs + units

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """(rows, width)."""
        numbers, ids = inputs[NUMBERS], inputs[CATEGORIES]
        found = [column(ids[:, k]) for k, column in enumerate(self.columns)]
        u = torch.cat([numbers, *found], -1)
        return u if self.hidden is None else torch.cat([u, relu(self.hidden(u))], -1)

"""Pooling: one vector for a whole sequence, of its real steps only; zero for an empty row.

Each takes y (time, batch, width), final (batch, final width) and lengths (batch).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import torch
from pydantic import AfterValidator
from torch import Tensor, nn

from ensue.errors import OptionError, unknown
from ensue.layers.lengths import step_mask
from ensue.settings import Expected


class Pool(nn.Module):
    """One way of pooling, and the width of what it gives."""

    width: int


class Last(Pool):
    """The state after the last real step."""

    def __init__(self, width: int, final_width: int) -> None:
        super().__init__()
        self.width = final_width

    def forward(self, y: Tensor, final: Tensor, lengths: Tensor) -> Tensor:
        return final


class Mean(Pool):
    """Σ_t y_t / length."""

    def __init__(self, width: int, final_width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, y: Tensor, final: Tensor, lengths: Tensor) -> Tensor:
        own = lengths.to(y.device)
        total = torch.where(step_mask(own, y.shape[0])[..., None], y, 0).sum(0)
        return total / own.clamp(min=1)[:, None]


class Max(Pool):
    """max_t y_t, feature by feature."""

    def __init__(self, width: int, final_width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, y: Tensor, final: Tensor, lengths: Tensor) -> Tensor:
        if not len(y):
            return y.new_zeros(y.shape[1:])
        own = lengths.to(y.device)
        real = step_mask(own, y.shape[0])[..., None]
        highest = y.masked_fill(~real, -torch.inf).amax(0)
        return torch.where((own > 0)[:, None], highest, 0)


class AttentionPooling(Pool):
    """Σ_t α_t y_t with α = softmax over t of v·tanh(W·y_t + b)."""

    def __init__(self, width: int, final_width: int) -> None:
        super().__init__()
        self.width = width
        self.hidden = nn.Linear(width, width)
        self.score = nn.Linear(width, 1, bias=False)

    def weights(self, y: Tensor, lengths: Tensor) -> Tensor:
        """α (time, batch): one at a row's real steps together, zero at padding."""
        real = step_mask(lengths.to(y.device), y.shape[0])
        scores: Tensor = self.score(torch.tanh(self.hidden(y)))[..., 0]
        lowest = torch.finfo(scores.dtype).min  # finite: a row without steps is no 0/0
        return scores.masked_fill(~real, lowest).softmax(0) * real

    def forward(self, y: Tensor, final: Tensor, lengths: Tensor) -> Tensor:
        return (self.weights(y, lengths)[..., None] * y).sum(0)


POOLINGS: dict[str, Callable[[int, int], Pool]] = {
    "last": Last,
    "mean": Mean,
    "max": Max,
    "attention": AttentionPooling,
}


class Pooling(nn.Module):
    """Poolings by name side by side: "max", "mean+max", "last+attention" → (batch, width)."""

    def __init__(self, names: str, width: int, final_width: int) -> None:
        super().__init__()
        self.names = names.split("+")
        for name in self.names:
            if name not in POOLINGS:
                raise unknown("pooling", name, POOLINGS)
        if len(set(self.names)) < len(self.names):
            raise OptionError(f"pooling: expected each name once, got {names!r}")
        parts = [POOLINGS[name](width, final_width) for name in self.names]
        self.parts, self.width = nn.ModuleList(parts), sum(part.width for part in parts)

    def forward(self, y: Tensor, final: Tensor, lengths: Tensor) -> Tensor:
        return torch.cat([part(y, final, lengths) for part in self.parts], -1)

    def attention(self, y: Tensor, lengths: Tensor) -> Tensor:
        """α (time, batch) of the pooling by attention."""
        for part in self.parts:
            if isinstance(part, AttentionPooling):
                return part.weights(y, lengths)
        raise OptionError(
            f"pooling: {'+'.join(self.names)} has no attention weights; use attention, or "
            f"{'+'.join([*self.names, 'attention'])}"
        )


def known_pooling(pooling: str) -> str:
    """A setting such as "max" or "mean+attention"; ValueError where a part of it is unknown."""
    for name in pooling.split("+"):
        if name not in POOLINGS:
            raise ValueError(str(unknown("pooling", name, POOLINGS)))
    return pooling


PoolingName = Annotated[  # as a setting
    str,
    AfterValidator(known_pooling),
    Expected(f"{', '.join(POOLINGS)}, or several: mean+attention"),
]
POOLED = "How the steps of a sequence become one vector."

"""What a source is made of, and the layer that reads it: words, or vectors of numbers."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn


@dataclass(frozen=True)
class SourceSize:
    """words: of its vocabulary; or features: numbers of a vector."""

    words: int = 0
    features: int = 0


class VectorTable(nn.Module):
    """W·v + b in the place of a word's vector."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.map = nn.Linear(features, width)

    def forward(self, vectors: Tensor) -> Tensor:
        """(time, batch, features) → (time, batch, width)."""
        found: Tensor = self.map(vectors)
        return found

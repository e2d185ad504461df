"""Scores over a vocabulary, and their cost."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from ensue.engine.softmax import softmax_cost, softmax_costs


class Output(nn.Module):
    """Scores z = W·y + b over the vocabulary.

    tied: an embedding whose matrix is W; y then has its width."""

    def __init__(self, words: int, width: int, tied: nn.Embedding | None) -> None:
        super().__init__()
        if tied is None:
            self.weight = nn.Parameter(torch.empty(words, width).uniform_(-0.1, 0.1))
        else:
            self.weight = cast(nn.Parameter, tied.weight)
        self.bias = nn.Parameter(torch.zeros(words))

    def cost(
        self, y: Tensor, targets: Tensor, real: Tensor | None = None, smoothing: float = 0.0
    ) -> Tensor:
        """y (time, batch, width) → Σ −log p(target) over the real targets (time, batch); None: all.

        smoothing ε: this share of the targets' probability is spread over the whole vocabulary."""
        rows, numbers = y.flatten(0, 1), targets.flatten()
        if real is not None:
            real_steps = real.flatten()
            rows, numbers = rows[real_steps], numbers[real_steps]
        return softmax_cost(rows, self.weight, self.bias, numbers, smoothing)

    def costs(self, y: Tensor, targets: Tensor) -> Tensor:
        """The cost of each target; shape (time, batch)."""
        row_costs = softmax_costs(y.flatten(0, 1), self.weight, self.bias, targets.flatten())
        return row_costs.view(targets.shape)

    def log_probabilities(self, y: Tensor) -> Tensor:
        """y (…, width) → (…, words)."""
        return linear(y, self.weight, self.bias).log_softmax(-1)

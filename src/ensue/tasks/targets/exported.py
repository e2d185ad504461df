"""The exported answers of targets, from the outputs of networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ensue.tasks.blocks.distributions import Distribution, Gaussian, Mixture
from ensue.tasks.exported import Step

BISECTIONS = 32  # bisections for a mixture's quantile: beyond the precision of float32


class Answering(NamedTuple):
    """How an export answers. answers: a module from z of each member to the outputs; after: the
    steps on these outputs."""

    answers: nn.Module
    outputs: tuple[str, ...]
    after: tuple[Step, ...]


class Probabilities(nn.Module):
    """The mean over the members of softmax(z), or of σ(z) for several labels; shape (batch,
    classes)."""

    def __init__(self, several: bool) -> None:
        super().__init__()
        self.several = several

    def forward(self, outputs: Sequence[Tensor]) -> Tensor:
        each = [z.sigmoid() if self.several else z.softmax(-1) for z in outputs]
        return torch.stack(each).mean(0)


class Numbers(nn.Module):
    """(batch, 1) each: the expected value and both ends of the interval with probability `share`,
    averaged over members. mean, spread: mean and spread of the data, to undo the scaling."""

    def __init__(
        self, distribution: Distribution, share: float, mean: float, spread: float
    ) -> None:
        super().__init__()
        self.distribution, self.share = distribution, share
        self.mean, self.spread = mean, spread

    def forward(self, outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        share = self.share
        numbers = [
            [self.distribution.mean(z) for z in outputs],
            [self._quantile(z, (1 - share) / 2) for z in outputs],
            [self._quantile(z, (1 + share) / 2) for z in outputs],
        ]
        return tuple(torch.stack(each).mean(0) * self.spread + self.mean for each in numbers)

    def _quantile(self, z: Tensor, q: float) -> Tensor:
        distribution = self.distribution
        away = float(torch.special.ndtri(torch.tensor(q, dtype=torch.float64)))
        if isinstance(distribution, Gaussian):
            middle, sigma = distribution.parameters(z)
            return middle + sigma.mul(away)
        assert isinstance(distribution, Mixture)
        log_weight, mean, spread = distribution.parameters(z)
        weight, ends = log_weight.exp(), mean + spread * away
        low, high = ends.amin(-1), ends.amax(-1)
        for _ in range(BISECTIONS):
            middle = low + (high - low) / 2
            below = 0.5 + 0.5 * torch.erf((middle[..., None] - mean) / spread / 2**0.5)
            enough = (weight * below).sum(-1) >= q
            low, high = torch.where(enough, low, middle), torch.where(enough, middle, high)
        quantile: Tensor = high
        return quantile

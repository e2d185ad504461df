"""What a target makes of the outputs of a network, for export."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ensue.tasks.blocks.distributions import Gaussian, Mixture
from ensue.tasks.exported import Step
from ensue.tasks.targets.classes import THRESHOLD, ClassTarget, LabelTarget, SeveralTarget
from ensue.tasks.targets.numbers import NumberTarget
from ensue.tasks.targets.target import Target

BISECTIONS = 32  # of a mixture's quantile: beyond the digits of float32


class Answering(NamedTuple):
    """answers: a module from z of each member to the outputs; after: the steps on these."""

    answers: nn.Module
    outputs: tuple[str, ...]
    after: tuple[Step, ...]


class Probabilities(nn.Module):
    """(batch, classes): the mean over the members of softmax(z), of several labels of σ(z)."""

    def __init__(self, several: bool) -> None:
        super().__init__()
        self.several = several

    def forward(self, outputs: Sequence[Tensor]) -> Tensor:
        each = [z.sigmoid() if self.several else z.softmax(-1) for z in outputs]
        return torch.stack(each).mean(0)


class Numbers(nn.Module):
    """(batch, 1) each: the expected value and both ends of its interval, the means over members."""

    def __init__(self, target: NumberTarget) -> None:
        super().__init__()
        self.target = target

    def forward(self, outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        own, share = self.target.distribution, self.target.share
        found = [
            [own.mean(z) for z in outputs],
            [self._quantile(z, (1 - share) / 2) for z in outputs],
            [self._quantile(z, (1 + share) / 2) for z in outputs],
        ]
        return tuple(
            torch.stack(each).mean(0) * self.target.spread + self.target.mean for each in found
        )

    def _quantile(self, z: Tensor, q: float) -> Tensor:
        own = self.target.distribution
        away = float(torch.special.ndtri(torch.tensor(q, dtype=torch.float64)))
        if isinstance(own, Gaussian):
            middle, sigma = own.parameters(z)
            return middle + sigma.mul(away)
        assert isinstance(own, Mixture)
        log_weight, mean, spread = own.parameters(z)
        weight, ends = log_weight.exp(), mean + spread * away
        low, high = ends.amin(-1), ends.amax(-1)
        for _ in range(BISECTIONS):
            middle = low + (high - low) / 2
            below = 0.5 + 0.5 * torch.erf((middle[..., None] - mean) / spread / 2**0.5)
            enough = (weight * below).sum(-1) >= q
            low, high = torch.where(enough, low, middle), torch.where(enough, middle, high)
        found: Tensor = high
        return found


def answering(target: Target) -> Answering:
    """For a target of any kind."""
    if isinstance(target, NumberTarget):
        step: Step = {"step": "number", "share": target.share}
        return Answering(Numbers(target), ("value", "low", "high"), (step,))
    assert isinstance(target, LabelTarget)
    several = isinstance(target, SeveralTarget)
    labels = {"labels": list(target.labels.tokens), "several": several, "threshold": THRESHOLD}
    if isinstance(target, ClassTarget) and target.threshold is not None and target.width == 2:
        labels |= {"rare": target.rare, "threshold": target.threshold}
    return Answering(Probabilities(several), ("probabilities",), ({"step": "labels", **labels},))

"""A network whose first layer is left as it was drawn, and whose last is solved for exactly.

    φ(x) = g(U·x + c), U and c random and fixed;   ŷ = W·φ(x) + b, W and b by least squares

No descent and one solution: a baseline, and the measure of what it is worth to tune all layers.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ensue.errors import OptionError
from ensue.layers.activations import Activated
from ensue.layers.feedforward import MLP
from ensue.tasks.baselines.regression import least_squares


class RandomFeatures(nn.Module):
    """(…, inputs) → (…, outputs), the same network as MLP([inputs, units, outputs]).

    scale: the standard deviation of U and c, which says how wildly the features bend."""

    def __init__(
        self,
        inputs: int,
        units: int,
        outputs: int,
        *,
        activation: Activated = "tanh",
        scale: float = 1.0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if scale <= 0:
            raise OptionError(f"scale: expected a number > 0, got {scale}")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = MLP([inputs, units, outputs], activation)
            first = self.network.layers[0]
            for own in first.parameters(recurse=False):
                nn.init.normal_(own, 0.0, scale)
        for own in first.parameters():
            own.requires_grad_(False)

    def features(self, x: Tensor) -> Tensor:
        """φ(x): (…, units)."""
        return self.network.walk(x)[0].a

    @torch.no_grad()
    def solve(self, x: Tensor, y: Tensor, ridge: float = 0.0) -> RandomFeatures:
        """The readout for x (rows, inputs) and y (rows, outputs), in closed form."""
        last = self.network.layers[1]
        weight, bias = least_squares(self.features(x), y, ridge)
        for own, found in zip(last.parameters(), (weight, bias), strict=True):
            own.copy_(found)
        return self

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.network(x)
        return found

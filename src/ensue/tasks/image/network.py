"""The network of a model of pictures: bytes in, scores of classes out; disturbed in training."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import affine_grid, grid_sample

from ensue.layers.convolution import ConvolutionNet
from ensue.tasks.blocks.distributions import Categorical
from ensue.training import Carried


@dataclass(frozen=True)
class Disturbance:
    """Data augmentation: pictures moved, turned and stretched a little, each in another way, so
    that what is learned does not depend on where exactly a thing is. Everything is drawn from
    torch's generator.

    shift: at most, as a share of height and width; rotate: degrees at most; zoom: so much larger
    or smaller at most; flip: left and right exchanged, half of the time."""

    shift: float = 0.0
    rotate: float = 0.0
    zoom: float = 0.0
    flip: bool = False

    def __bool__(self) -> bool:
        return bool(self.shift or self.rotate or self.zoom or self.flip)

    def maps(self, rows: int, height: int, width: int) -> Tensor:
        """(rows, 2, 3): where each picture looks in the old one, in halves of its width and
        height from the centre."""
        turn, zoom, across, down, side = (2 * torch.rand(5, rows) - 1).unbind()
        turn, zoom = turn * math.radians(self.rotate), 1 + zoom * self.zoom
        across, down = 2 * self.shift * across, 2 * self.shift * down
        side = torch.where(side < 0, -1.0, 1.0) if self.flip else torch.ones(rows)
        cos, sin = zoom * turn.cos(), zoom * turn.sin()
        long = height / width  # a turn is one of pixels, not of halves
        first = torch.stack([side * cos, -sin * long, across], 1)
        second = torch.stack([side * sin / long, cos, down], 1)
        return torch.stack([first, second], 1)

    def __call__(self, x: Tensor) -> Tensor:
        """x (rows, channels, height, width); beyond the edge its last pixels go on."""
        maps = self.maps(len(x), *x.shape[2:]).to(x)
        grid = affine_grid(maps, list(x.shape), align_corners=False)
        return grid_sample(x, grid, padding_mode="border", align_corners=False)


class ImageNetwork(nn.Module):
    """z = net((x − mean)/spread) of pictures x in bytes, each channel by its own mean and spread;
    the cost is −log softmax(z)_y, summed over the batch."""

    mean: Tensor
    spread: Tensor

    def __init__(
        self, net: ConvolutionNet, mean: Tensor, spread: Tensor, disturbance: Disturbance
    ) -> None:
        super().__init__()
        self.net, self.disturbance = net, disturbance
        for name, values in (("mean", mean), ("spread", spread)):
            self.register_buffer(name, values.float()[:, None, None], persistent=False)

    def scores(self, pictures: Tensor) -> Tensor:
        """z (rows, classes)."""
        x = (pictures.to(self.mean) - self.mean) / self.spread
        if self.training and self.disturbance:
            x = self.disturbance(x)
        found: Tensor = self.net(x)
        return found

    def forward(self, batch: dict[str, Tensor], carried: Carried) -> tuple[Tensor, Carried]:
        costs = Categorical().cost(self.scores(batch["pictures"]), batch["targets"])
        return costs.sum(), {}

"""What a network of pictures must beat: softmax regression on pixels."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from ensue.tasks.baselines.regression import Regression, minimise

SIDE = 28  # larger pictures are averaged to so many places in height and width
MOST_ROWS = 60_000  # that it is fitted to
ITERATIONS, RIDGE = 60, 1e-3


def feature_count(shape: tuple[int, int, int]) -> int:
    """Of pictures of channels, height and width."""
    channels, height, width = shape
    return channels * min(height, SIDE) * min(width, SIDE)


def pixel_features(pictures: NDArray[np.uint8]) -> Tensor:
    """(rows, features) between 0 and 1."""
    x = torch.from_numpy(np.array(pictures)).float() / 255
    height, width = (min(side, SIDE) for side in x.shape[2:])
    return adaptive_avg_pool2d(x, (height, width)).flatten(1)


def pixel_regression(
    pictures: NDArray[np.uint8], targets: NDArray[np.int64], classes: int
) -> Regression:
    """Fitted to the pictures, of very many to some of all parts of their order."""
    count = min(len(pictures), MOST_ROWS)
    rows = np.linspace(0, len(pictures) - 1, count).round().astype(np.int64)
    x, y = pixel_features(pictures[rows]), torch.from_numpy(targets[rows])
    found = Regression(x.shape[1], classes, "softmax")

    def cost() -> Tensor:
        return found.costs(x, y).mean() + RIDGE / 2 * (found.weight**2).sum()

    minimise(found, cost, ITERATIONS)
    return found

"""The outputs of the networks of pictures, and the mean answer of several."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.tasks.image.baseline import pixel_features
from ensue.tasks.image.learned import LearnedPictures
from ensue.tasks.image.network import ImageNetwork
from ensue.tasks.image.settings import ImageSettings
from ensue.tasks.model import Model
from ensue.tasks.pictures.part import PicturePart
from ensue.tasks.targets.averaging import TargetAverages
from ensue.training.devices import device_of_weights

AT_ONCE = 500  # pictures that the networks see together when they answer

PictureModel = Model[ImageSettings, PicturePart, LearnedPictures]


class PictureAverages(TargetAverages):
    """Outputs are z/T (rows, classes)."""

    def of_networks(self, part: PicturePart, model: PictureModel) -> list[Tensor]:
        learned = model.learned
        outputs = [
            network_outputs(net, part.pixels, learned.target.width) for net in model.networks
        ]
        return [z / learned.temperature for z in outputs]

    @torch.no_grad()
    def baselines(self, part: PicturePart, model: PictureModel) -> dict[str, Tensor]:
        return {"linear model": model.learned.linear.scores(pixel_features(part.pixels))}

    def shown(self, part: PicturePart) -> Callable[[int], tuple[str, str]]:
        return lambda row: (part.names[row], "")


@torch.no_grad()
def network_outputs(network: nn.Module, pictures: NDArray[np.uint8], classes: int) -> Tensor:
    """z (rows, classes)."""
    assert isinstance(network, ImageNetwork)
    device = device_of_weights(network)
    found = []
    for first in range(0, len(pictures), AT_ONCE):
        some = torch.from_numpy(np.array(pictures[first : first + AT_ONCE]))
        found.append(network.scores(some.to(device)).cpu())
    return torch.cat(found) if found else torch.zeros(0, classes)

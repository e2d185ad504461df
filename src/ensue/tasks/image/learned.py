"""What a model of pictures learns from its training part, beside the weights of its networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ensue.tasks import checks
from ensue.tasks.baselines.regression import Regression
from ensue.tasks.image.baseline import feature_count, pixel_regression
from ensue.tasks.image.settings import ImageSettings
from ensue.tasks.pictures.part import PicturePart, Shape, saved_shape
from ensue.tasks.saved import Saved
from ensue.tasks.targets.classes import ClassTarget
from ensue.tasks.task import Packed

LEVELS = np.arange(256)


@dataclass(frozen=True)
class LearnedPictures:
    """shape: of all pictures; mean, spread (channels,): of the brightness; linear: softmax
    regression on pixels, to compare with; temperature: of the softmax, for calibration."""

    shape: Shape
    mean: NDArray[np.float64]
    spread: NDArray[np.float64]
    target: ClassTarget
    linear: Regression
    temperature: float = 1.0

    @classmethod
    def learn(cls, train: PicturePart, settings: ImageSettings) -> LearnedPictures:
        with torch.device("meta"):  # an error about sizes comes before any long work
            settings.network(train.shape, 2)
        mean, spread = brightness(train.pixels)
        target = ClassTarget.learn(train)
        linear = pixel_regression(train.pixels, target.encode(train), target.width)
        return cls(train.shape, mean, spread, target, linear)

    def arrays(self, part: PicturePart) -> dict[str, NDArray[Any]]:
        """A labelled part as the networks see it."""
        return {"pictures": part.pixels, "targets": self.target.encode(part)}

    # ------------------------------------------------------------- as files
    def pack(self) -> Packed:
        facts = {
            "shape": list(self.shape),
            "temperature": self.temperature,
            "goal": self.target.facts(),
        }
        arrays: dict[str, NDArray[Any]] = {
            f"linear.{name}": values for name, values in self.linear.arrays().items()
        }
        arrays |= {"brightness.mean": self.mean, "brightness.spread": self.spread}
        return Packed(facts, {}, arrays)

    @classmethod
    def unpack(cls, saved: Saved) -> LearnedPictures:
        shape, target = saved_shape(saved.facts), ClassTarget.of_facts(saved.facts["goal"])
        scale, sizes = saved.part("brightness"), (feature_count(shape), target.width)
        return cls(
            shape,
            checks.array(shape[:1], checks.DOUBLE)(scale.get("mean"), "brightness.mean"),
            checks.array(shape[:1], checks.DOUBLE, above=0)(
                scale.get("spread"), "brightness.spread"
            ),
            target,
            Regression.from_arrays(saved.part("linear"), ClassTarget.regression, *sizes),
            checks.number(above=0, high=1e6)(saved.facts["temperature"], "temperature"),
        )


def brightness(pictures: NDArray[np.uint8]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and spread of each channel (1 where all pixels are alike), from how often each of the
    256 levels occurs. pictures: (rows, channels, height, width)."""
    counts = [np.bincount(channel.ravel(), minlength=256) for channel in pictures.swapaxes(0, 1)]
    share = np.stack(counts) / max(pictures[:, 0].size, 1)
    mean = share @ LEVELS
    variance = (share * (LEVELS - mean[:, None]) ** 2).sum(1)
    return mean, np.where(variance > 0, np.sqrt(variance), 1.0)

"""Forecasts of many windows at once, turned back into levels, with the bounds of drawn paths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from ensue.tasks.forecast.intervals import Levels
from ensue.tasks.forecast.networks import ForecastNetwork
from ensue.tasks.forecast.scale import ForecastScale
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.tasks.forecast.windows import Origins, Windows, in_batches
from ensue.training.devices import device_of_weights, moved

Array = NDArray[np.float64]

DRAWN_AT_ONCE = 4_000_000  # numbers in memory


def drawn_at_once(settings: ForecastSettings) -> int:
    """Windows whose paths are drawn together."""
    return max(1, DRAWN_AT_ONCE // (settings.paths * settings.horizon * settings.outputs))


@torch.no_grad()
def rolled(
    networks: Sequence[ForecastNetwork],
    scale: ForecastScale,
    windows: Windows,
    levels: Array,
    origins: Origins,
    owner: Origins,
    seed: int,
    asked: Sequence[float] = (),
) -> Levels:
    """The mean of the networks from these origins, and an interval of all of their paths. levels:
    (steps, columns), those of the windows; owner: the series of each window; seed: of the paths of
    every window; asked: levels of quantiles."""
    settings = windows.settings
    size = drawn_at_once(settings)
    back = np.arange(-settings.difference, 0)
    found: list[Levels] = []
    for some, own in zip(in_batches(origins, size), in_batches(owner, size), strict=True):
        batch = moved(windows.batch(some), device_of_weights(networks[0]))
        before = levels[some[None] + back[:, None], : scale.targets]
        points = torch.stack([network.point(batch) for network in networks])
        point = scale.to_levels(_targets(points.mean(0), scale), before, own)
        generator = torch.Generator().manual_seed(seed)
        drawn = [network.paths(batch, settings.paths, generator) for network in networks]
        paths = [_targets(path, scale) for path in drawn if path is not None]
        if not paths:
            found.append(Levels.of_point(point, len(asked)))
            continue
        outside = (1 - settings.interval) / 2
        sampled = scale.to_levels(np.concatenate(paths), before, own)
        low, high, *more = np.quantile(sampled, [outside, 1 - outside, *asked], axis=0)
        found.append(Levels(point, low, high, np.reshape(more, (len(asked), *point.shape))))
    return Levels.joined(found)


def _targets(found: torch.Tensor, scale: ForecastScale) -> Array:
    return found[..., : scale.targets].double().cpu().numpy()

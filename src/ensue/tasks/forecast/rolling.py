"""Forecasts of many windows at once, turned back into levels, with the bounds of drawn paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ensue.tasks.forecast.networks import ForecastNetwork
from ensue.tasks.forecast.scale import ForecastScale
from ensue.tasks.forecast.windows import Origins, Windows, in_batches
from ensue.training.devices import device_of_weights, moved

Array = NDArray[np.float64]

DRAWN_AT_ONCE = 4_000_000  # numbers in memory


class Levels(NamedTuple):
    """(horizon, windows, targets) each; where no paths can be drawn, the bounds are the point."""

    point: Array
    low: Array
    high: Array


@torch.no_grad()
def rolled(
    networks: Sequence[ForecastNetwork],
    scale: ForecastScale,
    windows: Windows,
    levels: Array,
    origins: Origins,
    seed: int,
) -> Levels:
    """The mean of the networks from these origins, and an interval of all of their paths. levels:
    (steps, columns), those of the windows; seed: of the paths of every window."""
    settings = windows.settings
    size = max(1, DRAWN_AT_ONCE // (settings.paths * settings.horizon * settings.outputs))
    back = np.arange(-settings.difference, 0)
    found: list[Levels] = []
    for some in in_batches(origins, size):
        batch = moved(windows.batch(some), device_of_weights(networks[0]))
        before = levels[some[None] + back[:, None], : scale.targets]
        points = torch.stack([network.point(batch) for network in networks])
        point = scale.to_levels(_targets(points.mean(0), scale), before)
        generator = torch.Generator().manual_seed(seed)
        drawn = [network.paths(batch, settings.paths, generator) for network in networks]
        paths = [_targets(path, scale) for path in drawn if path is not None]
        if not paths:
            found.append(Levels(point, point, point))
            continue
        outside = (1 - settings.interval) / 2
        sampled = scale.to_levels(np.concatenate(paths), before)
        low, high = np.quantile(sampled, [outside, 1 - outside], axis=0)
        found.append(Levels(point, low, high))
    return Levels(*(np.concatenate(parts, 1) for parts in zip(*found, strict=True)))


def _targets(found: torch.Tensor, scale: ForecastScale) -> Array:
    return found[..., : scale.targets].double().cpu().numpy()

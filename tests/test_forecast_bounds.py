"""The bounds of a forecast are quantiles of the drawn paths, the lower one below."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from ensue.tasks.forecast.forecasts import rolled

PATHS, HORIZON, WINDOWS = 101, 2, 3
LEVELS = np.zeros((10, 1))
ORIGINS = np.array([4, 5, 6])


class Even:
    """Says 0, and draws paths that lie evenly from −1 to 1 (or a multiple)."""

    def __init__(self, reach: float | None) -> None:
        self.reach = reach

    def point(self, batch: Any) -> torch.Tensor:
        return torch.zeros(HORIZON, len(batch), 1)

    def paths(self, batch: Any, count: int, generator: torch.Generator) -> torch.Tensor | None:
        if self.reach is None:
            return None
        even = torch.linspace(-self.reach, self.reach, count)
        return even[:, None, None, None].expand(count, HORIZON, len(batch), 1)


def backtest(interval: float, *networks: Even) -> Any:
    settings = SimpleNamespace(
        paths=PATHS, horizon=HORIZON, outputs=1, difference=0, interval=interval
    )
    windows = SimpleNamespace(settings=settings, batch=lambda some: some)
    scale = SimpleNamespace(targets=1, to_levels=lambda values, before, owner: values)
    return rolled(networks, scale, windows, LEVELS, ORIGINS, np.zeros(3, int), seed=0)


@pytest.mark.parametrize("interval", [0.5, 0.8, 0.9])
def test_an_interval_holds_its_share_of_the_paths(interval: float) -> None:
    levels = backtest(interval, Even(1.0))
    assert levels.point.shape == levels.low.shape == (HORIZON, WINDOWS, 1)
    assert levels.low == pytest.approx(np.full_like(levels.low, -interval), abs=1e-6)
    assert levels.high == pytest.approx(np.full_like(levels.high, interval), abs=1e-6)
    wider = backtest(interval, Even(1.0), Even(3.0))  # all paths of all networks together
    assert (wider.low < levels.low).all()
    assert (wider.high > levels.high).all()


def test_without_paths_the_bounds_are_the_point() -> None:
    levels = backtest(0.9, Even(None))
    assert (levels.low == levels.point).all()
    assert (levels.high == levels.point).all()

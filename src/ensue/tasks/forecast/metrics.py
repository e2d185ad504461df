"""Errors of forecasts, over arrays (horizon, windows, targets)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Units(NamedTuple):
    """What errors are counted in, for each target: the spread of the training part, and the mean
    error of its seasonal naive forecast."""

    spread: Array
    season: Array


def errors(truth: Array, point: Array, units: Units) -> dict[str, float]:
    """mae, rmse: in the units of the data; mape, smape in percent (mape only where no truth is 0);
    mase: mae of each target over that of the seasonal naive forecast of its training part;
    scaled: with every target divided by its spread in the training part."""
    off = point - truth
    found = {"mae": float(np.abs(off).mean()), "rmse": math.sqrt(float((off**2).mean()))}
    size = np.abs(truth)
    if size.min() > 0:
        found["mape"] = 100 * float((np.abs(off) / size).mean())
    both = size + np.abs(point)
    share = np.divide(2 * np.abs(off), both, out=np.zeros_like(off), where=both > 0)
    found["smape"] = 100 * float(share.mean())
    if units.season.min() > 0:
        found["mase"] = float((np.abs(off).mean((0, 1)) / units.season).mean())
    scaled = off / units.spread
    found["scaled mae"] = float(np.abs(scaled).mean())
    found["scaled mse"] = float((scaled**2).mean())
    return found


def inside(truth: Array, low: Array, high: Array) -> NDArray[np.bool_]:
    """Where an interval holds what came."""
    return np.asarray((low <= truth) & (truth <= high))


class Ahead(NamedTuple):
    """One step ahead, over all windows: scaled by the spread of each target where there are
    several."""

    step: int
    mae: float
    rmse: float
    coverage: float


def by_step(truth: Array, point: Array, low: Array, high: Array, unit: Array) -> list[Ahead]:
    off = (point - truth) / unit
    mae, rmse = np.abs(off).mean((1, 2)), np.sqrt((off**2).mean((1, 2)))
    held = inside(truth, low, high).mean((1, 2))
    return [Ahead(k + 1, float(mae[k]), float(rmse[k]), float(held[k])) for k in range(len(truth))]

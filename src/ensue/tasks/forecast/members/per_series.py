"""Shared code of members with separate parameters for each series: aligned series, and the best of
many candidate parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ensue.tasks.forecast.members.ground import Ground
from ensue.tasks.forecast.series import Id, Series, Steps, ranges

Array = NDArray[np.float64]
Cost = Callable[[Array, Array], Array]  # of y and candidates: (series, targets, tried)

LONGEST = 1500  # maximum last steps to which parameters are fitted
MOST_AT_ONCE = 3_000_000  # numbers in memory
LARGEST = 60.0  # logarithm of a forecast


def outward(values: Array, transform: str) -> Array:
    """The inverse of a transform: values in the units of the data."""
    return values if transform == "none" else np.exp(np.minimum(values, LARGEST))


def side_by_side(ground: Ground, transform: str, floor: Array, longest: int | None = None) -> Array:
    """The last `longest` steps of each series, or all; NaN for missing
    values and after the end of a series; shape (steps, series, targets)."""
    series = ground.series
    ends = series.bounds[1:]
    firsts = series.bounds[:-1]
    if longest is not None:
        firsts = np.maximum(firsts, ends - longest)
    steps, lengths = ranges(firsts, ends), ends - firsts
    level = ground.level(transform, floor)[ground.at]
    known = np.isfinite(series.values[:, : level.shape[1]])
    side = np.full((int(lengths.max()), len(lengths), level.shape[1]), np.nan)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    rows = ranges(np.zeros_like(lengths), lengths)
    side[rows, owner] = np.where(known[steps], level[steps], np.nan)
    return side


def parameters_of(parameters: Array, ids: Sequence[Id], series: Series) -> Array:
    """The parameters (series, targets, …) of these series; a series that training did not have gets
    typical ones."""
    if tuple(ids) == series.ids or len(ids) == 1:
        return np.broadcast_to(parameters, (series.count, *parameters.shape[1:]))
    known = {key: k for k, key in enumerate(ids)}
    typical = np.median(parameters, 0, keepdims=True)
    every = np.concatenate([parameters, typical])
    return every[[known.get(key, -1) for key in series.ids]]


def by_steps(series: Series, dense: Array) -> Array:
    """(steps, targets) from aligned series (steps, series, targets)."""
    steps: Steps = np.arange(len(series)) - series.starts
    return np.asarray(dense[steps, series.owner])


def least(y: Array, tried: Array, cost: Cost, numbers: int) -> Array:
    """The candidates with the smallest cost, (series, targets, k), among `tried` (series, targets,
    tried, k). numbers: how many numbers each step and candidate needs in memory."""
    solutions = []
    size = max(1, MOST_AT_ONCE // max(1, tried.shape[1] * tried.shape[2] * numbers))
    for first in range(0, tried.shape[0], size):
        some = tried[first : first + size]
        at = cost(y[:, first : first + size], some).argmin(-1)[..., None, None]
        solutions.append(np.take_along_axis(some, at, 2)[:, :, 0])
    return np.concatenate(solutions)

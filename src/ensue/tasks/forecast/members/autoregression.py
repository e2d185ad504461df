"""Autoregression by least squares: a step from earlier steps and sines of the calendar; further
steps from its own forecasts.

w_t = c + Σ_k a_k·w_{t−k} + Σ_p b_p·(sin, cos)(2π·t/p) + e_t

w is y or log y, or its changes from step to step. `ridge` regresses each step ahead on the past
separately, so short series have few windows for many weights; here all steps share the weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from ensue.tasks.declarations import Range, Shape
from ensue.tasks.forecast.members.ground import Ground, harmonics
from ensue.tasks.forecast.members.per_series import outward
from ensue.tasks.forecast.members.sizes import BackSteps, Floor, Level, Periods
from ensue.tasks.forecast.series import Steps

Array = NDArray[np.float64]

PAIRS = 2  # sine and cosine of a period, and of its half
RIDGE = 1e-4  # relative to the variance of each input
MOST_STEPS = 20_000  # maximum last steps from which weights are solved
EMPTY = np.zeros(0)


@dataclass(frozen=True)
class AutoregressiveMember:
    """An autoregression with sines and cosines. lags: number of earlier steps; difference: times
    that y is differenced, 0 or 1; weight (targets, inputs): weights of the lags, newest first, then
    of the sines and cosines; bias (targets,)."""

    transform: Level
    lags: BackSteps
    difference: Annotated[int, Range(low=0, high=1)]
    periods: Periods
    floor: Floor
    weight: Annotated[
        Array,
        Shape("settings.targets", lambda member: member.lags + 2 * PAIRS * len(member.periods)),
    ] = field(default_factory=lambda: EMPTY)
    bias: Annotated[Array, Shape("settings.targets")] = field(default_factory=lambda: EMPTY)

    kind = "autoregression"

    @property
    def name(self) -> str:
        of = "" if self.transform == "none" else " of log"
        changes = " of changes" * self.difference
        return f"AR({self.lags}){changes}{of}" + " with the calendar" * bool(self.periods)

    def fitted(
        self, ground: Ground, origins: Steps | None = None, horizon: int = 1
    ) -> AutoregressiveMember:
        """Fits the weights to every step with enough steps before it."""
        series = ground.series
        steps = np.arange(len(series))
        after = steps - series.starts >= self.lags + self.difference
        steps = steps[after][-MOST_STEPS:]
        place = ground.at[steps]
        w = self._changes(ground)
        waves = harmonics(ground.clock[place], self.periods, PAIRS)
        weights, biases = [], []
        for k in range(w.shape[1]):
            known = np.isfinite(series.values[steps, k])
            lags = w[place[known, None] - 1 - np.arange(self.lags), k]
            weight, bias = _solved(np.concatenate([lags, waves[known]], 1), w[place[known], k])
            weights.append(weight)
            biases.append(bias)
        return replace(self, weight=np.stack(weights), bias=np.array(biases))

    def forecasts(self, ground: Ground, origins: Steps, horizon: int) -> Array:
        """Forecasts (horizon, windows, targets) in the units of the data."""
        place, last = ground.at_origin(origins), ground.at[origins - 1]
        w = self._changes(ground)
        back = w[np.maximum(place[:, None] - 1 - np.arange(self.lags), 0)]  # the newest first
        clock, level = ground.clock[last], ground.level(self.transform, self.floor)[last]
        lag_weight, wave_weight = self.weight[:, : self.lags], self.weight[:, self.lags :]
        predicted = []
        for h in range(horizon):
            waves = harmonics(clock + h + 1, self.periods, PAIRS)
            now = np.einsum("wlt,tl->wt", back, lag_weight) + waves @ wave_weight.T + self.bias
            back = np.concatenate([now[:, None], back[:, :-1]], 1)
            level = level + now if self.difference else now
            predicted.append(level)
        return outward(np.stack(predicted), self.transform)

    def _changes(self, ground: Ground) -> Array:
        """w at all steps of the ground."""
        level = ground.level(self.transform, self.floor)
        return np.diff(level, axis=0, prepend=level[:1]) if self.difference else level


def _solved(x: Array, y: Array) -> tuple[Array, float]:
    """weight (inputs,) and bias; 0 if there is nothing to learn from."""
    if not len(x):
        return np.zeros(x.shape[1]), 0.0
    centre, middle = x.mean(0), float(y.mean())
    off = x - centre
    normal = off.T @ off
    size = np.maximum(normal.diagonal(), 1e-12 * max(float(normal.diagonal().max()), 1e-12))
    weight = np.linalg.solve(normal + RIDGE * np.diag(size), off.T @ (y - middle))
    return weight, middle - float(weight @ centre)

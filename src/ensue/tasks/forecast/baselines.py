"""What a network must beat: the last value, that of a season ago, a weighted sum of the window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ensue.tasks.forecast.networks import LinearForecast
from ensue.tasks.forecast.scale import ForecastScale
from ensue.tasks.forecast.series import Series
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.tasks.forecast.windows import Origins, Windows, each, in_batches

Array = NDArray[np.float64]

LEAST_PEAK, SURELY = 0.2, 4.0  # of an autocorrelation, itself and in errors of chance
NEAR = 0.85  # of the highest peak: the first as high as this is the season, not a multiple of it
RIDGE = 1e-3  # of the linear baseline
ROUNDS, LONGEST = 3, 1000  # seasons that the series must hold; steps of a season


def season_of(values: Array) -> int:
    """Steps of a season of values (steps, targets): the first high peak of the autocorrelation of
    their differences, taken as a mean over the targets; 1 where there is none.

    >>> season_of(np.sin(2 * np.pi * np.arange(60) / 12)[:, None])
    12
    """
    changes = np.diff(values, axis=0)
    changes = changes - changes.mean(0)
    spread = changes.std(0)
    changes = changes[:, spread > 0] / spread[spread > 0]
    most = min(len(values) // ROUNDS, LONGEST)
    if most < 2 or not changes.shape[1]:
        return 1
    size = 2 * len(changes)
    power = np.abs(np.fft.rfft(changes, size, axis=0)) ** 2
    found = np.fft.irfft(power, size, axis=0)[: most + 2].mean(1)
    found = found / found[0]  # not by the steps of each lag: long lags are rarely sure
    lags = np.arange(2, min(most + 1, len(found) - 1))
    peaks = lags[(found[lags] > found[lags - 1]) & (found[lags] >= found[lags + 1])]
    peaks = peaks[found[peaks] > max(LEAST_PEAK, SURELY / len(changes) ** 0.5)]
    if not len(peaks):
        return 1
    return int(peaks[found[peaks] >= NEAR * found[peaks].max()][0])


def repeated(values: Array, origins: Origins, horizon: int, season: int) -> Array:
    """The steps ahead are those of the last season over again, (horizon, windows, targets); with
    a season of 1 they are the last value."""
    back = season - np.arange(horizon) % season
    return np.asarray(values[origins[None, :] - back[:, None]])


def season_error(values: Array, season: int) -> Array:
    """Mean |y_t − y_{t−season}| of each target: the unit of MASE."""
    return np.asarray(np.abs(values[season:] - values[:-season]).mean(0))


@torch.no_grad()
def solve(network: LinearForecast, windows: Windows, origins: Origins, ridge: float) -> None:
    """The weights of least Σ(y − ŷ)² + λ·Σw² over these windows, λ being `ridge` times the mean
    of Σx²: sums of products over the windows, in float64, then one system of equations."""
    look_back, horizon = windows.settings.look_back, windows.settings.horizon
    width = look_back + horizon + 1
    products = torch.zeros(width, width, dtype=torch.float64)
    for some in in_batches(origins):
        batch = windows.batch(some)
        normal = network.normalisation(batch)
        x, y = network.inward(batch, normal), normal.inward(batch.target)
        pairs = torch.cat([x[..., : network.outputs], y]).flatten(1).double()
        pairs = torch.cat([pairs, torch.ones(1, pairs.shape[1], dtype=torch.float64)])
        products += pairs @ pairs.T
    count, sums = products[-1, -1], products[-1, :-1]
    centred = products[:-1, :-1] - sums[:, None] * sums / count
    inputs, both = centred[:look_back, :look_back], centred[:look_back, look_back:]
    penalty = ridge * inputs.diagonal().mean()
    penalised = inputs + torch.diag(torch.full((look_back,), float(penalty), dtype=torch.float64))
    # a window whose inputs never change (the last value is taken off itself) has no weight
    weight = torch.linalg.lstsq(penalised, both, driver="gelsd").solution.T
    means = sums / count
    network.weight.copy_(weight)
    network.bias.copy_(means[look_back:] - weight @ means[:look_back])


@dataclass(frozen=True)
class Baselines:
    """Learned from the training part. linear: the targets as they are, the last value taken off
    each window; none where the network is that very model."""

    season: int
    scale: ForecastScale
    linear: LinearForecast
    settings: ForecastSettings
    beside: bool

    @classmethod
    def untrained(cls, season: int, scale: ForecastScale, model: ForecastSettings) -> Baselines:
        changed: dict[str, Any] = {"family": "linear", "transform": "none", "difference": 0}
        changed |= {"normalise": "last", "covariates": [], "known": [], "calendar": []}
        settings = model.model_copy(update=changed)
        return cls(season, scale, LinearForecast(settings), settings, settings != model)

    @classmethod
    def of(cls, train: Series, settings: ForecastSettings) -> Baselines:
        targets = train.values[:, : len(settings.targets)]
        season = settings.season or season_of(targets)
        found = cls.untrained(season, ForecastScale.plain(targets), settings)
        origins = np.arange(settings.look_back, len(train) - settings.horizon + 1)
        solve(found.linear, found._windows(train), origins, RIDGE)
        return found

    def _windows(self, series: Series) -> Windows:
        targets = series.values[:, : self.scale.targets]
        z = (targets - self.scale.mean) / self.scale.spread
        return Windows(np.ascontiguousarray(z, np.float32), self.settings)

    @torch.no_grad()
    def forecasts(self, series: Series, origins: Origins) -> dict[str, Array]:
        """By name, in the units of the data."""
        values, horizon = series.values[:, : self.scale.targets], self.settings.horizon
        found = {"naive": repeated(values, origins, horizon, 1)}
        if self.season > 1:
            found["seasonal naive"] = repeated(values, origins, horizon, self.season)
        if self.beside:
            z = each(self.linear.point, self._windows(series), origins)
            found["linear model"] = z * self.scale.spread + self.scale.mean
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        weights = {key: value.numpy() for key, value in self.linear.state_dict().items()}
        return {**weights, **self.scale.arrays()}

    @classmethod
    def of_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], season: int, settings: ForecastSettings
    ) -> Baselines:
        """The inverse of `arrays`."""
        known = dict(arrays)
        weights = {key: torch.from_numpy(known.pop(key).copy()) for key in ("weight", "bias")}
        found = cls.untrained(season, ForecastScale("none", 0, **known), settings)
        found.linear.load_state_dict(weights)
        return found

"""Baselines of forecasts: the last value, the value a season ago, and a weighted sum of the
window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ensue.files.opening import SEASON
from ensue.tasks.codec import weights
from ensue.tasks.declarations import NEXT_TO, Derived, Let, Range
from ensue.tasks.forecast.networks import LinearForecast
from ensue.tasks.forecast.part import Origins, Windows, each, in_batches
from ensue.tasks.forecast.scale import ForecastScale
from ensue.tasks.forecast.seasons import repeated, season_of_series, seasonally_filled
from ensue.tasks.forecast.series import Series, ranges
from ensue.tasks.forecast.settings import ForecastSettings

Array = NDArray[np.float64]

RIDGE = 1e-3  # of the linear baseline


@torch.no_grad()
def solve(network: LinearForecast, windows: Windows, origins: Origins, ridge: float) -> None:
    """Sets the weights that minimise Σ(y − ŷ)² + λ·Σw² over these windows; λ is `ridge` times the
    mean of Σx². Products are summed over the windows in float64, then one system is solved."""
    look_back, horizon = windows.settings.look_back, windows.settings.horizon
    width = look_back + horizon + 1
    origins = origins[windows.observed(origins) == horizon * network.outputs]
    products = torch.zeros(width, width, dtype=torch.float64)
    for some in in_batches(origins):
        batch = windows.batch(some)
        normal = network.normalisation(batch)
        x, y = network.inward(batch, normal), normal.inward(batch.target)
        pairs = torch.cat([x[..., : network.outputs], y]).flatten(1).double()
        pairs = torch.cat([pairs, torch.ones(1, pairs.shape[1], dtype=torch.float64)])
        products += pairs @ pairs.T
    count, sums = products[-1, -1].clamp_min(1), products[-1, :-1]
    centred = products[:-1, :-1] - sums[:, None] * sums / count
    inputs, both = centred[:look_back, :look_back], centred[:look_back, look_back:]
    penalty = ridge * inputs.diagonal().mean()
    penalised = inputs + torch.diag(torch.full((look_back,), float(penalty), dtype=torch.float64))
    # inputs that never change (the last value minus itself) get no weight
    weight = torch.linalg.lstsq(penalised, both, driver="gelsd").solution.T
    means = sums / count
    network.weight.copy_(weight)
    network.bias.copy_(means[look_back:] - weight @ means[:look_back])


def linear_settings(model: ForecastSettings) -> ForecastSettings:
    """The settings of a model's linear baseline."""
    changed: dict[str, Any] = {"family": "linear", "transform": "none", "difference": 0}
    changed |= {"normalise": "last", "covariates": [], "known": [], "calendar": [], "static": []}
    return model.model_copy(update=changed)


@dataclass(frozen=True)
class Baselines:
    """Baselines learned from the training part. linear: on unscaled targets, relative to the last
    value of each window; None if the model itself is linear."""

    season: Annotated[int, Range(low=1, high=SEASON)]
    scale: Annotated[
        ForecastScale,
        NEXT_TO,
        Let(transform=lambda _: "none", lag=0, columns="settings.targets"),
    ]
    linear: Annotated[
        LinearForecast, NEXT_TO, weights(lambda record: LinearForecast(record.settings))
    ]
    settings: Annotated[ForecastSettings, Derived(lambda record: linear_settings(record.settings))]
    beside: Annotated[bool, Derived(lambda record: record.settings != record.model)]

    @classmethod
    def of(cls, train: Series, settings: ForecastSettings) -> Baselines:
        targets, panel = len(settings.targets), bool(settings.ids)
        season = settings.season or season_of_series(train, targets)
        scale, plain = ForecastScale.plain(train, targets, panel), linear_settings(settings)
        baselines = cls(season, scale, LinearForecast(plain), plain, plain != settings)
        first = train.bounds[:-1] + settings.look_back
        origins = ranges(first, np.maximum(train.bounds[1:] - settings.horizon + 1, first))
        solve(baselines.linear, baselines._windows(train, baselines.scale), origins, RIDGE)
        return baselines

    def _windows(self, series: Series, scale: ForecastScale) -> Windows:
        targets = series.values[:, : scale.targets]
        mean, spread = scale.of_windows(series.owner)
        z = (targets - mean) / spread
        return Windows(np.ascontiguousarray(z, np.float32), self.settings, series.starts)

    @torch.no_grad()
    def forecasts(self, series: Series, origins: Origins) -> dict[str, Array]:
        """Forecasts by name, in the units of the data. The linear model needs a whole window before
        every origin."""
        targets, horizon = self.scale.targets, self.settings.horizon
        starts = series.starts[origins - 1]
        by_name = {}
        for name, season in (("naive", 1), ("seasonal naive", self.season)):
            if name == "naive" or season > 1:
                values = seasonally_filled(series, targets, season)
                by_name[name] = repeated(values, origins, horizon, season, starts)
        if self.beside and (origins - starts >= self.settings.look_back).all():
            scale = self.scale.aligned(series, self.settings.look_back)
            mean, spread = scale.of_windows(series.owner[origins - 1])
            by_name["linear model"] = (
                each(self.linear.point, self._windows(series, scale), origins) * spread + mean
            )
        return by_name

"""What a network must beat: the last value, that of a season ago, a weighted sum of the window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ensue.tasks import checks
from ensue.tasks.forecast.networks import LinearForecast
from ensue.tasks.forecast.scale import ForecastScale, ScaleSizes
from ensue.tasks.forecast.seasons import repeated, season_of_series, seasonally_filled
from ensue.tasks.forecast.series import Id, Series, ranges
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.tasks.forecast.windows import Origins, Windows, each, in_batches

Array = NDArray[np.float64]

RIDGE = 1e-3  # of the linear baseline


@torch.no_grad()
def solve(network: LinearForecast, windows: Windows, origins: Origins, ridge: float) -> None:
    """The weights of least Σ(y − ŷ)² + λ·Σw² over these windows, λ being `ridge` times the mean
    of Σx²: sums of products over the windows, in float64, then one system of equations."""
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
        changed |= {"static": []}
        settings = model.model_copy(update=changed)
        return cls(season, scale, LinearForecast(settings), settings, settings != model)

    @classmethod
    def of(cls, train: Series, settings: ForecastSettings) -> Baselines:
        targets, panel = len(settings.targets), bool(settings.ids)
        season = settings.season or season_of_series(train, targets)
        found = cls.untrained(season, ForecastScale.plain(train, targets, panel), settings)
        first = train.bounds[:-1] + settings.look_back
        origins = ranges(first, np.maximum(train.bounds[1:] - settings.horizon + 1, first))
        solve(found.linear, found._windows(train, found.scale), origins, RIDGE)
        return found

    def _windows(self, series: Series, scale: ForecastScale) -> Windows:
        targets = series.values[:, : scale.targets]
        mean, spread = scale.of_windows(series.owner)
        z = (targets - mean) / spread
        return Windows(np.ascontiguousarray(z, np.float32), self.settings, series.starts)

    @torch.no_grad()
    def forecasts(self, series: Series, origins: Origins) -> dict[str, Array]:
        """By name, in the units of the data. The linear model needs a whole window before every
        origin."""
        targets, horizon = self.scale.targets, self.settings.horizon
        starts = series.starts[origins - 1]
        found = {}
        for name, season in (("naive", 1), ("seasonal naive", self.season)):
            if name == "naive" or season > 1:
                values = seasonally_filled(series, targets, season)
                found[name] = repeated(values, origins, horizon, season, starts)
        if self.beside and (origins - starts >= self.settings.look_back).all():
            scale = self.scale.aligned(series, self.settings.look_back)
            mean, spread = scale.of_windows(series.owner[origins - 1])
            found["linear model"] = (
                each(self.linear.point, self._windows(series, scale), origins) * spread + mean
            )
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        weights = {key: value.numpy() for key, value in self.linear.state_dict().items()}
        return {**weights, **self.scale.arrays()}

    @classmethod
    def of_arrays(
        cls,
        arrays: Mapping[str, NDArray[Any]],
        season: int,
        settings: ForecastSettings,
        ids: tuple[Id, ...] = (),
    ) -> Baselines:
        """The inverse of `arrays`."""
        known, targets = dict(arrays), len(settings.targets)
        weights = {
            "weight": checks.array((settings.horizon, settings.look_back), checks.SINGLE),
            "bias": checks.array((settings.horizon,), checks.SINGLE),
        }
        own = {key: known.pop(key, None) for key in weights}
        solved = checks.record(weights)(own, "baselines")
        levels = ScaleSizes("none", 0, targets, targets)
        scale = ForecastScale.of_arrays(known, levels, ids, "baselines")
        found = cls.untrained(season, scale, settings)
        found.linear.load_state_dict({key: torch.from_numpy(v.copy()) for key, v in solved.items()})
        return found

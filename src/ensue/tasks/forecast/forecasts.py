"""The forecasts of a fitted model, after the end of a series and in a backtest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray

from ensue.errors import DataError
from ensue.tasks.forecast.evaluation import Backtest, QuantileSums, levels_asked
from ensue.tasks.forecast.intervals import Levels, widened
from ensue.tasks.forecast.learned import LearnedSeries
from ensue.tasks.forecast.members.mixture import MixedWindows, mixed_levels
from ensue.tasks.forecast.networks import ForecastNetwork
from ensue.tasks.forecast.part import Origins, SeriesPart, Windows, in_batches
from ensue.tasks.forecast.scale import ForecastScale
from ensue.tasks.forecast.series import Series, Steps, ranges
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.tasks.model import Model
from ensue.training.processes import device_of_weights, moved

Array = NDArray[np.float64]

DRAWN_AT_ONCE = 4_000_000  # numbers in memory


def drawn_at_once(settings: ForecastSettings) -> int:
    """Number of windows whose paths are drawn together."""
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
    quantile_levels: Sequence[float] = (),
) -> Levels:
    """The mean forecast of the networks from these origins, with an interval from all their paths.
    levels: the levels (steps, columns) of the series that windows come from; owner: the series of
    each window; seed: the seed of every window's paths; quantile_levels: levels of quantiles."""
    settings = windows.settings
    size = drawn_at_once(settings)
    back = np.arange(-settings.difference, 0)
    parts: list[Levels] = []
    for some, some_owners in zip(in_batches(origins, size), in_batches(owner, size), strict=True):
        batch = moved(windows.batch(some), device_of_weights(networks[0]))
        before = levels[some[None] + back[:, None], : scale.targets]
        points = torch.stack([network.point(batch) for network in networks])
        point = scale.to_levels(_targets(points.mean(0), scale), before, some_owners)
        generator = torch.Generator().manual_seed(seed)
        drawn = [network.paths(batch, settings.paths, generator) for network in networks]
        paths = [_targets(path, scale) for path in drawn if path is not None]
        if not paths:
            parts.append(Levels.of_point(point, len(quantile_levels)))
            continue
        outside = (1 - settings.interval) / 2
        sampled = scale.to_levels(np.concatenate(paths), before, some_owners)
        low, high, *more = np.quantile(sampled, [outside, 1 - outside, *quantile_levels], axis=0)
        parts.append(
            Levels(point, low, high, np.reshape(more, (len(quantile_levels), *point.shape)))
        )
    return Levels.joined(parts)


def _targets(values: torch.Tensor, scale: ForecastScale) -> Array:
    return values[..., : scale.targets].double().cpu().numpy()


MOST_AT_ONCE = 1024  # maximum windows with quantiles in memory

ForecastModel = Model[ForecastSettings, SeriesPart, LearnedSeries]


def origins_of(part: SeriesPart, settings: ForecastSettings) -> Origins:
    """The origins of windows whose steps ahead all belong to the part, with enough steps before
    them."""
    return _origins(part, settings.history, settings.horizon)


def _origins(part: SeriesPart, history: int, horizon: int) -> Origins:
    bounds = part.series.bounds
    first = np.maximum(part.begins, bounds[:-1] + history)
    return ranges(first, np.maximum(bounds[1:] - horizon + 1, first))


def level_forecasts(
    model: ForecastModel,
    series: Series,
    origins: Origins,
    quantile_levels: Sequence[float] = (),
    learned: LearnedSeries | None = None,
) -> Levels:
    """Forecasts of all members together, before calibration. quantile_levels: levels of quantiles;
    learned: used instead of the model's."""
    learned = learned or model.learned
    scale = learned.scale.aligned(series, model.settings.history)
    windows = learned.windows(series, model.settings)
    if isinstance(windows, MixedWindows):
        return mixed_levels(model, windows, scale, origins, len(quantile_levels))
    networks = [cast(ForecastNetwork, network) for network in model.networks]
    levels = scale.levels(series, model.settings)
    owner = series.owner[origins - 1]
    seed = model.train.seed
    return rolled(networks, scale, windows, levels, origins, owner, seed, quantile_levels)


def interval_unit(model: ForecastModel, series: Series, origins: Origins) -> Array:
    """The unit in which intervals are widened: (windows, targets) in a panel, whose series differ
    in scale; 1 for a single series."""
    scale = model.learned.scale.aligned(series, model.settings.history)
    if not scale.ids:
        return np.ones((1, scale.targets))
    return scale.of_windows(series.owner[origins - 1])[1]


def forecasts(
    model: ForecastModel, series: Series, origins: Origins, quantiles: bool = False
) -> Levels:
    """Forecasts in the units of the data, with calibrated intervals; (horizon, windows, targets)
    each. quantiles: whether to include the calibrated quantiles."""
    levels = levels_asked(model.settings) if quantiles else ()
    point, low, high, every = level_forecasts(model, series, origins, levels)
    unit, learned = interval_unit(model, series, origins), model.learned
    low, high = widened(low, high, learned.widening[:, None] * unit)
    if quantiles and learned.shifts is not None:
        every = every + learned.shifts[:, :, None] * unit
    every = (
        np.sort(every, 0)[[sorted(levels).index(level) for level in levels]] if levels else every
    )
    return Levels(*(learned.scale.from_levels(y) for y in (point, low, high, every)))


def backtest_origins(model: ForecastModel, part: SeriesPart) -> Origins:
    """Every `stride`-th origin of a part that has enough steps before it."""
    settings, history, series = model.settings, model.learned.history(model.settings), part.series
    bounds = series.bounds
    first = np.maximum(part.begins, bounds[:-1] + history)
    ends = np.maximum(bounds[1:] - settings.horizon + 1, first)
    every = ranges(first, ends)
    owner = series.owner[np.maximum(every - 1, 0)]
    origins: Origins = every[(every - first[owner]) % settings.stride == 0]
    if not len(origins):
        k = int(np.argmax(bounds[1:] - part.begins))
        steps = int(bounds[k + 1] - part.begins[k] + min(part.begins[k] - bounds[k], history))
        raise DataError(
            f"evaluate: expected at least {history + settings.horizon} steps, {history} to begin "
            f"with and a horizon of {settings.horizon}, got {steps}"
        )
    return origins


def backtest(model: ForecastModel, part: SeriesPart) -> Backtest:
    """A backtest from every `stride`-th origin of a part that has enough steps before it."""
    origins = backtest_origins(model, part)
    truth = truth_of(part.series, origins, model.settings)
    *bounds, sums = _forecast_all(model, part.series, origins, truth)
    quantiles = sums.rows(model.settings.quantiles)
    result = backtest_of(model, part, np.stack(bounds))
    return replace(result, scores=sums.scores(), quantiles=quantiles)


def backtest_of(model: ForecastModel, part: SeriesPart, bounds: Array) -> Backtest:
    """The backtest of forecasts. bounds (3, horizon, windows, targets): point, low, high."""
    series, origins = part.series, backtest_origins(model, part)
    known = {key: k for k, key in enumerate(model.learned.scale.ids)}
    point, low, high = bounds
    return Backtest(
        truth_of(series, origins, model.settings),
        point,
        low,
        high,
        baselines_of(model, series, origins),
        model.settings.interval,
        series.owner[origins - 1],
        series.ids,
        np.array([known.get(key, -1) for key in series.ids]),
    )


def _forecast_all(
    model: ForecastModel, series: Series, origins: Origins, truth: Array
) -> tuple[Array, Array, Array, QuantileSums]:
    """Forecasts of all windows, in groups, because quantiles need much memory."""
    batches, sums = [], QuantileSums(levels_asked(model.settings))
    size = min(drawn_at_once(model.settings), MOST_AT_ONCE)
    done = 0
    for some in in_batches(origins, size):
        predicted = forecasts(model, series, some, quantiles=True)
        sums.add(truth[:, done : done + len(some)], predicted.quantiles)
        batches.append(predicted[:3])
        done += len(some)
    point, low, high = (np.concatenate(parts, 1) for parts in zip(*batches, strict=True))
    return point, low, high, sums


def truth_of(series: Series, origins: Origins, settings: ForecastSettings) -> Array:
    """The actual values after each origin, (horizon, windows, targets); NaN if unknown."""
    values = series.values[:, : len(settings.targets)]
    return np.asarray(values[origins[None] + np.arange(settings.horizon)[:, None]])


def baselines_of(model: ForecastModel, series: Series, origins: Origins) -> dict[str, Array]:
    """The usual baselines and the solved members of a mixed forecast, each alone."""
    baselines = model.learned.baselines.forecasts(series, origins)
    mixture = model.learned.mixture
    if mixture is None:
        return baselines
    ground, horizon = mixture.ground(series, model.settings), model.settings.horizon
    for member in mixture.members:
        alike = sum(
            name == member.name or name.startswith(f"{member.name} (") for name in baselines
        )
        name = f"{member.name} ({alike + 1})" if alike else member.name
        if member.kind != "repeated":
            baselines[name] = member.forecasts(ground, origins, horizon)
    return baselines


class NextWindow(NamedTuple):
    """Series extended by one more window each, and the first step of that window."""

    series: Series
    origins: Origins


def next_window(model: ForecastModel, series: Series) -> NextWindow:
    """The extended series. Steps at the end without targets count as known steps ahead."""
    settings = model.settings
    ahead = steps_ahead(series, len(settings.targets))
    lengths = series.lengths - ahead
    enough(model, series, lengths)
    if settings.known and int(ahead.min()) < settings.horizon:
        k = int(ahead.argmin())
        of = f" of {', '.join(series.ids[k])}" if series.ids[k] else ""
        raise DataError(
            f"predict: expected {', '.join(settings.known)} of the next {settings.horizon} steps"
            f"{of}, which this model reads, got {ahead[k]}; give them with --future FILE "
            "(Python: future=)"
        )
    missing = np.maximum(settings.horizon - ahead, 0)
    longer = series.lengthened(missing) if missing.any() else series
    return NextWindow(longer, longer.bounds[:-1] + lengths)


def steps_ahead(series: Series, targets: int) -> Steps:
    """The number of steps without targets at the end of each series."""
    observed = np.isfinite(series.values[:, :targets]).any(1)
    last = np.maximum.accumulate(np.where(observed, np.arange(len(series)), -1))
    ends = series.bounds[1:]
    known = np.maximum(last[ends - 1], series.bounds[:-1] - 1)
    return np.asarray(ends - 1 - known)


def enough(model: ForecastModel, series: Series, lengths: Steps) -> None:
    """Raises an error if a series has fewer steps than a forecast needs."""
    mixed = model.learned.mixture is not None
    history = model.settings.history if mixed else model.learned.history(model.settings)
    k = int(lengths.argmin())
    if lengths[k] < history:
        of = f" of {', '.join(series.ids[k])}" if series.ids[k] else ""
        raise DataError(
            f"predict: expected at least {history} steps{of} to begin with, "
            f"got {max(0, int(lengths[k]))}"
        )

"""Calibration of a fitted forecaster on the validation part: errors of its bounds and quantiles,
and the share of a mixed forecast's correction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ensue.tasks.forecast.evaluation import levels_asked
from ensue.tasks.forecast.forecasts import (
    ForecastModel,
    interval_unit,
    level_forecasts,
    origins_of,
)
from ensue.tasks.forecast.intervals import quantile_shifts, widening
from ensue.tasks.forecast.learned import LearnedSeries
from ensue.tasks.forecast.members.mixture import MixedWindows, fitted_share
from ensue.tasks.forecast.part import SeriesPart
from ensue.tasks.forecast.series import ranges

Array = NDArray[np.float64]

FEW_BLOCKS = 5  # minimum validation windows; with fewer, forecasts from earlier origins are added


def calibrated(validation: SeriesPart, model: ForecastModel) -> LearnedSeries:
    """Calibrates on the validation steps, each forecast from all origins before it. The last
    windows are incomplete, so a model that reads columns of the steps ahead cannot use them."""
    learned, settings = _with_share(validation, model), model.settings
    if settings.calibrated:
        learned = _with_intervals(validation, model, learned)
    origins = origins_of(validation, settings)
    point = level_forecasts(model, validation.series, origins, (), learned).point
    learned = replace(learned, out_of_sample=learned.scale.from_levels(point))
    mixture = learned.mixture
    if mixture is None:
        return learned
    if (validation.begins > validation.series.bounds[:-1]).any():  # the training part is before it
        mixture = mixture.fitted(validation.series, settings)
    return replace(learned, mixture=mixture, chosen=None)


def _with_share(validation: SeriesPart, model: ForecastModel) -> LearnedSeries:
    learned, settings = model.learned, model.settings
    windows = learned.windows(validation.series, settings)
    if not isinstance(windows, MixedWindows):
        return learned
    share = fitted_share(model, windows, origins_of(validation, settings), settings.horizon)
    return replace(learned, mixture=replace(windows.mixture, share=share))


def _with_intervals(
    validation: SeriesPart, model: ForecastModel, learned: LearnedSeries
) -> LearnedSeries:
    settings, series = model.settings, validation.series
    bounds, horizon = series.bounds, settings.horizon
    less = (horizon - 1) * bool(settings.known)
    first = np.maximum(validation.begins, bounds[:-1] + settings.history)
    longer = series.lengthened(horizon)
    shift = np.arange(series.count) * horizon
    origins = ranges(first + shift, np.maximum(bounds[1:] - less, first) + shift)
    levels = levels_asked(settings)
    forecasts = level_forecasts(model, longer, origins, levels, learned)
    truth = learned.scale.levels(longer, settings)[:, : len(settings.targets)]
    ahead = truth[origins[None] + np.arange(horizon)[:, None]]
    unit = interval_unit(model, longer, origins)
    every = [ahead / unit, forecasts.low / unit, forecasts.high / unit, forecasts.quantiles / unit]
    if learned.chosen is not None and len(origins) < FEW_BLOCKS * horizon:
        every = _with_earlier(every, learned)
    truth, low, high, quantiles = every
    return replace(
        learned,
        widening=widening(truth, low, high, settings.interval),
        shifts=quantile_shifts(truth, quantiles, levels),
    )


def _with_earlier(every: list[Array], learned: LearnedSeries) -> list[Array]:
    """Adds the forecasts of the solved members from earlier origins."""
    chosen, scale = learned.chosen, learned.scale
    assert chosen is not None
    unit = np.ones((1, scale.targets))
    if scale.ids:
        known = {key: k for k, key in enumerate(scale.ids)}
        unit = scale.spread[[known.get(key, 0) for key in chosen.ids], : scale.targets]
    truth, point = (scale.to_level(values) / unit for values in (chosen.truth, chosen.point))
    more = [truth, point, point, np.broadcast_to(point, (len(every[3]), *point.shape))]
    return [np.concatenate([a, b], -2) for a, b in zip(every, more, strict=True)]

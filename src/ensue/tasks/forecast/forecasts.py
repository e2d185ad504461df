"""The forecasts of a fitted model: of the steps after a series, and of a backtest."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from ensue.errors import DataError
from ensue.tasks.forecast.evaluation import Backtest
from ensue.tasks.forecast.intervals import widened
from ensue.tasks.forecast.learned import LearnedSeries
from ensue.tasks.forecast.networks import ForecastNetwork
from ensue.tasks.forecast.part import SeriesPart
from ensue.tasks.forecast.rolling import Levels, rolled
from ensue.tasks.forecast.series import Series
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.tasks.forecast.windows import Origins
from ensue.tasks.model import Model

ForecastModel = Model[ForecastSettings, SeriesPart, LearnedSeries]


def origins_of(part: SeriesPart, settings: ForecastSettings) -> Origins:
    """Of the windows whose steps ahead are all of the part, with enough steps before them."""
    first = max(part.begin, settings.history)
    return np.arange(first, len(part.values) - settings.horizon + 1)


def level_forecasts(model: ForecastModel, series: Series, origins: Origins) -> Levels:
    """Of all members together, before calibration."""
    learned, networks = (
        model.learned,
        [cast(ForecastNetwork, network) for network in model.networks],
    )
    levels = learned.scale.levels(series, model.model)
    windows = learned.windows(series, model.model)
    return rolled(networks, learned.scale, windows, levels, origins, model.train.seed)


def forecasts(model: ForecastModel, series: Series, origins: Origins) -> Levels:
    """In the units of the data, with calibrated intervals; (horizon, windows, targets) each."""
    point, low, high = level_forecasts(model, series, origins)
    low, high = widened(low, high, model.learned.widening)
    return Levels(*(model.learned.scale.from_levels(y) for y in (point, low, high)))


def backtest(model: ForecastModel, part: SeriesPart) -> Backtest:
    """From every `stride`-th origin of a part that has enough steps before it."""
    settings, history, series = model.model, model.learned.history(model.model), part.series
    first = max(part.begin, history)
    origins = np.arange(first, len(series) - settings.horizon + 1, settings.stride)
    if not len(origins):
        steps = len(part) + min(part.begin, history)
        raise DataError(
            f"evaluate: expected at least {history + settings.horizon} steps, {history} to begin "
            f"with and a horizon of {settings.horizon}, got {steps}"
        )
    values = series.values[:, : len(settings.targets)]
    truth = values[origins[None] + np.arange(settings.horizon)[:, None]]
    baselines = model.learned.baselines.forecasts(series, origins)
    return Backtest(truth, *forecasts(model, series, origins), baselines, settings.interval)


class NextWindow(NamedTuple):
    """A series made long enough for one more window, and the first step of that."""

    series: Series
    now: int

    @property
    def origins(self) -> Origins:
        return np.array([self.now])


def next_window(model: ForecastModel, series: Series) -> NextWindow:
    """Steps at the end without targets are those ahead, as far as they are known."""
    settings = model.model
    given = int(np.isnan(series.values[:, 0]).sum())
    now = enough(model, len(series) - given)
    if settings.known and given < settings.horizon:
        raise DataError(
            f"predict: expected {', '.join(settings.known)} of the next {settings.horizon} steps, "
            f"which this model reads, got {given}; give them as the future"
        )
    missing = settings.horizon - given
    return NextWindow(series.lengthened(missing) if missing > 0 else series, now)


def enough(model: ForecastModel, steps: int) -> int:
    """So many steps, if forecasts can begin after them."""
    history = model.learned.history(model.model)
    if steps < history:
        raise DataError(
            f"predict: expected at least {history} steps to begin with, got {max(0, steps)}"
        )
    return steps

"""Forecasts of a model as pictures: of the steps ahead, or of a part's end beside what came."""

from __future__ import annotations

from ensue.errors import unknown
from ensue.tasks.forecast.forecasts import ForecastModel, NextWindow, enough, forecasts, next_window
from ensue.tasks.forecast.part import SeriesPart
from ensue.tasks.forecast.picture import View, draw
from ensue.tasks.forecast.series import Series, times_ahead
from ensue.tasks.task import Asked

SHOWN_BEFORE = 3  # horizons, or seasons, of history in a picture


class ForecastDraws:
    """The first target, as SVG."""

    def answers(self, model: ForecastModel, part: SeriesPart, asked: Asked) -> str:
        return drawn_ahead(model, part.series)

    def evaluated(self, model: ForecastModel, part: SeriesPart) -> str:
        return drawn_end(model, part.series)


def drawn_ahead(model: ForecastModel, series: Series, target: str = "") -> str:
    """The steps after a series. target: the first, if none is named."""
    return draw(_view(model, series, next_window(model, series), target))


def drawn_end(model: ForecastModel, series: Series, target: str = "") -> str:
    """The last horizon of a series, with what came."""
    now = enough(model, len(series) - model.model.horizon)
    return draw(_view(model, series, NextWindow(series, now), target, came=True))


def _view(
    model: ForecastModel, series: Series, window: NextWindow, target: str, came: bool = False
) -> View:
    settings, baselines, now = model.model, model.learned.baselines, window.now
    name = target or settings.targets[0]
    if name not in settings.targets:
        raise unknown("target", name, settings.targets)
    k = settings.targets.index(name)
    point, low, high = (y[:, 0, k] for y in forecasts(model, window.series, window.origins))
    best_name, best = list(baselines.forecasts(window.series, window.origins).items())[-1]
    shown = SHOWN_BEFORE * max(settings.horizon, baselines.season)
    before = series.values[max(0, now - shown) : now, k]
    times = [*series.times[:now], *times_ahead(series.until(now), settings.horizon)]
    if not series.times:
        times = [str(step) for step in range(1, now + settings.horizon + 1)]
    return View(
        f"{name}, {settings.horizon} steps ahead",
        f"{model.task.describe(model)}; {100 * settings.interval:g} % interval",
        times[-len(before) - settings.horizon :],
        before,
        point,
        low,
        high,
        best[:, 0, k],
        best_name,
        series.values[now:, k] if came else None,
    )

"""Forecasts of a model as pictures: of the steps ahead, or of a part's end beside what came."""

from __future__ import annotations

from ensue.errors import unknown
from ensue.tasks.forecast.answer import Before
from ensue.tasks.forecast.forecasts import ForecastModel, NextWindow, enough, forecasts, next_window
from ensue.tasks.forecast.part import SeriesPart
from ensue.tasks.forecast.picture import View, draw
from ensue.tasks.forecast.series import Series, times_ahead
from ensue.tasks.task import Asked

SHOWN_BEFORE = 3  # horizons, or seasons, of history in a picture


class ForecastDraws:
    """Every target, as SVG."""

    def answers(self, model: ForecastModel, part: SeriesPart, asked: Asked) -> str:
        return drawn_ahead(model, part.series)

    def evaluated(self, model: ForecastModel, part: SeriesPart) -> str:
        return drawn_end(model, part.series)


def end_of(model: ForecastModel, series: Series, now: int) -> Before:
    """The end of a series, as much of it as a picture shows."""
    first = _first_shown(model, now)
    times = series.times[first:now] or [str(step - now) for step in range(first, now)]
    columns = series.values[first:now].T.tolist()
    return Before(times, dict(zip(model.model.targets, columns, strict=False)))


def _first_shown(model: ForecastModel, now: int) -> int:
    season = model.learned.baselines.season
    return max(0, now - SHOWN_BEFORE * max(model.model.horizon, season))


def drawn_ahead(model: ForecastModel, series: Series, target: str = "") -> str:
    """The steps after a series. target: all, if none is named."""
    return draw(_view(model, series, next_window(model, series), target))


def drawn_end(model: ForecastModel, series: Series, target: str = "") -> str:
    """The last horizon of a series, with the actual values."""
    now = enough(model, len(series) - model.model.horizon)
    return draw(_view(model, series, NextWindow(series, now), target, is_known=True))


def _view(
    model: ForecastModel, series: Series, window: NextWindow, target: str, is_known: bool = False
) -> View:
    settings, baselines, now = model.model, model.learned.baselines, window.now
    if target and target not in settings.targets:
        raise unknown("target", target, settings.targets)
    names = [target] if target else settings.targets
    columns = [settings.targets.index(name) for name in names]
    point, low, high = (y[:, 0, columns] for y in forecasts(model, window.series, window.origins))
    best_name, best = list(baselines.forecasts(window.series, window.origins).items())[-1]
    before = series.values[_first_shown(model, now) : now, columns]
    times = [*series.times[:now], *times_ahead(series.until(now), settings.horizon)]
    if not series.times:
        times = [str(step) for step in range(1, now + settings.horizon + 1)]
    what = names[0] if len(names) == 1 else f"{len(names)} targets"
    return View(
        title=f"{what}, {settings.horizon} steps ahead",
        about=model.task.describe(model),
        targets=names,
        time=settings.time or "step",
        times=times[-len(before) - settings.horizon :],
        before=before,
        point=point,
        low=low,
        high=high,
        interval=settings.interval,
        baseline=best[:, 0, columns],
        baseline_name=best_name,
        actual=series.values[now:, columns] if is_known else None,
    )

"""Forecasts of a model as pictures: of the steps ahead, or of a part's end beside what came."""

from __future__ import annotations

import numpy as np

from ensue.errors import unknown
from ensue.tasks.forecast.answer import Before
from ensue.tasks.forecast.forecasts import (
    ForecastModel,
    NextWindow,
    enough,
    forecasts,
    next_window,
)
from ensue.tasks.forecast.part import SeriesPart
from ensue.tasks.forecast.picture import View, draw
from ensue.tasks.forecast.series import Series
from ensue.tasks.task import Asked

SHOWN_BEFORE = 3  # horizons, or seasons, of history in a picture
MOST_PANELS = 60  # of one picture


class ForecastDraws:
    """Every target of every series, as SVG; asked: `series` names those of a panel to draw."""

    def answers(self, model: ForecastModel, part: SeriesPart, asked: Asked) -> str:
        return drawn_ahead(model, _chosen(part.series, asked.get("series")))

    def evaluated(self, model: ForecastModel, part: SeriesPart) -> str:
        return drawn_end(model, part.series)


def _chosen(series: Series, names: str | list[str] | None) -> Series:
    """The series of these ids, in the order of the names; all, if none is named."""
    if not names:
        return series
    known = {", ".join(key): k for k, key in enumerate(series.ids)}
    wanted = [names] if isinstance(names, str) else names
    for name in wanted:
        if name not in known:
            raise unknown("series", name, list(known))
    return series.among([known[name] for name in wanted])


def end_of(model: ForecastModel, series: Series, now: int) -> Before:
    """The end of one series, as much of it as a picture shows."""
    first = _first_shown(model, now)
    times = series.times[first:now] or [str(step - now) for step in range(first, now)]
    columns = series.values[first:now].T.tolist()
    return Before(times, dict(zip(model.model.targets, columns, strict=False)))


def _first_shown(model: ForecastModel, now: int) -> int:
    season = model.learned.baselines.season
    return max(0, now - SHOWN_BEFORE * max(model.model.horizon, season))


def drawn_ahead(model: ForecastModel, series: Series, target: str = "") -> str:
    """The steps after each series. target: all, if none is named."""
    return _drawn(model, series, next_window(model, series), target)


def drawn_end(model: ForecastModel, series: Series, target: str = "") -> str:
    """The last horizon of each series that is long enough, with the actual values."""
    lengths = series.lengths - model.model.horizon
    history = model.learned.history(model.model)
    long = np.flatnonzero(lengths >= history)
    if not len(long):
        enough(model, series, lengths)
    kept = series.among(long.tolist())
    window = NextWindow(kept, kept.bounds[1:] - model.model.horizon)
    return _drawn(model, kept, window, target, is_known=True)


def _drawn(
    model: ForecastModel, series: Series, window: NextWindow, target: str, is_known: bool = False
) -> str:
    settings = model.model
    if target and target not in settings.targets:
        raise unknown("target", target, settings.targets)
    names = [target] if target else settings.targets
    most = max(1, MOST_PANELS // len(names))
    some = list(range(min(series.count, most)))
    shown = NextWindow(window.series.among(some), window.origins[: len(some)])
    found = forecasts(model, shown.series, shown.origins)
    best_name, best = list(model.learned.baselines.forecasts(*shown).items())[-1]
    columns = [settings.targets.index(name) for name in names]
    views = []
    for k in some:
        first, now = int(shown.series.bounds[k]), int(shown.origins[k])
        own = series.only(k)
        before = own.values[_first_shown(model, now - first) : now - first, columns]
        times = [
            *own.until(now - first).times,
            *own.until(now - first).times_after(0, settings.horizon),
        ]
        if not own.times:
            times = [str(step) for step in range(1, now - first + settings.horizon + 1)]
        above = ", ".join(own.ids[0])
        ahead = own.values[now - first : now - first + settings.horizon, columns]
        views.append(
            View(
                targets=[_label(above, name, len(names)) for name in names],
                time=settings.time or "step",
                times=times[-len(before) - settings.horizon :],
                before=before,
                point=found.point[:, k, columns],
                low=found.low[:, k, columns],
                high=found.high[:, k, columns],
                interval=settings.interval,
                baseline=best[:, k, columns],
                baseline_name=best_name,
                actual=ahead if is_known else None,
            )
        )
    what = names[0] if len(names) == 1 else f"{len(names)} targets"
    many = "" if series.count == 1 else f" of {series.count:,} series"
    if len(some) < series.count:
        many = f" of the first {len(some)} of {series.count:,} series"
    return draw(f"{what}{many}, {settings.horizon} steps ahead", model.task.describe(model), views)


def _label(series: str, target: str, targets: int) -> str:
    """What stands above a panel: the series, and its target where there are several."""
    if not series:
        return target
    return series if targets == 1 else f"{series}: {target}"

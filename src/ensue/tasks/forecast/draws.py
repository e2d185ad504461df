"""Plots of the steps ahead, or of forecasts for the end of a part next to the actual values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ensue.drawing.chart import COLOURS, MARGIN, WIDE, Axis, Key, Panel, heading, legend
from ensue.drawing.svg import FAINT, INK, RULE, Drawing, text_width
from ensue.errors import unknown
from ensue.tasks.abilities import RequestOptions
from ensue.tasks.forecast.answer import Before
from ensue.tasks.forecast.forecasts import ForecastModel, NextWindow, enough, forecasts, next_window
from ensue.tasks.forecast.part import SeriesPart
from ensue.tasks.forecast.series import Series

Array = NDArray[np.float64]

AXIS, BETWEEN = 56.0, 34.0  # space left of a panel for its numbers; between two columns
ALONE, HIGH, ABOVE = 300.0, 130.0, 44.0  # heights: a single panel, one of several; above each
BAND, DOTTED, DASHED = "#c3def1", "0.5 4", "5 4"
MODEL, BASELINE = COLOURS[:2]


@dataclass(frozen=True)
class View:
    """The data of one plot. before (steps, targets), NaN for missing values; point, low, high,
    baseline (horizon, targets); actual (horizon, targets), if known. times: the times of all steps,
    as text; time: the name of their axis; targets: titles of the panels."""

    targets: Sequence[str]
    time: str
    times: Sequence[str]
    before: Array
    point: Array
    low: Array
    high: Array
    interval: float
    baseline: Array
    baseline_name: str
    actual: Array | None = None


def draw(title: str, about: str, views: Sequence[View]) -> str:
    """The picture as SVG: a panel for each target of each series."""
    drawing = Drawing()
    top = heading(drawing, title, about) + 10
    top = legend(drawing, _keys(views[0]), MARGIN, top, WIDE - MARGIN) + ABOVE
    panels = [(view, k) for view in views for k in range(len(view.targets))]
    count = len(panels)
    columns = 1 if count <= 4 else 2 if count <= 12 else 3
    lines = math.ceil(count / columns)
    wide = (WIDE - 2 * MARGIN + BETWEEN) / columns - BETWEEN
    high = ALONE if count == 1 else HIGH
    same = all(view.times == views[0].times for view in views)
    for at, (view, k) in enumerate(panels):
        line, column = divmod(at, columns)
        left, upper = MARGIN + column * (wide + BETWEEN), top + line * (high + ABOVE)
        x = Axis(0, max(len(view.times) - 1, 1), left + AXIS, left + wide)
        lowest = at + columns >= count or not same
        _panel(drawing, view, k, x, (upper, upper + high), is_lowest=lowest)
    return drawing.svg(WIDE, top + lines * (high + ABOVE) + 20, title)


def _keys(view: View) -> Iterator[Key]:
    yield Key("past", INK)
    if view.actual is not None:
        yield Key("actual", INK, DOTTED, 0)
    yield Key("forecast", MODEL)
    yield Key(f"{100 * view.interval:g} % interval", BAND, shape="area")
    yield Key(view.baseline_name, BASELINE, DASHED)


def _panel(
    drawing: Drawing, view: View, k: int, x: Axis, heights: tuple[float, float], is_lowest: bool
) -> None:
    lines = [view.before, view.point, view.low, view.high, view.baseline]
    lines += [] if view.actual is None else [view.actual]
    every = np.concatenate([line[:, k] for line in lines])
    y = Axis.over(every[np.isfinite(every)].tolist(), *reversed(heights))
    panel, now = Panel(drawing, x, y), len(view.before) - 1
    ticks = list(_ticks(view.times, x))
    for step, _ in ticks:
        drawing.line([(x(step), y.start), (x(step), y.end)], RULE)

    def ahead(line: Array) -> list[tuple[float, float]]:
        """A line that begins at the last known step."""
        points = list(enumerate([float(view.before[-1, k]), *line[:, k].tolist()], now))
        return [at for at in points if math.isfinite(at[1])]

    upper, lower = ([panel.at(*at) for at in ahead(line)] for line in (view.high, view.low))
    drawing.area([*upper, *reversed(lower)], BAND)
    drawing.line([(x(now), y.start), (x(now), y.end)], FAINT, 1.4)
    words = ticks if is_lowest else [(step, "") for step, _ in ticks]
    panel.axes(view.time if is_lowest else "", view.targets[k], words)
    panel.curve(ahead(view.baseline), BASELINE, 1.6, DASHED)
    for piece in _pieces(view.before[:, k]):
        panel.curve(piece, INK, 1.8)
        if len(piece) == 1:
            drawing.mark(panel.at(*piece[0]), 0, INK, 1.6)
    panel.curve(ahead(view.point), MODEL, 2.4)
    if view.actual is not None:
        for at in panel.curve(ahead(view.actual), INK, 1.8, DOTTED)[1:]:
            drawing.mark(at, 0, INK, 2.8)


def _pieces(line: Array) -> list[list[tuple[float, float]]]:
    """The pieces of a line, which breaks at missing values."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for step, value in enumerate(line.tolist()):
        if math.isfinite(value):
            pieces[-1].append((step, value))
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]


def _ticks(times: Sequence[str], x: Axis) -> Iterator[tuple[float, str]]:
    """The ticks of a time axis: as many times as fit next to each other."""
    wide = max(text_width(time, 11) for time in times)
    every = max(1, math.ceil(len(times) * (wide + 24) / (x.end - x.start)))
    for step in range(0, len(times), every):
        if x(step) + wide / 2 <= x.end + BETWEEN:
            yield step, times[step]


SHOWN_BEFORE = 3  # history in a picture, in horizons or seasons
MOST_PANELS = 60  # of one picture


class ForecastDraws:
    """Every target of every series, as SVG; the option `series` selects series of a panel."""

    def answers(self, model: ForecastModel, part: SeriesPart, options: RequestOptions) -> str:
        return drawn_ahead(model, _chosen(part.series, options.get("series")))

    def evaluated(self, model: ForecastModel, part: SeriesPart) -> str:
        return drawn_end(model, part.series)


def _chosen(series: Series, names: str | list[str] | None) -> Series:
    """The series with these names, in order; all if none is named."""
    if not names:
        return series
    known = {", ".join(key): k for k, key in enumerate(series.ids)}
    columns = [names] if isinstance(names, str) else names
    for name in columns:
        if name not in known:
            raise unknown("series", name, list(known))
    return series.among([known[name] for name in columns])


def end_of(model: ForecastModel, series: Series, now: int) -> Before:
    """The end of one series that a picture shows."""
    first = _first_shown(model, now)
    times = series.times[first:now] or [str(step - now) for step in range(first, now)]
    columns = series.values[first:now].T.tolist()
    return Before(times, dict(zip(model.settings.targets, columns, strict=False)))


def _first_shown(model: ForecastModel, now: int) -> int:
    season = model.learned.baselines.season
    return max(0, now - SHOWN_BEFORE * max(model.settings.horizon, season))


def drawn_ahead(model: ForecastModel, series: Series, target: str = "") -> str:
    """The picture of the steps after each series. target: None for all."""
    return _drawn(model, series, next_window(model, series), target)


def drawn_end(model: ForecastModel, series: Series, target: str = "") -> str:
    """The picture of the last horizon of each series that is long enough, with actual values."""
    lengths = series.lengths - model.settings.horizon
    history = model.learned.history(model.settings)
    long = np.flatnonzero(lengths >= history)
    if not len(long):
        enough(model, series, lengths)
    among = series.among(long.tolist())
    window = NextWindow(among, among.bounds[1:] - model.settings.horizon)
    return _drawn(model, among, window, target, is_known=True)


def _drawn(
    model: ForecastModel, series: Series, window: NextWindow, target: str, is_known: bool = False
) -> str:
    settings = model.settings
    if target and target not in settings.targets:
        raise unknown("target", target, settings.targets)
    names = [target] if target else settings.targets
    most = max(1, MOST_PANELS // len(names))
    some = list(range(min(series.count, most)))
    nextwindow = NextWindow(window.series.among(some), window.origins[: len(some)])
    forecast = forecasts(model, nextwindow.series, nextwindow.origins)
    best_name, best = list(model.learned.baselines.forecasts(*nextwindow).items())[-1]
    columns = [settings.targets.index(name) for name in names]
    views = []
    for k in some:
        first, now = int(nextwindow.series.bounds[k]), int(nextwindow.origins[k])
        only = series.only(k)
        before = only.values[_first_shown(model, now - first) : now - first, columns]
        times = [
            *only.until(now - first).times,
            *only.until(now - first).times_after(0, settings.horizon),
        ]
        if not only.times:
            times = [str(step) for step in range(1, now - first + settings.horizon + 1)]
        above = ", ".join(only.ids[0])
        ahead = only.values[now - first : now - first + settings.horizon, columns]
        views.append(
            View(
                targets=[_label(above, name, len(names)) for name in names],
                time=settings.time or "step",
                times=times[-len(before) - settings.horizon :],
                before=before,
                point=forecast.point[:, k, columns],
                low=forecast.low[:, k, columns],
                high=forecast.high[:, k, columns],
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
    return draw(f"{what}{many}, {settings.horizon} steps ahead", model.describe(), views)


def _label(series: str, target: str, targets: int) -> str:
    """The title of a panel: the series, and its target if there are several."""
    if not series:
        return target
    return series if targets == 1 else f"{series}: {target}"

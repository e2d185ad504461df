"""Forecasts as a picture: for each target what came before, what is expected, and the interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ensue.drawing.chart import COLOURS, MARGIN, WIDE, Axis, Key, Panel, heading, legend
from ensue.drawing.svg import FAINT, INK, RULE, Drawing, text_width

Array = NDArray[np.float64]

AXIS, BETWEEN = 56.0, 34.0  # room left of a panel for its numbers; between two columns
ALONE, HIGH, ABOVE = 300.0, 130.0, 44.0  # height of a panel alone and of several; above each
BAND, DOTTED, DASHED = "#c3def1", "0.5 4", "5 4"
MODEL, BASELINE = COLOURS[:2]


@dataclass(frozen=True)
class View:
    """Of one series. before (steps, targets), NaN where a value is missing; point, low, high,
    baseline (horizon, targets); actual too, if it is known. times: of all steps, as words; time:
    what they are; targets: what stands above each panel."""

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
        """A line that begins at the last step that is known."""
        found = list(enumerate([float(view.before[-1, k]), *line[:, k].tolist()], now))
        return [at for at in found if math.isfinite(at[1])]

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
    """A line as it is drawn: it breaks where values are missing."""
    found: list[list[tuple[float, float]]] = [[]]
    for step, value in enumerate(line.tolist()):
        if math.isfinite(value):
            found[-1].append((step, value))
        elif found[-1]:
            found.append([])
    return [piece for piece in found if piece]


def _ticks(times: Sequence[str], x: Axis) -> Iterator[tuple[float, str]]:
    """As many times as fit beside each other, and on the paper."""
    wide = max(text_width(time, 11) for time in times)
    every = max(1, math.ceil(len(times) * (wide + 24) / (x.end - x.start)))
    for step in range(0, len(times), every):
        if x(step) + wide / 2 <= x.end + BETWEEN:
            yield step, times[step]

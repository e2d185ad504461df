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
    """before (steps, targets); point, low, high, baseline (horizon, targets); actual too, if it is
    known. times: of all steps, as words; time: what they are."""

    title: str
    about: str
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


def draw(view: View) -> str:
    """The picture as SVG: a panel for each target, all over the same steps."""
    drawing = Drawing()
    top = heading(drawing, view.title, view.about) + 10
    top = legend(drawing, _keys(view), MARGIN, top, WIDE - MARGIN) + ABOVE
    count = len(view.targets)
    columns = 1 if count <= 4 else 2 if count <= 12 else 3
    lines = math.ceil(count / columns)
    wide = (WIDE - 2 * MARGIN + BETWEEN) / columns - BETWEEN
    high = ALONE if count == 1 else HIGH
    for k in range(count):
        line, column = divmod(k, columns)
        left, upper = MARGIN + column * (wide + BETWEEN), top + line * (high + ABOVE)
        x = Axis(0, max(len(view.times) - 1, 1), left + AXIS, left + wide)
        _panel(drawing, view, k, x, (upper, upper + high), is_lowest=k + columns >= count)
    return drawing.svg(WIDE, top + lines * (high + ABOVE) + 20, view.title)


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
    y = Axis.over(np.concatenate([line[:, k] for line in lines]).tolist(), *reversed(heights))
    panel, now = Panel(drawing, x, y), len(view.before) - 1
    ticks = list(_ticks(view.times, x))
    for step, _ in ticks:
        drawing.line([(x(step), y.start), (x(step), y.end)], RULE)

    def ahead(line: Array) -> list[tuple[float, float]]:
        """A line that begins at the last step that is known."""
        return list(enumerate([float(view.before[-1, k]), *line[:, k].tolist()], now))

    upper, lower = ([panel.at(*at) for at in ahead(line)] for line in (view.high, view.low))
    drawing.area([*upper, *reversed(lower)], BAND)
    drawing.line([(x(now), y.start), (x(now), y.end)], FAINT, 1.4)
    words = ticks if is_lowest else [(step, "") for step, _ in ticks]
    panel.axes(view.time if is_lowest else "", view.targets[k], words)
    panel.curve(ahead(view.baseline), BASELINE, 1.6, DASHED)
    panel.curve(enumerate(view.before[:, k].tolist()), INK, 1.8)
    panel.curve(ahead(view.point), MODEL, 2.4)
    if view.actual is not None:
        for at in panel.curve(ahead(view.actual), INK, 1.8, DOTTED)[1:]:
            drawing.mark(at, 0, INK, 2.8)


def _ticks(times: Sequence[str], x: Axis) -> Iterator[tuple[float, str]]:
    """As many times as fit beside each other, and on the paper."""
    wide = max(text_width(time, 11) for time in times)
    every = max(1, math.ceil(len(times) * (wide + 24) / (x.end - x.start)))
    for step in range(0, len(times), every):
        if x(step) + wide / 2 <= x.end + BETWEEN:
            yield step, times[step]

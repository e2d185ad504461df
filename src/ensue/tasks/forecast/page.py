"""A forecast for a notebook: a small chart of each target, and the numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ensue.drawing.html import ACCENT, LINE, SOFT, Markup, block, on_page, table, tint
from ensue.drawing.svg import BLUE, Point, text_width
from ensue.tasks.answers import columns_of
from ensue.tasks.forecast.answer import Before, Expected, ForecastStep
from ensue.tasks.forecast.picture import Chart, ticks_of

WIDE, HIGH = 680.0, 190.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, WIDE - 36, 10.0, HIGH - 26
MOST_TICKS, MOST_CHARTS = 4, 6


def forecast_html(steps: Sequence[ForecastStep], before: Before) -> str:
    """before: the end of the series, empty where it does not lead to these steps."""
    many = "1 step ahead" if len(steps) == 1 else f"{len(steps):,} steps ahead"
    if not steps:
        return block(many)
    targets = list(steps[0].expected)
    times = [*before.times, *(step.time for step in steps)]
    charts = [
        _chart(name, times, before.values.get(name, ()), [step.expected[name] for step in steps])
        for name in targets[:MOST_CHARTS]
    ]
    columns = columns_of(steps)
    rows = list(zip(*columns.values(), strict=True))
    return block(f"{', '.join(targets)}: {many}", *charts, table(rows, list(columns)))


def _chart(
    name: str, times: Sequence[str], before: Sequence[float], ahead: Sequence[Expected]
) -> Markup:
    """What was known as a line, what is expected as another, inside of its interval."""
    every = [*before, *(v for step in ahead for v in (step.value, step.low, step.high))]
    finite = [value for value in every if math.isfinite(value)]
    if not finite:
        return Markup()
    low, high = min(finite), max(finite)
    room = 0.06 * (high - low) or 1.0
    low, high = low - room, high + room

    def at(step: int, value: float) -> Point:
        x = LEFT + (RIGHT - LEFT) * step / max(len(times) - 1, 1)
        return x, BOTTOM - (BOTTOM - TOP) * (min(max(value, low), high) - low) / (high - low)

    chart = Chart()
    for tick in ticks_of(low, high, MOST_TICKS):
        y = at(0, tick)[1]
        chart.line([(LEFT, y), (RIGHT, y)], LINE, 1)
        chart.words((LEFT - 8, y), f"{tick:,.6g}", 11, SOFT, "end")
    _times(chart, times)
    # both lines begin at the last step that is known
    known = [Expected(before[-1], before[-1], before[-1])] if before else []
    path, first = [*known, *ahead], len(times) - len(ahead) - len(known)
    upper = [at(first + k, step.high) for k, step in enumerate(path)]
    lower = [at(first + k, step.low) for k, step in enumerate(path)]
    chart.area([*upper, *reversed(lower)], tint(BLUE.line, 0.22))
    chart.line([at(k, value) for k, value in enumerate(before)], "currentColor", 1.6)
    chart.line([at(first + k, step.value) for k, step in enumerate(path)], ACCENT, 2.2)
    return on_page(chart.svg(WIDE, HIGH, f"{name}, {len(ahead)} steps ahead"))


def _times(chart: Chart, times: Sequence[str]) -> None:
    widest = max(text_width(time, 11) for time in times) + 20
    every = max(1, math.ceil(len(times) * widest / (RIGHT - LEFT)))
    for step in range(len(times) - 1, -1, -every):
        x = LEFT + (RIGHT - LEFT) * step / max(len(times) - 1, 1)
        chart.words((x, BOTTOM + 15), times[step], 11, SOFT)

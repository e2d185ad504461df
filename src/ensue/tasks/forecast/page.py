"""A forecast for a notebook: a small chart of each target, and the numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ensue.drawing.html import Markup, block, table
from ensue.drawing.inline import Band, band_chart
from ensue.tasks.answers import columns_of
from ensue.tasks.forecast.answer import Before, Expected, ForecastStep

MOST_CHARTS = 6


def forecast_html(steps: Sequence[ForecastStep], before: Before) -> str:
    """before: the end of the series, empty where it does not lead to these steps."""
    many = "1 step ahead" if len(steps) == 1 else f"{len(steps):,} steps ahead"
    if not steps:
        return block(many)
    targets = list(steps[0].expected)
    times = [*before.times, *(step.time for step in steps)]
    charts = [
        _chart(times, before.values.get(name, ()), [step.expected[name] for step in steps])
        for name in targets[:MOST_CHARTS]
    ]
    columns = columns_of(steps)
    rows = list(zip(*columns.values(), strict=True))
    return block(f"{', '.join(targets)}: {many}", *charts, table(rows, list(columns)))


def _chart(times: Sequence[str], before: Sequence[float], ahead: Sequence[Expected]) -> Markup:
    """What was known as a line; what is expected begins at its end, inside of its interval."""
    known = [Expected(before[-1], before[-1], before[-1])] if before else []
    path = [*known, *ahead]
    band = Band(*zip(*((step.value, step.low, step.high) for step in path), strict=True))
    finite = all(map(math.isfinite, (*before, *band.value, *band.low, *band.high)))
    return band_chart(times, before, band) if finite else Markup()

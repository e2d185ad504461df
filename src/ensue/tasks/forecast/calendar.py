"""What the calendar says of the times of a series."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ensue.data.time.dates import Moment
from ensue.errors import DataError


def calendar(moments: Sequence[Moment], names: Sequence[str]) -> NDArray[np.float64]:
    """(steps, 2·names): sine and cosine of each phase, so that December stands beside January."""
    phases = np.array([[_phase(moment, name) for name in names] for moment in moments])
    turns = 2 * np.pi * phases.reshape(len(moments), len(names))
    return np.stack([np.sin(turns), np.cos(turns)], -1).reshape(len(moments), -1)


def _phase(moment: Moment, name: str) -> float:
    if isinstance(moment, float):
        raise DataError(f"calendar: {name} needs dates, got the number {moment:g}")
    if name == "month":
        return (moment.month - 1) / 12
    if name == "weekday":
        return moment.weekday() / 7
    hours = moment.hour + moment.minute / 60
    if name == "hour":
        return hours / 24
    return (moment.timetuple().tm_yday - 1 + hours / 24) / 365.25

"""The times of a series: evenly spaced, and what the calendar says of them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from ensue.data.series import number_of
from ensue.errors import DataError
from ensue.tasks.rows.part import Names

Moment = datetime | float

MONTH = re.compile(r"(\d{4})-(\d{2})")


def moment_of(text: str, column: str, place: str) -> Moment:
    """A date, a month as 1949-01, or a number."""
    number = number_of(text)
    if number is not None:
        return number
    month = MONTH.fullmatch(text.strip())
    try:
        found = datetime.fromisoformat(f"{text.strip()}-01" if month else text.strip())
    except ValueError:
        raise DataError(
            f"{place}: column {column!r}: expected a date such as 1958-11-30, 1958-11-30 06:00 or "
            f"1958-11, or a number, got {text!r}"
        ) from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


@dataclass(frozen=True)
class Spacing:
    """How far steps are apart: whole months, or a span of seconds or of plain numbers."""

    months: int
    span: timedelta | float

    def after(self, moment: Moment, steps: int) -> Moment:
        if isinstance(moment, datetime) and self.months:
            month = moment.month - 1 + self.months * steps
            return moment.replace(year=moment.year + month // 12, month=month % 12 + 1)
        return moment + self.span * steps  # type: ignore[operator]


def spacing_of(first: Moment, second: Moment) -> Spacing:
    """From one step to the next; dates with the same day and hour are months apart."""
    if isinstance(first, datetime) and isinstance(second, datetime):
        months = 12 * (second.year - first.year) + second.month - first.month
        shifted = Spacing(months, timedelta()).after(first, 1) if first.day <= 28 else None
        if months > 0 and shifted == second:
            return Spacing(months, timedelta())
        return Spacing(0, second - first)
    return Spacing(0, second - first)  # type: ignore[operator]


def check_spacing(
    times: Sequence[str], moments: Sequence[Moment], column: str, names: Names
) -> None:
    """Times rise, and each step is as long as the first."""
    for k in range(1, len(moments)):
        last, this = moments[k - 1], moments[k]
        if type(last) is not type(this):
            raise DataError(
                f"{names[k]}: column {column!r}: expected a time written as {times[k - 1]!r} "
                f"before it, got {times[k]!r}"
            )
        if this <= last:  # type: ignore[operator]
            what = "comes twice" if this == last else f"does not come after {times[k - 1]!r}"
            raise DataError(
                f"{names[k]}: column {column!r}: {times[k]!r} {what}; sort the rows by time, "
                "one row for each"
            )
    if len(moments) < 3:
        return
    spacing = spacing_of(moments[0], moments[1])
    for k in range(2, len(moments)):
        wanted = spacing.after(moments[k - 1], 1)
        if not _same(wanted, moments[k]):
            raise DataError(
                f"{names[k]}: column {column!r}: expected {shown(wanted, times[k])} after "
                f"{times[k - 1]!r}, got {times[k]!r}: steps must be evenly spaced. Fill the gap, "
                "or leave the time out, and rows count as steps"
            )


def _same(wanted: Moment, got: Moment) -> bool:
    if isinstance(wanted, float) and isinstance(got, float):
        return math.isclose(wanted, got, rel_tol=1e-6, abs_tol=1e-9)
    return wanted == got


def shown(moment: Moment, like: str) -> str:
    """A moment as the file writes its times."""
    if isinstance(moment, float):
        return f"{moment:g}"
    text = moment.replace(tzinfo=None).isoformat(" " if " " in like else "T")
    return text[: len(like)] if len(like) in (7, 10, 13, 16, 19) else text


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

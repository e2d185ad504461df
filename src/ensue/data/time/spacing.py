"""How far the steps of series are apart: whole months, working days, or a span."""

from __future__ import annotations

import math
from calendar import monthrange
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, datetime, timedelta
from itertools import pairwise

from ensue.data.time.dates import Moment
from ensue.errors import DataError

LAST_SAFE_DAY = 28  # every month has it
NEAR = 1e-6  # of numbers that are multiples of another
MOST_INSERTED = 1.0  # missing steps for each that is there; more, and the spacing is not clear
DAY, WEEK = timedelta(days=1), 5  # working days of a week


@dataclass(frozen=True)
class Spacing:
    """months: whole ones, at the last day of each with `month_end`; working: days from Monday to
    Friday; else a span of time or of plain numbers."""

    months: int = 0
    span: timedelta | float = 0.0
    month_end: bool = False
    working: bool = False

    def after(self, moment: Moment, steps: int) -> Moment:
        """So many steps later; a DataError where no date is as late."""
        try:
            return self._after(moment, steps)
        except (ValueError, OverflowError):
            raise DataError(
                f"no date comes {steps} × {self} after {moment}: dates end with the year "
                f"{MAXYEAR}. Is the last date of the data right?"
            ) from None

    def _after(self, moment: Moment, steps: int) -> Moment:
        if isinstance(moment, float):
            assert isinstance(self.span, float)
            return moment + self.span * steps
        if self.months:
            month = moment.month - 1 + self.months * steps
            year, month = moment.year + month // 12, month % 12 + 1
            day = monthrange(year, month)[1] if self.month_end else moment.day
            return moment.replace(year=year, month=month, day=day)
        if self.working:
            weeks, days = divmod(moment.weekday() + steps, WEEK)
            return moment + timedelta(days=7 * weeks + days - moment.weekday())
        assert isinstance(self.span, timedelta)
        return moment + self.span * steps

    def steps(self, first: Moment, second: Moment) -> int | None:
        """From one moment to a later one; None where that is no whole number of steps."""
        if isinstance(first, float) or isinstance(second, float):
            assert isinstance(first, float)
            assert isinstance(second, float)
            assert isinstance(self.span, float)
            count = (second - first) / self.span
            near = max(NEAR * abs(count), NEAR)
            return round(count) if abs(count - round(count)) <= max(near, 1e-3) else None
        if self.months:
            count, rest = divmod(_months(first, second), self.months)
            return None if rest else count
        if self.working:
            days = (second.date() - first.date()).days + first.weekday()
            return days // 7 * WEEK + min(days % 7, WEEK) - first.weekday()
        assert isinstance(self.span, timedelta)
        count, left = divmod(second - first, self.span)
        return None if left else count

    @property
    def seasons(self) -> tuple[float, ...]:
        """Steps of the day, the week and the year, as far as they are longer than a step."""
        if self.months:
            return (12 / self.months,) if self.months < 12 else ()
        if self.working:
            return (5.0, 260.9)
        if not isinstance(self.span, timedelta) or not self.span:
            return ()
        lengths = [DAY / self.span, 7 * DAY / self.span, 365.25 * DAY / self.span]
        return tuple(own for own in lengths if own >= 2)

    def __str__(self) -> str:
        if self.months:
            return _counted(self.months, "month")
        if self.working:
            return "working day"
        if isinstance(self.span, float):
            return f"{self.span:g}"
        for name, length in (("week", 7 * DAY), ("day", DAY), ("hour", DAY / 24)):
            if not self.span % length:
                return _counted(self.span // length, name)
        minutes = self.span / timedelta(minutes=1)
        return _counted(int(minutes), "minute") if minutes == int(minutes) else f"{self.span}"


def _counted(count: int, what: str) -> str:
    return what if count == 1 else f"{count} {what}s"


def _months(first: datetime, second: datetime) -> int:
    return 12 * (second.year - first.year) + second.month - first.month


def spacing_of(groups: Sequence[Sequence[Moment]]) -> Spacing | None:
    """Of series, each of rising moments; None where it is not clear."""
    pairs = [pair for group in groups for pair in pairwise(group)]
    if not pairs:
        return None
    every = [moment for group in groups for moment in group]
    dates = [moment for moment in every if isinstance(moment, datetime)]
    found = _of_numbers(pairs) if not dates else _of_dates(dates, pairs)
    if found is None:
        return None
    counts = [found.steps(*pair) for pair in pairs]
    if any(count is None or count < 1 for count in counts):
        return None
    inserted = sum(count - 1 for count in counts if count is not None)
    return found if inserted <= max(MOST_INSERTED * len(every), 1) else None


def _of_numbers(pairs: Iterable[tuple[Moment, Moment]]) -> Spacing | None:
    plain = ((a, b) for a, b in pairs if isinstance(a, float) and isinstance(b, float))
    spans = sorted(second - first for first, second in plain)
    if not spans:
        return None
    middle = [span for span in spans if span <= spans[0] * (1 + NEAR) + 1e-12]
    return Spacing(span=float(sum(middle) / len(middle))) if spans[0] > 0 else None


def _of_dates(dates: Sequence[datetime], pairs: Sequence[tuple[Moment, Moment]]) -> Spacing | None:
    both = [(one, two) for one, two in pairs if isinstance(one, datetime)]
    spans = [two - one for one, two in both if isinstance(two, datetime)]
    clocks = {moment.timetz() for moment in dates}
    if len(clocks) == 1:
        months = math.gcd(*(_months(one, two) for one, two in both if isinstance(two, datetime)))
        if len({moment.day for moment in dates}) == 1 and dates[0].day <= LAST_SAFE_DAY and months:
            return Spacing(months)
        ends = all(own.day == monthrange(own.year, own.month)[1] for own in dates)
        if ends and months:
            return Spacing(months, month_end=True)
    micros = [span // timedelta(microseconds=1) for span in spans]
    span = timedelta(microseconds=math.gcd(*micros))
    if not span:
        return None
    weekend = any(moment.weekday() >= WEEK for moment in dates)
    working = len(clocks) == 1 and span == DAY and not weekend and len(dates) > WEEK
    return Spacing(working=True) if working else Spacing(span=span)

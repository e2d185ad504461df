"""The time axis of a table: its rows ordered by series and time, with a place for each step."""

from __future__ import annotations

import itertools
import math
from calendar import monthrange
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, datetime, timedelta
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ensue.data.series import MISSING
from ensue.data.time.dates import AUTO, DAY_FIRST, ISO, MONTH_FIRST, Moment, Spelling, spellings_of
from ensue.errors import DataError

LAST_SAFE_DAY = 28  # every month has it
NEAR = 1e-6  # tolerance for multiples of a number
MOST_INSERTED = 1.0  # maximum missing steps per existing step; with more, the spacing is unclear
DAY, WEEK = timedelta(days=1), 5  # working days of a week


@dataclass(frozen=True)
class Spacing:
    """The distance of steps. months: whole months, at their last day with `month_end`; working:
    days from Monday to Friday; else a span of time or of plain numbers."""

    months: int = 0
    span: timedelta | float = 0.0
    month_end: bool = False
    working: bool = False

    def after(self, moment: Moment, steps: int) -> Moment:
        """The moment that many steps later; raises DataError after the last possible date."""
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
        """The number of steps between two moments; None if it is not an integer."""
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
        """The day, the week and the year in steps, if longer than a step."""
        if self.months:
            return (12 / self.months,) if self.months < 12 else ()
        if self.working:
            return (5.0, 260.9)
        if not isinstance(self.span, timedelta) or not self.span:
            return ()
        lengths = [DAY / self.span, 7 * DAY / self.span, 365.25 * DAY / self.span]
        return tuple(length for length in lengths if length >= 2)

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
    """The spacing of series with rising moments; None if unclear."""
    pairs = [pair for group in groups for pair in pairwise(group)]
    if not pairs:
        return None
    every = [moment for group in groups for moment in group]
    dates = [moment for moment in every if isinstance(moment, datetime)]
    spacing = _of_numbers(pairs) if not dates else _of_dates(dates, pairs)
    if spacing is None:
        return None
    counts = [spacing.steps(*pair) for pair in pairs]
    if any(count is None or count < 1 for count in counts):
        return None
    inserted = sum(count - 1 for count in counts if count is not None)
    return spacing if inserted <= max(MOST_INSERTED * len(every), 1) else None


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
        ends = all(date.day == monthrange(date.year, date.month)[1] for date in dates)
        if ends and months:
            return Spacing(months, month_end=True)
    micros = [span // timedelta(microseconds=1) for span in spans]
    span = timedelta(microseconds=math.gcd(*micros))
    if not span:
        return None
    weekend = any(moment.weekday() >= WEEK for moment in dates)
    working = len(clocks) == 1 and span == DAY and not weekend and len(dates) > WEEK
    return Spacing(working=True) if working else Spacing(span=span)


MOST_SHOWN = 5  # problems of one message
INSERTED = -1
Rows = NDArray[np.int64]
Where = Callable[[int], str]  # the place of a row, for messages


@dataclass(frozen=True)
class TimeColumn:
    """A column of times. texts: the text of each row; moments: the parsed times, None for rows
    without one; spelling: the spelling of the times."""

    texts: tuple[str, ...]
    moments: tuple[Moment | None, ...]
    spelling: Spelling


@dataclass(frozen=True)
class Axis:
    """rows: the row of each step, −1 for missing steps; bounds (series + 1): where each series
    begins; ids: the id of each series; moments, times: the parsed and written time of each step, ()
    without times; spacing: None if each row is a step; notes: remarks for the user."""

    rows: Rows
    bounds: Rows
    ids: tuple[tuple[str, ...], ...]
    moments: tuple[Moment, ...] = ()
    times: tuple[str, ...] = ()
    spacing: Spacing | None = None
    notes: tuple[str, ...] = ()

    @property
    def inserted(self) -> int:
        return int((self.rows == INSERTED).sum())


# --- the times -------------------------------------------------------------------------------


def is_missing(text: str) -> bool:
    return text.strip().lower() in MISSING


def time_column(
    texts: Sequence[str], column: str, where: Where, order: str = AUTO, ids: Sequence[object] = ()
) -> TimeColumn:
    """Reads all texts in one spelling. order: day-first or month-first, if known; ids: the id of
    each row; the reading with evenly spaced dates for each id is right. Errors name the texts that
    are not dates, or ask for the order."""
    present = [text for text in texts if not is_missing(text)]
    spellings = spellings_of(present, column, order)
    if not spellings:
        raise _no_dates(texts, column, where)
    if len(spellings) > 1:
        spellings = _even_ones(spellings, texts, ids) or spellings
    if len(spellings) > 1:
        first = next(
            (text for text in present if len({spelling.read(text) for spelling in spellings}) > 1),
            present[0],
        )
        one, two = (spelling.read(first) for spelling in spellings)
        raise DataError(
            f"{where(texts.index(first))}: column {column!r}: {first!r} may be "
            f"{ISO.write(one, '2021-01-01')} or {ISO.write(two, '2021-01-01')}, and no row tells "
            f"which: add --dates {DAY_FIRST} or --dates {MONTH_FIRST} (in Python: "
            f'model={{"dates": "{DAY_FIRST}"}})'
        )
    moments = tuple(None if is_missing(text) else spellings[0].read(text) for text in texts)
    return TimeColumn(tuple(texts), moments, spellings[0])


def _even_ones(
    spellings: Sequence[Spelling], texts: Sequence[str], ids: Sequence[object]
) -> list[Spelling]:
    """The spellings under which every series is evenly spaced, in the order of the rows."""
    keys = ids or [""] * len(texts)
    even = []
    for spelling in spellings:
        groups: dict[object, list[Moment]] = {}
        for key, text in zip(keys, texts, strict=True):
            if not is_missing(text):
                groups.setdefault(key, []).append(spelling.read(text))
        rising = all(a < b for group in groups.values() for a, b in itertools.pairwise(group))  # type: ignore[operator]
        if rising and spacing_of(list(groups.values())) is not None:
            even.append(spelling)
    return even


def _no_dates(texts: Sequence[str], column: str, where: Where) -> DataError:
    """The error on texts in another spelling than the first, or on all if the first is not a
    date."""
    present = [k for k, text in enumerate(texts) if not is_missing(text)]
    if not present:
        return DataError(f"{where(0)}: column {column!r}: expected dates, got no value at all")
    lead = spellings_of([texts[present[0]]], column)
    wrong = [k for k in present if not lead or not spellings_of([texts[k]], column)]
    if not wrong:
        names = {spelling.name for spelling in lead}
        wrong = [k for k in present if not any(spelling.reads(texts[k]) for spelling in lead)]
        like = texts[present[0]]
        messages = [
            f"{where(k)}: column {column!r}: expected a time written as {like!r}, got {texts[k]!r}"
            for k in wrong[:MOST_SHOWN]
        ]
        return DataError("\n".join(messages or [f"column {column!r}: {', '.join(names)}"]))
    messages = [
        f"{where(k)}: column {column!r}: expected a date such as 1958-11-30, 30.11.1958, "
        f"11/30/1958, 1958-11 or 1958Q4, with a time such as 06:00 or not, or a number, got "
        f"{texts[k]!r}"
        for k in wrong[:MOST_SHOWN]
    ]
    more = [f"and {len(wrong) - MOST_SHOWN} more"] if len(wrong) > MOST_SHOWN else []
    return DataError("\n".join([*messages, *more]))


# --- steps -----------------------------------------------------------------------------------


def arranged(
    count: int,
    where: Where,
    times: TimeColumn | None = None,
    column: str = "",
    ids: Sequence[tuple[str, ...]] = (),
    spacing: Spacing | None = None,
    contents: Sequence[object] = (),
) -> Axis:
    """The order of rows by series and time. times: if None, rows are steps in their order; spacing:
    the spacing of the model's training data, if these rows do not determine one; contents: the
    content of each row, to drop copies of a row."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for row in range(count):
        groups.setdefault(ids[row] if ids else (), []).append(row)
    if times is None:
        rows = np.array([row for group in groups.values() for row in group], np.int64)
        return Axis(rows, _bounds(map(len, groups.values())), tuple(groups))
    notes = [*_written_in(times, column), *_without_time(groups, times, column)]
    unsorted = sum(_sort(group, times) for group in groups.values())
    if unsorted:
        notes.append(f"rows sorted by {column}: {unsorted:,} out of order")
    notes += _without_copies(groups, times, contents) if contents else []
    _refuse_twice(groups, times, column, where, bool(ids))
    moments = {key: [_known(times.moments[row]) for row in group] for key, group in groups.items()}
    step = spacing_of(list(moments.values())) or _given_spacing(spacing, moments)
    if step is None:
        return _as_they_come(groups, times, column, notes)
    return _even(groups, moments, times, step, notes)


def _known(moment: Moment | None) -> Moment:
    assert moment is not None
    return moment


def _given_spacing(
    spacing: Spacing | None, moments: Mapping[tuple[str, ...], list[Moment]]
) -> Spacing | None:
    """The spacing of other data, if these have one moment per series or fit that spacing."""
    if spacing is None:
        return None
    pairs = [
        pair for times_of_group in moments.values() for pair in itertools.pairwise(times_of_group)
    ]
    return spacing if all(spacing.steps(*pair) is not None for pair in pairs) else None


def _bounds(lengths: object) -> Rows:
    return np.concatenate([[0], np.cumsum(list(lengths))]).astype(np.int64)  # type: ignore[call-overload]


def _without_time(
    groups: dict[tuple[str, ...], list[int]], times: TimeColumn, column: str
) -> list[str]:
    """Removes the rows without a time."""
    lost = 0
    for group in groups.values():
        known = [row for row in group if times.moments[row] is not None]
        lost += len(group) - len(known)
        group[:] = known
    for key in [key for key, group in groups.items() if not group]:
        del groups[key]
    if not groups:
        raise DataError(f"column {column!r}: expected times, got no row that has one")
    return [f"{lost:,} row{'s' * (lost > 1)} without a {column} left out"] if lost else []


def _sort(rows: list[int], times: TimeColumn) -> int:
    """Sorts the rows of a series by time; returns the number of rows that were out of order."""
    moments = [_known(times.moments[row]) for row in rows]
    wrong = sum(two < one for one, two in itertools.pairwise(moments))  # type: ignore[operator]
    if wrong:
        rows.sort(key=lambda row: _known(times.moments[row]))
    return wrong


def _written_in(times: TimeColumn, column: str) -> list[str]:
    """A note if the times have several notations."""
    ways = times.spelling.ways
    if not ways:
        return []
    order = f", {times.spelling.order}" if times.spelling.order else ""
    listed = ", ".join(map(repr, ways))
    return [f"{column} is written in {len(ways)} ways ({listed}{order}): each is read as it is"]


def _without_copies(
    groups: Mapping[tuple[str, ...], list[int]], times: TimeColumn, contents: Sequence[object]
) -> list[str]:
    """Removes rows with the same time and content as another."""
    lost = 0
    for group in groups.values():
        first_rows: dict[object, int] = {}
        rows = [
            row
            for row in group
            if first_rows.setdefault((times.moments[row], contents[row]), row) == row
        ]
        lost += len(group) - len(rows)
        group[:] = rows
    return [f"{lost:,} row{'s' * (lost > 1)} left out: duplicates of others"] if lost else []


def _refuse_twice(
    groups: Mapping[tuple[str, ...], list[int]],
    times: TimeColumn,
    column: str,
    where: Where,
    grouped: bool,
) -> None:
    twice = [
        (one, two, key)
        for key, group in groups.items()
        for one, two in itertools.pairwise(group)
        if times.moments[one] == times.moments[two]
    ]
    if not twice:
        return
    messages = [
        f"{where(two)}: column {column!r}: {times.texts[two]!r} comes twice"
        + f" for {', '.join(key)}" * bool(key)
        + f", as {where(one)} has it too"
        for one, two, key in twice[:MOST_SHOWN]
    ]
    many = f"{len(twice):,} such rows in all" if len(twice) > MOST_SHOWN else ""
    hint = "keep one row for each time"
    if not grouped:
        hint += ", or name the column that tells several series apart with --group"
    raise DataError("\n".join([*messages, *filter(None, [many]), hint]))


def _as_they_come(
    groups: Mapping[tuple[str, ...], list[int]], times: TimeColumn, column: str, notes: list[str]
) -> Axis:
    rows = np.array([row for group in groups.values() for row in group], np.int64)
    moments = tuple(_known(times.moments[row]) for row in rows)
    if len(rows) > len(groups):
        notes.append(f"{column} is not evenly spaced: each row is one step")
    texts = tuple(times.texts[row] for row in rows)
    bounds = _bounds(map(len, groups.values()))
    return Axis(rows, bounds, tuple(groups), moments, texts, None, tuple(notes))


def _even(
    groups: Mapping[tuple[str, ...], list[int]],
    moments: Mapping[tuple[str, ...], list[Moment]],
    times: TimeColumn,
    spacing: Spacing,
    notes: list[str],
) -> Axis:
    """The axis with a step for each moment between the first and the last of a series."""
    rows: list[int] = []
    every: list[Moment] = []
    texts: list[str] = []
    lengths = []
    for key, group in groups.items():
        before = len(rows)
        for row, moment in zip(group, moments[key], strict=True):
            if len(rows) > before:
                missing = (spacing.steps(every[-1], moment) or 1) - 1
                ahead = [spacing.after(every[-1], k) for k in range(1, missing + 1)]
                rows += [INSERTED] * missing
                every += ahead
                texts += [times.spelling.write(step, times.texts[row]) for step in ahead]
            rows.append(row)
            every.append(moment)
            texts.append(times.texts[row])
        lengths.append(len(rows) - before)
    inserted = rows.count(INSERTED)
    if inserted:
        notes.append(
            f"{inserted:,} step{'s' * (inserted > 1)} missing between others (a step is a "
            f"{spacing}): read as missing values"
        )
    return Axis(
        np.array(rows, np.int64),
        _bounds(lengths),
        tuple(groups),
        tuple(every),
        tuple(texts),
        spacing,
        tuple(notes),
    )

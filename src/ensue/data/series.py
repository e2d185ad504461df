"""Tables of numbers: a time series with a step on each line, or many sequences in one table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from ensue.data.options import ALL, ReadOptions
from ensue.data.rows import Place, Problem, ProblemCallback, Row
from ensue.data.values import RANGE, is_finite
from ensue.files.opening import LARGEST_NUMBER

LONGEST_NUMBER = 400  # characters
MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-"}
Steps = Callable[[ProblemCallback], Iterator[Row]]  # the rows of a table


def number_of(value: Any) -> float | None:
    """The finite number in a field; only ASCII notation counts."""
    if isinstance(value, str):
        if not value.isascii() or "_" in value:  # Python would also read ١٢ and 1_000
            return None
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_finite(value):
        return None
    return float(value)


def not_a_number(column: str, value: Any) -> str:
    return f"column {column!r}: expected a finite number, got {value!r}{number_hint(value)}"


def number_hint(value: Any) -> str:
    """A guess, in brackets, at a value that is not a number; "" if there is none."""
    if not isinstance(value, str):
        return ""
    if value.strip().lower() in MISSING:
        return " (a missing value?)"
    if with_point(value) is not None:
        return " (a decimal comma?)"
    return f" ({RANGE})" if is_too_large(value) else ""


def is_too_large(value: Any) -> bool:
    """Whether a value is a number that is too large or not finite: 1e40, inf."""
    if isinstance(value, str):
        if len(value) >= LONGEST_NUMBER or not value.isascii() or "_" in value:
            return False
        try:
            value = float(value)
        except ValueError:
            return False
    return isinstance(value, int | float) and abs(value) > LARGEST_NUMBER


def is_number(value: Any) -> bool:
    """Whether a field is written as a number, even one that is too large."""
    return number_of(value) is not None or is_too_large(value)


# --- decimal commas ----------------------------------------------------------------------

DECIMAL_COMMA = re.compile(r"\s*[+-]?(\d+|\d{1,3}(\.\d{3})+)?,\d+([eE][+-]?\d+)?\s*")
THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(\.\d{3})+\s*")
NEARLY_ALL = 0.95


def with_point(text: str) -> str | None:
    """Converts a number with a decimal comma to one with a point; None for anything else.

    >>> with_point("117,53"), with_point("1.234,5"), with_point("1, 2")
    ('117.53', '1234.5', None)
    """
    if "," not in text or not text.isascii() or not DECIMAL_COMMA.fullmatch(text):
        return None
    return text.replace(".", "").replace(",", ".")


def as_decimal_point(text: str) -> str:
    """Converts a field of a table with decimal commas, and points between thousands."""
    if "." in text and text.isascii() and THOUSANDS.fullmatch(text):
        return text.replace(".", "")
    converted = with_point(text)
    return text if converted is None else converted


def decimal_comma(values: Iterable[Any]) -> str | None:
    """A number with a decimal comma, if nearly all values are such numbers or integers; preferably
    one that has no other reading."""
    present = [
        value for value in values if isinstance(value, str) and value.strip().lower() not in MISSING
    ]
    commas = [text for text in present if with_point(text) is not None]
    numbers = len(commas) + sum("." not in text and is_number(text) for text in present)
    if not commas or numbers < NEARLY_ALL * len(present):
        return None
    return next((text for text in commas if not between_thousands(text)), commas[0])


def between_thousands(text: str) -> bool:
    """Whether the comma of a number may separate thousands, as in 1,234."""
    return len(text.strip().partition(",")[2]) == 3


# --- series ------------------------------------------------------------------------------


def with_numbers(steps: Steps, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
    """Rows whose `numbers` are floats and whose `time` increases."""
    before: tuple[Row, Any] | None = None
    for row in steps(on_bad_row):
        names = options.numbers
        if names == ALL:
            names = tuple(name for name in row.fields if name != options.time)
        values = {name: number_of(row.fields[name]) for name in names}
        faults = [not_a_number(n, row.fields[n]) for n, value in values.items() if value is None]
        if options.time is not None:
            moment = _moment(row.fields[options.time])
            faults += _not_later(options.time, row, moment, before)
            if not faults:
                before = row, moment
        for k, fault in enumerate(faults):
            on_bad_row(Problem(row.place, fault, rejects=int(k == 0)))
        if not faults:
            yield Row(row.place, {**row.fields, **values})


def _moment(value: Any) -> float | datetime | None:
    """A comparable number or date; None for times in other notations."""
    number = number_of(value)
    if number is not None or not isinstance(value, str):
        return number
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _not_later(name: str, row: Row, moment: Any, before: tuple[Row, Any] | None) -> list[str]:
    if before is None:
        return []
    earlier, last = before
    if type(moment) is not type(last):
        return [
            f"column {name!r}: expected a time written as on line {earlier.place.line} "
            f"({earlier.fields[name]!r}), got {row.fields[name]!r}"
        ]
    if moment is not None and moment <= last:
        return [
            f"column {name!r}: {row.fields[name]!r} does not come after "
            f"{earlier.fields[name]!r} on line {earlier.place.line}"
        ]
    return []


# --- sequences -----------------------------------------------------------------------------


class Collected:
    """One sequence being read."""

    def __init__(self, name: str, place: Place, columns: dict[str, Any]) -> None:
        self.name, self.place, self.columns = name, place, columns
        self.features: list[list[float]] = []
        self.step_columns: list[tuple[Any, ...]] = []
        self.faulty: Place | None = None


class SeriesCollector:
    """Collects the lines of a long table into sequences. An unreadable line belongs to the sequence
    around it. Between two sequences it may belong to either, so both are rejected."""

    def __init__(self, options: ReadOptions, on_bad_row: ProblemCallback) -> None:
        self.options, self._on_bad_row = options, on_bad_row
        self._current: Collected | None = None
        self._lost: Place | None = None  # an unreadable line since the last valid one
        self._begun: dict[str, int] = {}  # the first line of every sequence

    def add_fault(self, problem: Problem) -> None:
        self._on_bad_row(problem._replace(rejects=0))
        self._lost = problem.place

    def step(self, row: Row) -> Iterator[Row]:
        """Takes a line; yields the sequence that ended before it."""
        assert self.options.sequence is not None
        name = str(row.fields[self.options.sequence])
        if self._current is None or name != self._current.name:
            yield from self.end()
            columns = {column: row.fields[column] for column in self.options.columns}
            self._current = Collected(name, row.place, columns)
            if name in self._begun:
                self._fault(
                    row.place,
                    f"sequence {name!r} began on line {self._begun[name]} and has ended: the "
                    "lines of a sequence must be consecutive",
                )
            self._begun.setdefault(name, row.place.line)
        self._current.faulty = self._current.faulty or self._lost
        self._lost = None
        self._take(self._current, row)

    def _fault(self, place: Place, reason: str) -> None:
        assert self._current is not None
        self._on_bad_row(Problem(place, reason, rejects=0))
        self._current.faulty = self._current.faulty or place

    def _take(self, current: Collected, row: Row) -> None:
        numbers = [(column, number_of(row.fields[column])) for column in self._features(row)]
        for column, number in numbers:
            if number is None:
                self._fault(row.place, not_a_number(column, row.fields[column]))
        for column, value in current.columns.items():
            if row.fields[column] != value:
                self._fault(
                    row.place,
                    f"column {column!r}: expected {value!r} as on line {current.place.line}, "
                    f"got {row.fields[column]!r} in the same sequence {current.name!r}",
                )
        if current.faulty is None:
            current.features.append([number for _, number in numbers if number is not None])
            current.step_columns.append(
                tuple(row.fields[column] for column in self.options.step_columns)
            )

    def _features(self, row: Row) -> Sequence[str]:
        if self.options.numbers != ALL:
            return self.options.numbers
        others = {self.options.sequence, self.options.time}
        others |= {*self.options.columns, *self.options.step_columns}
        return [name for name in row.fields if name not in others]

    def end(self) -> Iterator[Row]:
        """Yields the current sequence, or reports that it is left out."""
        current, self._current = self._current, None
        if current is None:
            return
        faulty = current.faulty or self._lost
        if faulty:
            reason = f"sequence {current.name!r} is left out: line {faulty.line} is faulty"
            self._on_bad_row(Problem(current.place, reason))
            return
        columns = zip(*current.step_columns, strict=True)
        yield Row(
            current.place,
            {
                "sequence": current.name,
                "features": np.array(current.features),  # (steps, n)
                **current.columns,
                **dict(zip(self.options.step_columns, map(list, columns), strict=True)),
            },
        )


def sequences(steps: Steps, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
    """{"sequence": name, "features": array (steps, n), columns…} from a table with a line for
    each step."""
    collector = SeriesCollector(options, on_bad_row)
    for row in steps(collector.add_fault):
        yield from collector.step(row)
    yield from collector.end()

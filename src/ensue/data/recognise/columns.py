"""The kind of a column, by its values: identifier, dates, numbers, categories, texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ensue.data.rows import Row
from ensue.data.series import MISSING, is_number, number_of

MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
CLOCK = r"([T ,]+\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[ap]m)?( ?(Z|UTC|[+-]\d{2}:?\d{2}))?)?"
SPELLINGS = tuple(
    re.compile(f"{day}{CLOCK}", re.IGNORECASE)
    for day in (
        r"\d{4}-\d{1,2}-\d{1,2}",
        r"\d{4}-\d{2}",
        r"\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}",
        r"\d{4}[/.]\d{1,2}([/.]\d{1,2})?",
        rf"\d{{1,2}}[ .-]*({MONTHS})[a-z]*[ .,-]*\d{{2,4}}",
        rf"({MONTHS})[a-z]*[ .,-]*(\d{{1,2}}(st|nd|rd|th)?[ ,]+)?\d{{2,4}}",
        r"\d{4}[ -]?(Q[1-4]|W\d{1,2})",
    )
)
MOMENT_NAME = re.compile(
    r"(.*[_\-. ])?(date|time|datetime|timestamp|year|month|week|day|hour|period|step|t|ds)",
    re.IGNORECASE,
)
LONGEST = 40  # characters


def is_date(text: str) -> bool:
    """
    >>> [is_date(text) for text in ("2021-01-31", "01/31/2021", "31 Jan 2021", "3.14", "a 2021")]
    [True, True, True, False, False]
    """
    text = text.strip()
    return 5 < len(text) <= LONGEST and any(spelling.fullmatch(text) for spelling in SPELLINGS)


def is_moment_name(name: str) -> bool:
    """Whether a column has the name of a time."""
    return MOMENT_NAME.fullmatch(name.strip()) is not None


def whole_dates(numbers: Sequence[float]) -> bool:
    """Whether numbers are dates such as 20210131."""
    return all(
        number == int(number)
        and 1800 <= number // 10_000 <= 2200
        and 1 <= number // 100 % 100 <= 12
        and 1 <= number % 100 <= 31
        for number in numbers
    )


FEWEST_ROWS = 5  # number of rows needed to decide
RUN = 3  # consecutive integers as names just count columns
PAIR = ("text", "label")


class Unnamed(NamedTuple):
    """A file whose first line does not name the columns. names: names for the columns; why: the
    reason, from the first line."""

    names: list[str]
    why: str


def unnamed_columns(names: Sequence[str], rows: Sequence[Row]) -> Unnamed | None:
    """Names for the columns of a file whose first line is data: a "name" repeats as a value of its
    own column, or is a number with decimals above numbers. None if the first line may hold names; a
    word above numbers is always a name.

    >>> from ensue.data.rows import Place
    >>> rows = [Row(Place("", k), {"Rossi": f"name{k}", "Italian": "Italian"}) for k in range(9)]
    >>> unnamed_columns(["Rossi", "Italian"], rows)
    Unnamed(names=['text', 'label'], why="'Italian' is also a value of its column")
    """
    if len(rows) < FEWEST_ROWS or len(names) < 2 or _counted(names):
        return None
    columns = [column_of(rows, name) for name in names]
    below = {name: [str(row.fields.get(name, "")).strip() for row in rows] for name in names}
    if any(_names_numbers(name, values) for name, values in below.items()):
        return None
    for column in columns:
        values = below[column.name]
        if column.kind in (*VALUES, Kind.CONSTANT) and _repeats(column, values):
            return Unnamed(_names(columns), f"{column.name!r} is also a value of its column")
        if column.kind is Kind.NUMBER and "." in column.name and number_of(column.name) is not None:
            return Unnamed(_names(columns), f"{column.name!r} is a number among numbers")
    return None


def _counted(names: Sequence[str]) -> bool:
    """Whether names only count columns, or years: 1, 2, 3."""
    numbers = [number_of(name) for name in names]
    known = [number for number in numbers if number is not None and number == int(number)]
    return len(known) >= RUN and known == [known[0] + k for k in range(len(known))]


def _names_numbers(name: str, values: Sequence[str]) -> bool:
    """Whether the name is a word and the values are numbers."""
    filled = [value for value in values if value]
    if number_of(name) is not None or not filled:
        return False
    return all(number_of(value) is not None for value in filled)


def _repeats(column: Column, values: Sequence[str]) -> bool:
    often = 2 * column.different <= column.count
    return often and column.name.strip() in values


def _names(columns: Sequence[Column]) -> list[str]:
    written = [column.kind in WRITTEN for column in columns]
    if len(columns) == len(PAIR) and sum(written) == 1:
        return [*(PAIR if written[0] else PAIR[::-1])]
    return [f"column_{k}" for k in range(1, len(columns) + 1)]


class Kind(StrEnum):
    """The kind of a column, in the words of messages."""

    EMPTY = "no values"
    CONSTANT = "one value"
    IDENTIFIER = "an identifier"
    DATE = "dates"
    NUMBER = "numbers"
    CATEGORY = "values that repeat"
    NAME = "short texts"
    TEXT = "texts"
    TOKENS = "lists"
    STEPS = "sequences of numbers"
    OTHER = "nested values"


WRITTEN = (Kind.TEXT, Kind.NAME, Kind.TOKENS, Kind.STEPS)  # kinds that a model of sequences reads
VALUES = (Kind.NUMBER, Kind.CATEGORY)  # kinds that a model of tables reads
CAMEL_CASE = re.compile(r".*[a-z](Id|ID|Key|Uuid|UUID)")
PLAIN_NAME = re.compile(r"(.*[_\-. ])?(id|ids|uuid|guid|key|pk)", re.IGNORECASE)
ROW_NAMES = ("", "index", "row", "rownum", "row_number", "unnamed: 0", "nr", "no", "no.", "#")
CLASS_NAMES = re.compile(r"(class|label|target|category|topic|intent)[_ ]?id", re.IGNORECASE)
UUID = re.compile(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
NEARLY_ALL = 0.95
FEWEST = 5  # number of values needed to see whether they count or have one shape
SENTENCE = 3  # mean words; values with fewer are names
LONG = 8  # mean words that only texts have
LONG_NUMBER = 8  # digits


@dataclass(frozen=True)
class Column:
    """A column's statistics. count: number of values that are not missing; different: number of
    distinct values (of lists: distinct tokens); words: mean per value; whole: whether all are
    integers."""

    name: str
    kind: Kind
    count: int
    different: int
    words: float = 0.0
    whole: bool = False

    @property
    def bare(self) -> bool:
        """Whether the column has lists that are all empty."""
        return self.kind is Kind.TOKENS and not self.different

    @property
    def summary(self) -> str:
        """A summary of the column for a message."""
        if self.kind in (Kind.TEXT, Kind.TOKENS, Kind.NAME):
            what = "tokens" if self.kind is Kind.TOKENS else "words"
            many = f"{self.words:.1f}".removesuffix(".0")
            return f"{self.kind}, {many} {what[:-1] if many == '1' else what} on average"
        if self.kind in VALUES:
            what = "numbers" if self.kind is Kind.NUMBER else "values"
            return f"{self.different:,} different {what}"
        return str(self.kind)


def column_of(rows: Sequence[Row], name: str) -> Column:
    """The statistics of a column in the first rows."""
    values_or_none = (row.fields.get(name) for row in rows)
    values = [value for value in values_or_none if not _missing(value)]
    count = len(values)
    if not count:
        return Column(name, Kind.EMPTY, 0, 0)
    for kind, types in ((Kind.STEPS, np.ndarray), (Kind.TOKENS, list)):
        if any(isinstance(value, types) for value in values):
            alike = [value for value in values if isinstance(value, types)]
            tokens = {str(item) for value in alike for item in value} if types is list else alike
            mean = sum(map(len, alike)) / len(alike)
            return Column(name, kind, count, len(tokens), mean)
    if not all(isinstance(value, str | int | float | bool) for value in values):
        return Column(name, Kind.OTHER, count, count)
    different = len({str(value) for value in values})
    if different == 1 and count > 1:
        return Column(name, Kind.CONSTANT, count, 1, _words(values))
    numbers = [number_of(value) for value in values]
    if all(is_number(value) for value in values) and None not in numbers:
        known = [number for number in numbers if number is not None]
        whole = all(number == int(number) for number in known)
        return Column(name, _kind_of_numbers(name, values, known), count, different, 0, whole)
    return Column(name, _kind_of_texts(name, values, different), count, different, _words(values))


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() in MISSING)


def _words(values: Sequence[Any]) -> float:
    return sum(len(str(value).split()) for value in values) / len(values)


def is_identifier_name(name: str) -> bool:
    """
    >>> [is_identifier_name(name) for name in ("id", "ticket_id", "ticketId", "paid", "class_id")]
    [True, True, True, False, False]
    """
    if CLASS_NAMES.fullmatch(name):
        return False
    return bool(PLAIN_NAME.fullmatch(name) or CAMEL_CASE.fullmatch(name))


def _kind_of_numbers(name: str, values: Sequence[Any], numbers: Sequence[float]) -> Kind:
    whole = all(number == int(number) for number in numbers)
    alone = len({*numbers}) == len(numbers)
    rising = all(one < two for one, two in pairwise(numbers))
    if is_moment_name(name) and ((rising and len(numbers) > 1) or whole_dates(numbers)):
        return Kind.DATE
    if whole and is_identifier_name(name):
        return Kind.IDENTIFIER
    if not whole or not alone or len(numbers) < FEWEST:
        return Kind.NUMBER
    counted = all(two == one + 1 for one, two in pairwise(numbers))
    digits = {len(str(value).strip()) for value in values}
    long = len(digits) == 1 and digits.pop() >= LONG_NUMBER
    if counted or long or name.strip().lower() in ROW_NAMES:
        return Kind.IDENTIFIER
    return Kind.NUMBER


def _kind_of_texts(name: str, values: Sequence[Any], different: int) -> Kind:
    texts = [str(value).strip() for value in values]
    if sum(map(is_date, texts)) >= NEARLY_ALL * len(texts):
        return Kind.DATE
    if _codes(name, texts, different):
        return Kind.IDENTIFIER
    words = _words(texts)
    if words >= LONG or (words >= SENTENCE and 4 * different > len(texts)):
        return Kind.TEXT
    numbers = sum(number_of(text) is not None for text in texts)
    if numbers >= NEARLY_ALL * len(texts):
        return Kind.NUMBER  # a few cells may not be numbers
    return Kind.NAME if 2 * different > len(texts) else Kind.CATEGORY


def _codes(name: str, texts: Sequence[str], different: int) -> bool:
    """Whether values identify rows: they are not words, nearly all are different, and the column is
    named like an id or all have one shape."""
    if any(" " in text for text in texts):
        return False
    if is_identifier_name(name):
        return True
    if len(texts) < FEWEST or different < NEARLY_ALL * len(texts):
        return False
    if all(UUID.fullmatch(text) for text in texts):
        return True
    shapes = {re.sub(r"\d", "9", re.sub(r"[^\W\d_]", "A", text)) for text in texts}
    shape = min(shapes)
    return len(shapes) == 1 and "9" in shape and ("A" in shape or len(shape) >= LONG_NUMBER)

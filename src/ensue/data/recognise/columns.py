"""What the values of a column look like: an identifier, dates, numbers, categories, texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np

from ensue.data.recognise.dates import is_date, is_moment_name, whole_dates
from ensue.data.rows import Row
from ensue.data.series import MISSING, is_number, number_of


class Kind(StrEnum):
    """What a column holds, in the words of a message."""

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


WRITTEN = (Kind.TEXT, Kind.NAME, Kind.TOKENS, Kind.STEPS)  # what a model of sequences reads
VALUES = (Kind.NUMBER, Kind.CATEGORY)  # what a model of tables reads
CAMEL_CASE = re.compile(r".*[a-z](Id|ID|Key|Uuid|UUID)")
PLAIN_NAME = re.compile(r"(.*[_\-. ])?(id|ids|uuid|guid|key|pk)", re.IGNORECASE)
ROW_NAMES = ("", "index", "row", "rownum", "row_number", "unnamed: 0", "nr", "no", "no.", "#")
CLASS_NAMES = re.compile(r"(class|label|target|category|topic|intent)[_ ]?id", re.IGNORECASE)
UUID = re.compile(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
NEARLY_ALL = 0.95
FEWEST = 5  # values that tell whether they count, or have one shape
SENTENCE = 3  # words on average: fewer are names
LONG = 8  # words on average that nothing but a text has
LONG_NUMBER = 8  # digits


@dataclass(frozen=True)
class Column:
    """count: values that are there; different: among them, of lists among their tokens; words: of a
    value, on average; whole: whether all are whole numbers."""

    name: str
    kind: Kind
    count: int
    different: int
    words: float = 0.0
    whole: bool = False

    @property
    def bare(self) -> bool:
        """Lists without a token in any."""
        return self.kind is Kind.TOKENS and not self.different

    @property
    def seen(self) -> str:
        """What was seen, for the person who reads it."""
        if self.kind in (Kind.TEXT, Kind.TOKENS, Kind.NAME):
            what = "tokens" if self.kind is Kind.TOKENS else "words"
            many = f"{self.words:.1f}".removesuffix(".0")
            return f"{self.kind}, {many} {what[:-1] if many == '1' else what} on average"
        if self.kind in VALUES:
            what = "numbers" if self.kind is Kind.NUMBER else "values"
            return f"{self.different:,} different {what}"
        return str(self.kind)


def column_of(rows: Sequence[Row], name: str) -> Column:
    """What a column of the first rows holds."""
    given = (row.fields.get(name) for row in rows)
    values = [value for value in given if not _missing(value)]
    count = len(values)
    if not count:
        return Column(name, Kind.EMPTY, 0, 0)
    for kind, types in ((Kind.STEPS, np.ndarray), (Kind.TOKENS, list)):
        if any(isinstance(value, types) for value in values):
            found = [value for value in values if isinstance(value, types)]
            tokens = {str(own) for value in found for own in value} if types is list else found
            mean = sum(map(len, found)) / len(found)
            return Column(name, kind, count, len(tokens), mean)
    if not all(isinstance(value, str | int | float | bool) for value in values):
        return Column(name, Kind.OTHER, count, count)
    different = len({str(value) for value in values})
    if different == 1 and count > 1:
        return Column(name, Kind.CONSTANT, count, 1, _words(values))
    numbers = [number_of(value) for value in values]
    if all(is_number(value) for value in values) and None not in numbers:
        known = [own for own in numbers if own is not None]
        whole = all(own == int(own) for own in known)
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
        return Kind.NUMBER  # with a few cells that are none
    return Kind.NAME if 2 * different > len(texts) else Kind.CATEGORY


def _codes(name: str, texts: Sequence[str], different: int) -> bool:
    """Whether values name rows: no words, hardly two alike, and called an id or of one shape."""
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

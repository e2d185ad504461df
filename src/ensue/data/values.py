"""Values from JSON and Parquet: their kinds, which must be the same in every row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ensue.data.options import ALL, ReadOptions, needed_columns
from ensue.data.rows import Place, Problem, ProblemCallback, Row
from ensue.errors import unknown
from ensue.files.opening import LARGEST_NUMBER

NUMBERS = {int, float}
RANGE = f"at most {LARGEST_NUMBER:g}"
NO_LABEL = "expected a label, got nothing: fill it in"
NO_FIELD = "expected an object with text, numbers or lists of them, got none of these"
OBJECT = ": write the values that you need as separate fields"


class Unfit(Exception):
    """A value that no row can hold. Caught by the readers, never seen outside."""


def is_finite(number: float) -> bool:
    """Whether a number is finite and small enough for its square to be finite."""
    return abs(number) <= LARGEST_NUMBER  # false for NaN


def shown_number(value: float) -> str:
    """A number as text; a huge integer by its size."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"about 1e{int(value.bit_length() * 0.30103)}"
    return str(value)


def kind_of(value: Any) -> tuple[str, Any]:
    """The kind in words, and the value in the form of a row; raises `Unfit` with the fault.

    >>> kind_of("a"), kind_of(["a", "b"]), kind_of([[1, 2], [3, 4]])[0]
    (('text', 'a'), ('tokens', ['a', 'b']), 'vectors of 2 numbers')
    """
    if isinstance(value, str):
        return "text", sound_text(value)
    if isinstance(value, bool):
        return "true or false", value
    if isinstance(value, int | float):
        if not is_finite(value):
            raise Unfit(f"expected a finite number, {RANGE}, got {shown_number(value)}")
        return "a number", value
    if value is None:
        raise Unfit("expected a value, got null")
    if isinstance(value, list):
        return _kind_of_list(value)
    if isinstance(value, dict):
        raise Unfit(f"expected text, numbers or lists of them, got an object{OBJECT}")
    kind = type(value).__name__
    raise Unfit(f"expected text, numbers or lists of them, got a value of type {kind}")


def sound_text(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            code = ord(text[error.start])
            raise Unfit(f"U+{code:04X} is half of a surrogate pair, not a character") from None
    return text


def _kind_of_list(value: list[Any]) -> tuple[str, Any]:
    types = set(map(type, value))
    if not types:
        return "an empty list", value
    if types == {str}:
        return "tokens", [sound_text(token) for token in value]
    if types <= NUMBERS:
        if not all(map(is_finite, value)):
            raise Unfit(f"expected finite numbers, {RANGE}, got one that is not")
        return "numbers", np.array(value, np.float64)
    if types == {list}:
        return _vectors(value)
    got = " and ".join(sorted(map(_name, types)))
    raise Unfit(f"expected a list of values of one type, got {got}{OBJECT * (dict in types)}")


def _vectors(value: list[list[Any]]) -> tuple[str, Any]:
    width = len(value[0])
    for step, vector in enumerate(value, 1):
        if not set(map(type, vector)) <= NUMBERS:
            raise Unfit(f"expected vectors of numbers, got something else at step {step}")
        if len(vector) != width:
            raise Unfit(
                f"expected vectors of one width, got {width} numbers at step 1 "
                f"and {len(vector)} at step {step}"
            )
        if not all(map(is_finite, vector)):
            raise Unfit(f"expected finite numbers, {RANGE}, got one that is not at step {step}")
    return f"vectors of {width} numbers", np.array(value, np.float64)


def _name(kind: type) -> str:
    names = {str: "text", int: "numbers", float: "numbers", list: "lists", bool: "true or false"}
    return names.get(kind, "null" if kind is type(None) else "objects")


LISTS = ("tokens", "numbers", "vectors")


class Kinds:
    """Fields and the kind that each had first; all rows must agree."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[str, str]] = {}  # kind and place

    def faults(self, fields: dict[str, Any], place: str) -> list[str]:
        """The faults of these fields. Valid values are converted to the form of a row. place: as in
        "on line 3"."""
        problems = []
        kinds = {}
        for name, value in fields.items():
            try:
                kinds[name], fields[name] = kind_of(value)
            except Unfit as unfit:
                problems.append(f"field {name!r}: {unfit}")
                continue
            kind, before = self._first.get(name, (kinds[name], place))
            empty = kinds[name] == "an empty list" and kind.split()[0] in LISTS
            if kind != kinds[name] and not empty:
                problems.append(f"field {name!r}: expected {kind} as {before}, got {kinds[name]}")
        if not problems:
            for name, kind in kinds.items():
                if kind != "an empty list":
                    self._first.setdefault(name, (kind, place))
        return problems


# --- rows of objects ---------------------------------------------------------------------


class FieldReader:
    """Rows from objects of JSON and Parquet.

    Fields that the options name must exist (except those of `used`), be valid, and have the same
    kind in all rows, or null if they may be `empty`. Other fields, if kept, lose values that no row
    can hold, such as an object in an object; null becomes None."""

    def __init__(
        self, options: ReadOptions, on_bad_row: ProblemCallback, unit: str = "on line"
    ) -> None:
        """unit: the word before the place of a row, as in "on line 3"."""
        self._on_bad_row, self._kinds, self._unit = on_bad_row, Kinds(), unit
        self._needed, self._empty = needed_columns(options), options.empty
        self._named = {*self._needed, *options.used}
        self._all_used = options.numbers == ALL
        self._others = options.others or not self._named

    @property
    def names(self) -> set[str] | None:
        """The fields to read; None for all."""
        return None if self._others else self._named

    def row(self, place: Place, fields: Mapping[str, Any], where: str = "") -> Iterator[Row]:
        """The row of an object, if it is valid. where: added to its faults."""
        missing = [name for name in self._needed if name not in fields]
        faults = [str(unknown("field", name, fields)) for name in missing]
        used = {n: value for n, value in fields.items() if self._all_used or n in self._named}
        empty = {n: used.pop(n) for n in self._empty if n in used and used[n] is None}
        if not faults:
            faults = self._kinds.faults(used, f"{self._unit} {place.line}")
        fields_to_keep = dict(_possible(fields, used)) if self._others else {**used, **empty}
        if self._others and not fields_to_keep and not faults:
            faults = [NO_FIELD]
        self.reject(place, [fault + where for fault in faults])
        if not faults:
            yield Row(place, fields_to_keep)

    def reject(self, place: Place, faults: list[str]) -> None:
        """Reports all faults of one row."""
        for k, reason in enumerate(faults):
            self._on_bad_row(Problem(place, reason, rejects=int(k == 0)))


def _possible(fields: Mapping[str, Any], used: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The fields that a row can hold, in their order; `used` fields are already checked."""
    for name, value in fields.items():
        if name in used:
            yield name, used[name]
        elif value is None:
            yield name, None
        else:
            try:
                kind = kind_of(value)[1]
            except Unfit:
                continue
            yield name, kind

"""Values as JSON and Parquet hold them: what kind they are, the same kind in every row."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.files.caps import LARGEST_NUMBER

NUMBERS = {int, float}
RANGE = f"at most {LARGEST_NUMBER:g}"
NO_LABEL = "expected a label, got nothing: fill it in"


class Unfit(Exception):
    """A value that no row can hold. Caught by the readers, never seen outside."""


def is_finite(number: float) -> bool:
    """Whether it is a number that can be computed with: squares of larger ones are infinite."""
    return abs(number) <= LARGEST_NUMBER  # false for NaN


def shown_number(value: float) -> str:
    """As text; a whole number of thousands of digits by its size."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"about 1e{int(value.bit_length() * 0.30103)}"
    return str(value)


def kind_of(value: Any) -> tuple[str, Any]:
    """The kind in words and the value as a row holds it; `Unfit` says what is wrong.

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
    raise Unfit(f"expected text, numbers or lists of them, got {_named(value)}")


def sound_text(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            code = ord(text[error.start])
            raise Unfit(f"half of a surrogate pair, U+{code:04X}, is no character") from None
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
    raise Unfit(f"expected a list of one kind, got {' and '.join(sorted(map(_name, types)))}")


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


def _named(value: Any) -> str:
    return "an object" if isinstance(value, dict) else f"a value of type {type(value).__name__}"


LISTS = ("tokens", "numbers", "vectors")


class Kinds:
    """Fields and the kind that each had first; all rows must agree."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[str, int]] = {}  # kind and line

    def faults(self, fields: dict[str, Any], line: int) -> list[str]:
        """What is wrong with these fields. Sound values are replaced by what a row holds."""
        found = []
        kinds = {}
        for name, value in fields.items():
            try:
                kinds[name], fields[name] = kind_of(value)
            except Unfit as unfit:
                found.append(f"field {name!r}: {unfit}")
                continue
            kind, before = self._first.get(name, (kinds[name], line))
            empty = kinds[name] == "an empty list" and kind.split()[0] in LISTS
            if kind != kinds[name] and not empty:
                found.append(
                    f"field {name!r}: expected {kind} as on line {before}, got {kinds[name]}"
                )
        if not found:
            for name, kind in kinds.items():
                if kind != "an empty list":
                    self._first.setdefault(name, (kind, line))
        return found

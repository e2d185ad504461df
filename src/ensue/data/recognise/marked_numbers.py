"""Numbers with a currency or percent sign, or with separators of thousands: €12.50, 45 %, 1
234,5."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ensue.data.rows import ProblemCallback, Row
from ensue.data.series import MISSING, Steps, number_of
from ensue.errors import DataError

SPACES = " \u00a0\u202f'’"  # that stand between thousands
SIGN = r"(?:[€$£¥₹₽₩%‰]|EUR|USD|GBP|CHF|Fr\.?|kr\.?|zł)"
BODY = re.compile(
    rf"(?P<spaced>\d{{1,3}}(?:[{SPACES}]\d{{3}})+)(?P<tail>[.,]\d+)?"
    r"|(?P<commas>\d{1,3}(?:,\d{3})+)(?P<point>\.\d+)?"
    r"|(?P<points>\d{1,3}(?:\.\d{3})+)(?P<comma>,\d+)?"
    r"|\d*(?P<only>[.,]\d+)|\d+"
)
MARKED = re.compile(
    rf"\s*(?P<minus>[+−-]?)\s*(?P<before>{SIGN})?\s*(?P<inner>[+−-]?)"
    rf"(?P<body>[\d.,{SPACES}]*\d)\s*(?P<after>{SIGN})?\s*",
    re.IGNORECASE,
)
NEARLY_ALL = 0.95


class Mark(NamedTuple):
    """The marks of a column. sign: € or %, "" if only thousands are marked; decimal: "." or ",", ""
    if no cell has a decimal sign; either: an ambiguous cell; example: a cell with a mark."""

    sign: str
    decimal: str
    either: str
    example: str


def plain_number(text: str, decimal: str) -> str | None:
    """The number in plain notation; None for other texts. decimal: its decimal sign.

    >>> plain_number("€1,234.50", "."), plain_number("1 234,5", ","), plain_number("45 %", ".")
    ('1234.50', '1234.5', '45')
    """
    parts = _parts(text)
    if parts is None:
        return None
    whole, sign = parts
    other = "," if decimal == "." else "."
    body = re.sub(f"[{SPACES}]", "", whole)
    if other in body and not re.fullmatch(rf"\d{{1,3}}(?:[{other}]\d{{3}})+({decimal}\d+)?", body):
        return None
    plain = body.replace(other, "").replace(decimal, ".")
    return None if number_of(plain) is None else sign + plain


def _parts(text: str) -> tuple[str, str] | None:
    """The digits with their separators, and a minus sign."""
    match = MARKED.fullmatch(text)
    if match is None or (match["minus"] and match["inner"]) or not BODY.fullmatch(match["body"]):
        return None
    return match["body"], "-" if (match["minus"] or match["inner"]) in ("-", "−") else ""


def mark_of(values: Sequence[Any]) -> Mark | None:
    """The marks of a column, None without marks. Nearly all values must be numbers, and the marked
    ones must share one sign."""
    present = [
        value for value in values if isinstance(value, str) and value.strip().lower() not in MISSING
    ]
    parts = {text: match for text in present if (match := MARKED.fullmatch(text)) and _parts(text)}
    known = [text for text in present if text in parts]
    signs = {(parts[text]["before"] or parts[text]["after"] or "").lower() for text in known}
    marked = [text for text in known if _is_marked(parts[text])]
    if not marked or len(known) < NEARLY_ALL * len(present) or len(signs - {""}) > 1:
        return None
    by_text = {text: _decimal(parts[text]["body"]) for text in known}
    decimals = {*by_text.values()} - {"", None}
    if len(decimals) > 1:
        return None
    either = next((text for text, decimal in by_text.items() if decimal is None), "")
    sign = next(filter(None, signs), "")
    return Mark(sign, next(iter(decimals), ""), either, marked[0])  # type: ignore[arg-type]


def _is_marked(match: re.Match[str]) -> bool:
    """Whether a cell has marks in addition to a plain number."""
    body = BODY.fullmatch(match["body"])
    assert body is not None
    both = body["point"] or body["comma"] or match["body"].count(",") > 1
    return bool(match["before"] or match["after"] or body["spaced"] or both)


def _decimal(text: str) -> str | None:
    """The decimal sign of a cell; "" if it has none, None if ambiguous."""
    match = BODY.fullmatch(text)
    assert match is not None
    if match["spaced"]:
        return match["tail"][0] if match["tail"] else ""
    for group, tail, decimal in (("commas", "point", "."), ("points", "comma", ",")):
        if match[group]:
            other = "," if decimal == "." else "."
            return decimal if match[tail] or match[group].count(other) > 1 else None
    return match["only"][0] if match["only"] else ""


def decimal_of(marks: Mapping[str, Mark], plain: Mapping[str, str]) -> str:
    """The decimal sign of all marked columns. plain: a number with a point from each other column
    that has any. Raises an error if columns differ, or if all are ambiguous."""
    readings_of_marks = {
        mark.decimal: (name, mark.example) for name, mark in marks.items() if mark.decimal
    }
    for pair in plain.items():
        readings_of_marks.setdefault(".", pair)
    if len(readings_of_marks) > 1:
        (one, first), (two, second) = readings_of_marks.values()
        raise DataError(
            f"column {one!r} has {first!r} and column {two!r} {second!r}: one has a decimal comma, "
            "the other a decimal point; write them the same way"
        )
    either = next(((name, mark.either) for name, mark in marks.items() if mark.either), None)
    if either is None or readings_of_marks:
        return next(iter(readings_of_marks), ".")
    name, text = either
    readings = [f"--decimal {sign} ({plain_number(text, sign)})" for sign in (".", ",")]
    raise DataError(f"column {name!r}: {text!r} may be two numbers: add {' or '.join(readings)}")


def without_marks(steps: Steps, columns: Sequence[str], decimal: str) -> Steps:
    """Rows with cells in these columns converted to plain numbers; other cells stay unchanged."""
    return partial(_without_marks, steps, columns, decimal)


def _without_marks(
    steps: Steps, columns: Sequence[str], decimal: str, on_bad_row: ProblemCallback
) -> Iterator[Row]:
    for row in steps(on_bad_row):
        cells = {name: row.fields.get(name) for name in columns}
        plain = {
            name: number
            for name, text in cells.items()
            if isinstance(text, str)
            and number_of(text) is None
            and (number := plain_number(text, decimal)) is not None
        }
        yield Row(row.place, {**row.fields, **plain})

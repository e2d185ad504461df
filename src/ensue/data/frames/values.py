"""Values of data frames as rows hold them, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from math import isnan
from typing import Any

import numpy as np

MISSING = ("NAType", "NaTType")  # types of pandas' own words for nothing
MIDNIGHT = time()
NUMBERS = "biuf"  # kinds of arrays that are vectors


def plain_values(values: Sequence[Any]) -> list[Any]:
    """The values of a column: texts, numbers, lists, arrays of numbers; None where there is
    nothing, also for NaN. Dates and times are texts.

    >>> plain_values([date(2024, 5, 1), None]), plain_values([1.5, float("nan")])
    (['2024-05-01', None], [1.5, None])
    """
    moments = [value for value in values if _is_moment(value)]
    if moments:
        write = _writer(moments)
        return [write(value) if _is_moment(value) else _plain(value) for value in values]
    return [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return None if isnan(value) else value
    if type(value).__name__ in MISSING:
        return None
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, np.ndarray):
        return value if value.dtype.kind in NUMBERS else _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(own) for own in value]
    if isinstance(value, Decimal):
        return _plain(float(value))
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value) if type(value).__name__ == "Period" else value


# --- times ---------------------------------------------------------------------------------


def _is_moment(value: Any) -> bool:
    return isinstance(value, datetime) and type(value).__name__ not in MISSING


def _writer(moments: Sequence[datetime]) -> Callable[[datetime], str]:
    """How the moments of a column are written: days alone where all are midnights. With a time
    zone, those at one hour of its clock (days, weeks, months) by that clock, others in UTC: so
    steps stay even where the clocks change."""
    hours = {moment.time() for moment in moments}
    if hours == {MIDNIGHT}:
        return lambda moment: moment.date().isoformat()
    if len(hours) == 1 or moments[0].tzinfo is None:
        return lambda moment: moment.replace(tzinfo=None).isoformat(" ")
    return lambda moment: moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ")


def values_like(texts: Sequence[str], column: Sequence[Any]) -> list[Any]:
    """Texts as values of the kind that a column has: the inverse of `plain_values` for numbers and
    times.

    >>> values_like(["2024-05-02"], [date(2024, 5, 1)]), values_like(["1961"], [1960])
    ([datetime.date(2024, 5, 2)], [1961])
    """
    known = [value for value in column if value is not None]
    if not known:
        return list(texts)
    first: Any = known[0]
    if _is_moment(first):
        return [_moment(text, known) for text in texts]
    kind = type(first.item() if isinstance(first, np.generic) else first)
    read = getattr(kind, "fromisoformat", kind if kind in (int, float) else str)
    return [read(text) for text in texts]


def _moment(text: str, known: Sequence[datetime]) -> datetime:
    first = known[0]
    found = type(first).fromisoformat(text)
    if first.tzinfo is None:
        return found
    if len({moment.time() for moment in known if _is_moment(moment)}) == 1:
        return found.replace(tzinfo=first.tzinfo)
    return found.replace(tzinfo=UTC).astimezone(first.tzinfo)


TYPES: dict[str, Callable[[str], Any]] = {
    "bool": lambda text: text == "true",
    "int": int,
    "float": float,
}


def type_of(values: Sequence[Any]) -> str:
    """The row of `TYPES` that all values of a column belong to; "" for texts and for mixed ones."""
    types = {type(value).__name__ for value in values if value is not None}
    return types.pop() if len(types) == 1 and types <= {*TYPES} else ""

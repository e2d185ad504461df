"""Whether texts are dates, in one of the common spellings."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
    return 5 < len(text) <= LONGEST and any(own.fullmatch(text) for own in SPELLINGS)


def is_moment_name(name: str) -> bool:
    """Whether a column is called a time."""
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

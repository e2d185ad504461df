"""Dates in the common spellings: recognised, read and written.

A column has one spelling, or a few that can be distinguished. For ambiguous days and months
(01/02/2021), all rows decide together: by a number above 12, or by the only reading with evenly
spaced dates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from ensue.data.series import number_of
from ensue.errors import DataError

Moment = datetime | float

DAY_FIRST, MONTH_FIRST, AUTO = "day-first", "month-first", "auto"
ORDERS = (AUTO, DAY_FIRST, MONTH_FIRST)
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
SHORT = {name[:3]: k for k, name in enumerate(MONTHS, 1)}
NAMED = r"(?P<b>(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*)\.?"
CLOCK = (
    r"(?:(?:T|,? +)(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:[.,](?P<f>\d{1,6})\d*)?)?"
    r"(?: ?(?P<p>[ap]m))?(?: ?(?P<z>Z|UTC|[+-]\d{2}:?\d{2}))?)?"
)
YEAR, SHORT_YEAR = r"(?P<y>\d{4})", r"(?P<y>\d{4}|\d{2})"
MONTH, DAY = r"(?P<m>\d{1,2})", r"(?P<d>\d{1,2})"
PATTERNS = (
    rf"{YEAR}(?P<s>[-/.]){MONTH}(?P=s){DAY}",
    r"(?P<y>\d{1,4})-(?P<m>\d{2})",
    rf"{YEAR}[/.M]{MONTH}",
    rf"{MONTH}[/.-]{YEAR}",
    rf"{YEAR}[ -]?Q(?P<q>[1-4])",
    rf"Q(?P<q>[1-4])[ /-]?{YEAR}",
    rf"{DAY}(?:st|nd|rd|th|\.)?[ -]*{NAMED}[ ,-]*{SHORT_YEAR}",
    rf"{NAMED} *{DAY}(?:st|nd|rd|th)?,? +{YEAR}",
    rf"{NAMED}[ ,-]*{SHORT_YEAR}",
    rf"{YEAR}[ -]?{NAMED}(?:[ -]{DAY})?",
)
EITHER = {
    DAY_FIRST: rf"{DAY}(?P<s>[/.-]){MONTH}(?P=s){SHORT_YEAR}",
    MONTH_FIRST: rf"{MONTH}(?P<s>[/.-]){DAY}(?P=s){SHORT_YEAR}",
}
CALLED_UNIX = re.compile(r"(.*[_\-. ])?(unix|epoch|posix|timestamp|ts)([_\-. ].*)?", re.IGNORECASE)
CALLED_DATE = re.compile(r"(.*[_\-. ])?(date|day|ds|time|datetime|yyyymmdd)", re.IGNORECASE)
SECONDS, MILLISECONDS = (1e8, 1e11), (1e11, 1e14)
PIVOT = 69  # years of two digits from this one on are in the 20th century
MOST_WAYS = 3  # to write the dates of one column


@dataclass(frozen=True)
class Spelling:
    """A spelling of dates. read: a text as a moment, or ValueError; write: a moment as text, in the
    style of another text; order: day-first or month-first, if it matters; ways: an example of each
    style, if there are several."""

    name: str
    read: Callable[[str], Moment]
    write: Callable[[Moment, str], str]
    order: str = ""
    ways: tuple[str, ...] = ()

    def reads(self, text: str) -> bool:
        try:
            self.read(text)
        except (ValueError, OverflowError):
            return False
        return True


# --- numbers ---------------------------------------------------------------------------------


def _read_number(text: str) -> Moment:
    number = number_of(text)
    if number is None:
        raise ValueError(text)
    return number


def _write_number(moment: Moment, like: str) -> str:
    assert isinstance(moment, float)
    return f"{moment:g}" if abs(moment) < 1e6 else f"{moment:.12g}"


def _read_unix(text: str, unit: float) -> Moment:
    number = _read_number(text)
    assert isinstance(number, float)
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=number / unit)


def _write_unix(moment: Moment, like: str, unit: float) -> str:
    assert isinstance(moment, datetime)
    return f"{unit * moment.timestamp():.15g}"


def _read_compact(text: str) -> Moment:
    number = _read_number(text)
    return datetime.strptime(f"{number:.0f}", "%Y%m%d").replace(tzinfo=UTC)


def _write_compact(moment: Moment, like: str) -> str:
    assert isinstance(moment, datetime)
    return moment.strftime("%Y%m%d")


NUMBER = Spelling("number", _read_number, _write_number)
COMPACT = Spelling("20210131", _read_compact, _write_compact)


def _unix(unit: float) -> Spelling:
    write = partial(_write_unix, unit=unit)
    return Spelling("unix time", partial(_read_unix, unit=unit), write)


def _of_numbers(texts: Sequence[str], column: str) -> Spelling | None:
    """The spelling of numeric texts. They are plain numbers, unless the column is named like a date
    or Unix time and the values fit."""
    numbers = [number_of(text) for text in texts]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        return None
    for unit, (low, high) in ((1.0, SECONDS), (1e3, MILLISECONDS)):
        if CALLED_UNIX.fullmatch(column) and all(low <= number < high for number in known):
            return _unix(unit)
    if CALLED_DATE.fullmatch(column) and _fits(COMPACT, texts):
        return COMPACT
    return NUMBER


# --- texts -----------------------------------------------------------------------------------


ISO_ZONE = re.compile(r"(?:Z|[+-]\d\d(?::?\d\d)?)$")  # of a text with a time of day


def _read_iso(text: str) -> Moment:
    moment = datetime.fromisoformat(text.strip())
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _write_iso(moment: Moment, like: str) -> str:
    assert isinstance(moment, datetime)
    like = like.strip()
    match = ISO_ZONE.search(like) if ":" in like else None
    zone = match[0] if match else ""
    like = like.removesuffix(zone)
    text = moment.replace(tzinfo=None).isoformat(" " if " " in like else "T")
    return (text[: len(like)] if len(like) in (7, 10, 13, 16, 19) else text) + zone


ISO = Spelling("2021-01-31", _read_iso, _write_iso)


def _read_pattern(text: str, pattern: re.Pattern[str]) -> Moment:
    match = pattern.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    parts = {name: value for name, value in match.groupdict().items() if value is not None}
    month = int(parts.get("m", 1))
    if "b" in parts:
        month = SHORT[parts["b"][:3].lower()]
        if not MONTHS[month - 1].startswith(parts["b"].lower()) and parts["b"].lower() != "sept":
            raise ValueError(text)
    if "q" in parts:
        month = 3 * int(parts["q"]) - 2
    year = int(parts["y"])
    if len(parts["y"]) == 2 and {"d", "b"} & {*parts}:
        year += 1900 if year >= PIVOT else 2000
    hour = int(parts.get("H", 0))
    if "p" in parts:
        if not 1 <= hour <= 12:
            raise ValueError(text)
        hour = hour % 12 + 12 * (parts["p"].lower() == "pm")
    clock = (hour, int(parts.get("M", 0)), int(parts.get("S", 0)))
    micro = int(parts.get("f", "0").ljust(6, "0"))
    moment = datetime(year, month, int(parts.get("d", 1)), *clock, micro, UTC)
    return moment - _ahead(parts.get("z", "Z"))


def _ahead(zone: str) -> timedelta:
    """The offset of a zone from UTC: Z, UTC, +0100, -05:30."""
    zone = zone.strip().replace(":", "")
    if zone.upper() in ("Z", "UTC"):
        return timedelta()
    ahead = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:] or 0))
    return ahead if zone[0] == "+" else -ahead


def _write_pattern(
    moment: Moment, like: str, pattern: re.Pattern[str], padded: bool, full: bool
) -> str:
    """The moment in the style of another text, with each of its numbers replaced."""
    assert isinstance(moment, datetime)
    like = like.strip()
    match = pattern.fullmatch(like)
    assert match is not None
    zone = match.groupdict().get("z") or "Z"
    try:
        moment = moment + _ahead(zone)
    except OverflowError:
        raise DataError(
            f"{moment:%Y-%m-%d %H:%M} UTC: no clock of the zone {zone} has this time; is the last "
            "date of the data right?"
        ) from None
    hour = moment.hour if not match.groupdict().get("p") else (moment.hour - 1) % 12 + 1
    month = MONTHS[moment.month - 1].capitalize()
    two = "02" if padded else ""
    values = {
        "y": f"{moment.year % 100:02}"
        if len(match["y"]) == 2
        else f"{moment.year:0{len(match['y'])}}",
        "m": format(moment.month, "02" if "d" not in match.groupdict() else two),
        "d": format(moment.day, two),
        "b": month if full else month[:3],
        "q": str((moment.month + 2) // 3),
        "H": format(hour, "02" if len(match.groupdict().get("H") or "") > 1 else two),
        "M": f"{moment.minute:02}",
        "S": f"{moment.second:02}",
        "f": f"{moment.microsecond:06}",
        "p": "pm" if moment.hour >= 12 else "am",
        "z": zone,
    }
    parts, end = [], 0
    spans = sorted((match.span(name), name) for name in match.groupdict() if match[name])
    for (first, last), name in spans:
        if name == "s":
            continue
        value = values[name]
        if name == "f":
            value = value[: last - first]
        cased = value.upper() if like[first:last].isupper() else value
        parts += [like[end:first], cased if name in "bp" else value]
        end = last
    return "".join([*parts, like[end:]])


def _spelling(pattern: str, texts: Sequence[str], order: str = "") -> Spelling | None:
    compiled = re.compile(pattern + CLOCK, re.IGNORECASE)
    read = partial(_read_pattern, pattern=compiled)
    if not _fits(Spelling("", read, _write_iso), texts):
        return None
    matches = [match for text in texts if (match := compiled.fullmatch(text.strip()))]
    short = [m[name] for m in matches for name in ("m", "d") if m.groupdict().get(name)]
    padded = not any(len(digits) == 1 for digits in short)
    full = any(len(match.groupdict().get("b") or "") > 4 for match in matches)
    write = partial(_write_pattern, pattern=compiled, padded=padded, full=full)
    return Spelling(texts[0], read, write, order)


def _fits(spelling: Spelling, texts: Sequence[str]) -> bool:
    return all(map(spelling.reads, texts))


# --- a column --------------------------------------------------------------------------------


def spellings_of(texts: Sequence[str], column: str = "", order: str = AUTO) -> list[Spelling]:
    """The spellings that fit every text: none, one, or two if day and month are ambiguous. order:
    day-first or month-first, if known; column: its name."""
    if not texts:
        return []
    numbers = _of_numbers(texts, column)
    if numbers is not None:
        return [numbers]
    if _fits(ISO, texts):
        return [ISO]
    for pattern in PATTERNS:
        spelling = _spelling(pattern, texts)
        if spelling is not None:
            return [spelling]
    return _either(texts, order) or _several(texts, order)


def _either(texts: Sequence[str], order: str) -> list[Spelling]:
    """The spellings with numeric day and month that fit every text."""
    orders = [each for each in (DAY_FIRST, MONTH_FIRST) if order in (AUTO, each)]
    every = [_spelling(EITHER[each], texts, each) for each in orders]
    fitting = [spelling for spelling in every if spelling is not None]
    dotted = all("." in text.split(" ")[0] for text in texts)  # 31.01.2021 is always day first
    return fitting[:1] if dotted and order == AUTO else fitting


def _several(texts: Sequence[str], order: str) -> list[Spelling]:
    """Combined spellings, for texts in a few styles: one for each possible order of day and
    month."""
    parts: list[Spelling] = []
    ways: list[str] = []
    left = list(dict.fromkeys(texts))
    for pattern in ("", *PATTERNS):
        compiled = re.compile(pattern + CLOCK, re.IGNORECASE)
        read = _read_iso if not pattern else partial(_read_pattern, pattern=compiled)
        readable = [text for text in left if Spelling("", read, _write_iso).reads(text)]
        if not readable:
            continue
        spelling = ISO if not pattern else _spelling(pattern, readable)
        assert spelling is not None
        parts, ways = [*parts, spelling], [*ways, readable[0]]
        left = [text for text in left if text not in {*readable}]
    endings = _either(left, order) if left else []
    many = len(parts) + bool(left)
    if (left and not endings) or not 1 < many <= MOST_WAYS:
        return []
    ways += left[:1]
    return [_together([*parts, ending], ways) for ending in endings] or [_together(parts, ways)]


def _together(parts: Sequence[Spelling], ways: Sequence[str]) -> Spelling:
    """A spelling that reads each text with the first of several that fits."""

    def of(text: str) -> Spelling:
        return next((part for part in parts if part.reads(text)), parts[0])

    return Spelling(
        ways[0],
        lambda text: of(text).read(text),
        lambda moment, like: of(like).write(moment, like),
        parts[-1].order,
        tuple(ways),
    )

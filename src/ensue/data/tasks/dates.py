"""Dates as people write them, in several languages, with their parts labelled.

For labelling: the tokens of the text and the part that each belongs to. For translation: the
text and the same day as an ISO date.

Rules decide ambiguous dates: with points the day comes first (3.5.97), with slashes the month
(5/3/97), with hyphens the year (1997-05-03); two-digit years are between 1950 and 2049."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache, cached_property

import numpy as np

from ensue.data.split import SHARES, part_of
from ensue.data.tasks.task import below, draws, key_of
from ensue.data.tokenise import Tokeniser
from ensue.errors import OptionError, unknown


@dataclass(frozen=True)
class FormalLanguage:
    """Months from January, weekdays from Monday, days from the first."""

    months: tuple[str, ...]
    short_months: tuple[str, ...]
    weekdays: tuple[str, ...]
    short_weekdays: tuple[str, ...]
    days: tuple[str, ...]  # in words
    ordinals: tuple[str, ...] = ()  # as digits, if different from plain numbers


def _english_ordinal(day: int) -> str:
    last = 0 if day in (11, 12, 13) else day % 10
    return f"{day}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"


def _split(words: str) -> tuple[str, ...]:
    return tuple(words.replace("\n", " ").split())


def _first(ending: str) -> tuple[str, ...]:
    """Only the first of the month is an ordinal number."""
    return (f"1{ending}", *map(str, range(2, 32)))


_GERMAN_UNITS = _split("ein zwei drei vier fünf sechs sieben acht neun")

LANGUAGES = {
    "english": FormalLanguage(
        _split("""January February March April May June July August September October November
            December"""),
        _split("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"),
        _split("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
        _split("Mon Tue Wed Thu Fri Sat Sun"),
        _split("""first second third fourth fifth sixth seventh eighth ninth tenth eleventh
            twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth
            twentieth twenty-first twenty-second twenty-third twenty-fourth twenty-fifth
            twenty-sixth twenty-seventh twenty-eighth twenty-ninth thirtieth thirty-first"""),
        tuple(map(_english_ordinal, range(1, 32))),
    ),
    "french": FormalLanguage(
        _split("""janvier février mars avril mai juin juillet août septembre octobre novembre
            décembre"""),
        _split("janv févr mars avr mai juin juil août sept oct nov déc"),
        _split("lundi mardi mercredi jeudi vendredi samedi dimanche"),
        _split("lun mar mer jeu ven sam dim"),
        (
            *_split("""premier deux trois quatre cinq six sept huit neuf dix onze douze treize
                quatorze quinze seize dix-sept dix-huit dix-neuf vingt"""),
            "vingt et un",
            *_split("vingt-deux vingt-trois vingt-quatre vingt-cinq vingt-six vingt-sept"),
            *_split("vingt-huit vingt-neuf trente"),
            "trente et un",
        ),
        _first("er"),
    ),
    "german": FormalLanguage(
        _split("""Januar Februar März April Mai Juni Juli August September Oktober November
            Dezember"""),
        _split("Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez"),
        _split("Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag"),
        _split("Mo Di Mi Do Fr Sa So"),
        (
            *_split("""erste zweite dritte vierte fünfte sechste siebte achte neunte zehnte elfte
                zwölfte dreizehnte vierzehnte fünfzehnte sechzehnte siebzehnte achtzehnte
                neunzehnte zwanzigste"""),
            *(f"{unit}undzwanzigste" for unit in _GERMAN_UNITS),
            *_split("dreißigste einunddreißigste"),
        ),
    ),
    "spanish": FormalLanguage(
        _split("""enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre
            diciembre"""),
        _split("ene feb mar abr may jun jul ago sep oct nov dic"),
        _split("lunes martes miércoles jueves viernes sábado domingo"),
        _split("lun mar mié jue vie sáb dom"),
        (
            *_split("""primero dos tres cuatro cinco seis siete ocho nueve diez once doce trece
                catorce quince dieciséis diecisiete dieciocho diecinueve veinte veintiuno
                veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete veintiocho
                veintinueve treinta"""),
            "treinta y uno",
        ),
        _first("º"),
    ),
    "italian": FormalLanguage(
        _split("""gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre
            novembre dicembre"""),
        _split("gen feb mar apr mag giu lug ago set ott nov dic"),
        _split("lunedì martedì mercoledì giovedì venerdì sabato domenica"),
        _split("lun mar mer gio ven sab dom"),
        _split("""primo due tre quattro cinque sei sette otto nove dieci undici dodici tredici
            quattordici quindici sedici diciassette diciotto diciannove venti ventuno ventidue
            ventitré ventiquattro venticinque ventisei ventisette ventotto ventinove trenta
            trentuno"""),
        _first("º"),
    ),
}


DATE_TAGS = ("DAY", "MONTH", "YEAR", "WEEKDAY", "OTHER")
FIRST, LAST = date(1950, 1, 1), date(2049, 12, 31)
EXAMPLE = date(1997, 10, 1)
CASES = (str, str, str, str.lower, str.upper)  # drawn with equal chance

SLOTS: dict[str, tuple[str, Callable[[date, FormalLanguage], str]]] = {
    "d": ("DAY", lambda day, words: f"{day.day}"),
    "0d": ("DAY", lambda day, words: f"{day.day:02}"),
    "nth": ("DAY", lambda day, words: words.ordinals[day.day - 1]),
    "day": ("DAY", lambda day, words: words.days[day.day - 1]),
    "m": ("MONTH", lambda day, words: f"{day.month}"),
    "0m": ("MONTH", lambda day, words: f"{day.month:02}"),
    "month": ("MONTH", lambda day, words: words.months[day.month - 1]),
    "mon": ("MONTH", lambda day, words: words.short_months[day.month - 1]),
    "weekday": ("WEEKDAY", lambda day, words: words.weekdays[day.weekday()]),
    "wd": ("WEEKDAY", lambda day, words: words.short_weekdays[day.weekday()]),
    "y": ("YEAR", lambda day, words: f"{day.year}"),
    "yy": ("YEAR", lambda day, words: f"{day.year % 100:02}"),
}

# A point inside a slot follows abbreviations only: "Oct." but "May".
TEMPLATES = {
    "english": (
        "{d} {month} {y}",
        "{nth} {month} {y}",
        "the {nth} of {month} {y}",
        "the {nth} of {month}, {y}",
        "{month} {d}, {y}",
        "{month} {nth}, {y}",
        "{month} the {nth}, {y}",
        "{weekday}, {month} {d}, {y}",
        "{weekday} {d} {month} {y}",
        "{weekday} the {nth} of {month} {y}",
        "the {day} of {month} {y}",
        "{month} the {day}, {y}",
        "{weekday}, the {day} of {month} {y}",
        "{mon} {d}, {y}",
        "{mon.} {d}, {y}",
        "{d} {mon} {y}",
        "{d} {mon} '{yy}",
        "{wd} {d} {mon} {y}",
        "{wd.}, {mon.} {d}, {y}",
    ),
    "french": (
        "{d} {month} {y}",
        "le {nth} {month} {y}",
        "{weekday} {nth} {month} {y}",
        "le {weekday} {nth} {month} {y}",
        "le {day} {month} {y}",
        "{d} {mon.} {y}",
        "{wd.} {d} {mon.} {y}",
        "{d} {mon} {yy}",
    ),
    "german": (
        "{d}. {month} {y}",
        "der {d}. {month} {y}",
        "{weekday}, {d}. {month} {y}",
        "{weekday}, der {d}. {month} {y}",
        "der {day} {month} {y}",
        "{d}. {mon.} {y}",
        "{wd}, {0d}.{0m}.{y}",
        "{wd.} {d}. {mon} {yy}",
    ),
    "spanish": (
        "{d} de {month} de {y}",
        "el {nth} de {month} de {y}",
        "{weekday} {d} de {month} de {y}",
        "el {weekday}, {d} de {month} de {y}",
        "el {day} de {month} de {y}",
        "{d} {mon} {y}",
        "{wd.} {d} {mon.} {y}",
    ),
    "italian": (
        "{d} {month} {y}",
        "il {nth} {month} {y}",
        "{weekday} {nth} {month} {y}",
        "il {day} {month} {y}",
        "{d} {mon.} {y}",
        "{wd} {d} {mon} {y}",
        "{d} {mon} '{yy}",
    ),
    "figures": (
        "{y}-{0m}-{0d}",
        "{d}.{m}.{y}",
        "{0d}.{0m}.{y}",
        "{d}.{m}.{yy}",
        "{0d}.{0m}.{yy}",
        "{m}/{d}/{y}",
        "{0m}/{0d}/{y}",
        "{m}/{d}/{yy}",
        "{0m}/{0d}/{yy}",
    ),
}

SLOT = re.compile(r"([^{}]*)\{(.+?)\}")  # the text before a slot, and the slot
Piece = tuple[str, str]  # text and tag


def _filled(slot: str, day: date, words: FormalLanguage) -> Iterator[Piece]:
    """The text of a slot; the point after an abbreviation does not belong to it."""
    tag, text_of = SLOTS[slot.rstrip(".")]
    text = text_of(day, words)
    yield text, tag
    if slot.endswith(".") and text not in words.months:
        yield ".", "OTHER"


@dataclass(frozen=True)
class Format:
    """A format of dates."""

    language: str
    template: str

    def pieces(self, day: date) -> Iterator[Piece]:
        """The text of a date in pieces, each with its tag."""
        words = LANGUAGES.get(self.language, LANGUAGES["english"])  # figures need none
        for literal, slot in SLOT.findall(self.template):
            if literal:
                yield literal, "OTHER"
            yield from _filled(slot, day, words)

    @property
    def name(self) -> str:
        """The name of a format: its language, and the first of October 1997 in it."""
        return f"{self.language}: {''.join(text for text, _ in self.pieces(EXAMPLE))}"


FORMATS: dict[str, Format] = {
    form.name: form
    for language, templates in TEMPLATES.items()
    for form in (Format(language, template) for template in templates)
}


@dataclass(frozen=True)
class Date:
    """A date as written, and its meaning.

    text the 3rd of May 1997 iso 1997-05-03 tokens the 3 rd of May 1997 tags OTHER DAY DAY OTHER
    MONTH YEAR

    >>> date = dates(1, "train", 1)[0]
    >>> len(date.tokens) == len(date.tags), len(date.iso)
    (True, 10)
    """

    text: str
    iso: str
    format: str  # its name in FORMATS
    character_tags: tuple[str, ...]  # one for each character of the text

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        return tuple(TOKENISER(self.text))

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """One for each token."""
        return tuple(self.character_tags[first] for first, _ in TOKENISER.spans(self.text))

    @property
    def language(self) -> str:
        return FORMATS[self.format].language


TOKENISER = Tokeniser("pieces")


@cache
def _days(part: str) -> tuple[date, ...]:
    """All days of a part, by a hash of the ISO date."""
    days = (FIRST + timedelta(k) for k in range((LAST - FIRST).days + 1))
    return tuple(day for day in days if part_of(day.isoformat()) == part)


def dates(seed: int, part: str, count: int, *, first: int = 0) -> list[Date]:
    """Dates first … first + count − 1 of "train", "validation" or "test". Each is a pure function
    of seed, part and number. A day of one part is in no other part, in any format.

    >>> [date.iso for date in dates(1, "train", 2)]
    ['1950-02-03', '2023-08-21']
    """
    if part not in SHARES:
        raise unknown("part", part, SHARES)
    if first < 0 or count < 1:
        raise OptionError(f"expected first ≥ 0 and count ≥ 1, got {first} and {count}")
    days, forms = _days(part), list(FORMATS)
    drawn = draws(key_of("dates", seed, part), np.arange(first, first + count), 3)
    choices = [below(drawn[:, k], n) for k, n in enumerate((len(days), len(forms), len(CASES)))]
    return [
        written(days[day], forms[form], case) for day, form, case in np.stack(choices, 1).tolist()
    ]


def written(day: date, form: str, case: int = 0) -> Date:
    """A day in one of FORMATS, with the letter case of CASES[case]."""
    if form not in FORMATS:
        raise unknown("date format", form, FORMATS)
    pieces = [(CASES[case](text), tag) for text, tag in FORMATS[form].pieces(day)]
    return Date(
        text="".join(text for text, _ in pieces),
        iso=day.isoformat(),
        format=form,
        character_tags=tuple(tag for text, tag in pieces for _ in text),
    )

"""Written dates: what is written can be read back, by a reader that shares no code with the
writer, and parts share no day."""

from __future__ import annotations

import re
from datetime import date

import pytest

from ensue.data.split import SHARES
from ensue.data.tasks import DATE_TAGS, FORMATS, Date, dates
from ensue.data.tasks.dates import CASES, LANGUAGES, TEMPLATES, written
from ensue.errors import EnsueError, OptionError

SAMPLE = dates(1, "train", 3000)


# --- an independent reader ---------------------------------------------------------------

# the first letters tell the months of all five languages apart
MONTHS = (
    "jan ene gen",
    "feb fév",
    "mar mär",
    "apr avr abr",
    "may mai mag",
    "jun juin giu",
    "jul juil lug",
    "aug aoû ago",
    "sep set",
    "oct okt ott",
    "nov",
    "dec déc dez dic",
)
WEEKDAYS = [
    "mon lun mo lune",
    "tue tues mar mard di dien mart",
    "wed wedn mer merc mi mitt mié miér",
    "thu thur jeu jeud do donn jue juev gio giov",
    "fri frid ven vend fr frei vie vier vene",
    "sat satu sam same sa sams sáb sába sab saba",
    "sun sund dim dima so sonn dom domi",
]
NUMBER_WORDS = {
    "english": "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth",
    "french": "premier deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze "
    "quinze seize dix-sept dix-huit dix-neuf",
    "german": "erste zweite dritte vierte fünfte sechste siebte achte neunte zehnte elfte zwölfte "
    "dreizehnte vierzehnte fünfzehnte sechzehnte siebzehnte achtzehnte neunzehnte",
    "spanish": "primero dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce "
    "quince dieciséis diecisiete dieciocho diecinueve",
    "italian": "primo due tre quattro cinque sei sette otto nove dieci undici dodici tredici "
    "quattordici quindici sedici diciassette diciotto diciannove",
}
TENS = {
    20: "twent vingt zwanzig veint vent",
    30: "thirt trent dreißig dreissig treint",
}
UNITS = [  # how the numbers 1 … 9 look inside twenty-one … thirty-one
    "first un ein uno",
    "second deux zwei dós due",
    "third trois drei trés tré",
    "fourth quatre vier cuatro quattro",
    "fifth cinq fünf cinco cinque",
    "sixth six sechs séis sei",
    "seventh sept sieben siete sette",
    "eighth huit acht ocho otto",
    "ninth neuf neun nueve nove",
]


def day_of(words: str, language: str) -> int:
    """The day that words or figures say."""
    figures = re.match(r"\d+", words)
    if figures:
        return int(figures[0])
    words = words.lower().replace("dreissig", "dreißig")
    known = NUMBER_WORDS[language].split()
    if words in known:
        return known.index(words) + 1
    ten, stem = next((n, s) for n, names in TENS.items() for s in names.split() if s in words)
    rest = words.partition("und")[0] if language == "german" else words.replace(stem, "", 1)
    named = [(name, k) for k, names in enumerate(UNITS, 1) for name in names.split()]
    fitting = [(len(name), k) for name, k in named if name in rest and rest != words]
    return ten + max(fitting, default=(0, 0))[1]


def text_with(tag: str, sample: Date) -> str:
    """The stretch of text that has a tag, from its first character to its last."""
    at = [k for k, name in enumerate(sample.character_tags) if name == tag]
    return sample.text[at[0] : at[-1] + 1] if at else ""


def read(sample: Date) -> date:
    year = int(text_with("YEAR", sample))
    if year < 100:
        year += 1900 if year >= 50 else 2000
    month = text_with("MONTH", sample)
    fits = [
        k for k, names in enumerate(MONTHS, 1) if month.lower().startswith(tuple(names.split()))
    ]
    (number,) = [int(month)] if month.isdigit() else fits
    return date(year, number, day_of(text_with("DAY", sample), sample.language))


# --- laws --------------------------------------------------------------------------------


def test_the_labelled_parts_say_the_date() -> None:
    for sample in SAMPLE:
        assert read(sample) == date.fromisoformat(sample.iso), sample.text


@pytest.mark.parametrize("form", FORMATS)
def test_every_day_of_a_month_and_every_month_can_be_read_back(form: str) -> None:
    days = [date(1964, 1, day) for day in range(1, 32)] + [date(2031, m, 9) for m in range(1, 13)]
    for day in days:
        for case in range(len(CASES)):
            sample = written(day, form, case)
            assert read(sample) == day, sample.text


def test_the_weekday_is_that_of_the_date() -> None:
    count = 0
    for sample in SAMPLE:
        weekday = text_with("WEEKDAY", sample).lower()
        if weekday:
            count += 1
            expected = WEEKDAYS[date.fromisoformat(sample.iso).weekday()].split()
            assert weekday[:4] in expected or weekday[:3] in expected, sample.text
    assert count > 500


def test_the_rule_for_figures() -> None:
    """Points: the day first; slashes: the month first; hyphens: the year first."""
    signs = set()
    for sample in SAMPLE:
        if FORMATS[sample.format].language != "figures":
            continue
        sign = re.sub(r"\d", "", sample.text)[0]
        numbers = [int(n) for n in re.findall(r"\d+", sample.text)]
        order = {".": (2, 1, 0), "/": (2, 0, 1), "-": (0, 1, 2)}[sign]
        year, month, day = (numbers[k] for k in order)
        year += 0 if year > 99 else 1900 if year >= 50 else 2000
        assert date(year, month, day).isoformat() == sample.iso
        signs.add(sign)
    assert signs == {".", "/", "-"}


def test_no_text_means_two_dates() -> None:
    meaning: dict[str, str] = {}
    for sample in [*SAMPLE, *dates(2, "test", 3000), *dates(3, "validation", 3000)]:
        assert meaning.setdefault(sample.text, sample.iso) == sample.iso


def test_parts_share_no_day() -> None:
    days = {part: {sample.iso for sample in dates(0, part, 4000)} for part in SHARES}
    assert not days["train"] & days["validation"]
    assert not days["train"] & days["test"]
    assert not days["validation"] & days["test"]
    assert min(days["train"]) >= "1950-01-01"
    assert max(days["train"]) <= "2049-12-31"


def test_a_date_is_a_function_of_seed_part_and_number() -> None:
    assert dates(1, "train", 10, first=20) == SAMPLE[20:30]
    assert dates(2, "train", 30) != SAMPLE[:30]


def test_tokens_and_tags_go_together() -> None:
    for sample in SAMPLE[:1000]:
        assert len(sample.tokens) == len(sample.tags)
        assert len(sample.character_tags) == len(sample.text)
        assert set(sample.tags) <= set(DATE_TAGS)
        assert {"DAY", "MONTH", "YEAR"} <= set(sample.tags)
        at = 0
        for token, tag in zip(sample.tokens, sample.tags, strict=True):
            at = sample.text.index(token, at)
            assert set(sample.character_tags[at : at + len(token)]) == {tag}, sample.text
            at += len(token)


def test_every_format_has_a_name_of_its_own_and_all_are_drawn() -> None:
    assert len(FORMATS) == sum(map(len, TEMPLATES.values()))
    assert {sample.format for sample in SAMPLE} == set(FORMATS)
    assert {sample.language for sample in SAMPLE} == {*LANGUAGES, "figures"}
    for language, words in LANGUAGES.items():
        assert len(set(words.days)) == 31, language
        assert len(set(words.months)) == len(set(words.short_months)) == 12
        assert len(set(words.weekdays)) == len(set(words.short_weekdays)) == 7
        assert len(set(words.ordinals)) in (0, 31)


@pytest.mark.parametrize(
    ("form", "case", "text"),
    [
        ("english: the 1st of October 1997", 0, "the 5th of March 2019"),
        ("english: Wed., Oct. 1, 1997", 4, "TUE., MAR. 5, 2019"),
        ("english: 1 Oct '97", 0, "5 Mar '19"),
        ("english: October the first, 1997", 0, "March the fifth, 2019"),
        ("french: mercredi 1er octobre 1997", 0, "mardi 5 mars 2019"),
        ("french: le premier octobre 1997", 3, "le cinq mars 2019"),
        ("german: Mittwoch, der 1. Oktober 1997", 0, "Dienstag, der 5. März 2019"),
        ("german: der erste Oktober 1997", 0, "der fünfte März 2019"),
        ("spanish: el miércoles, 1 de octubre de 1997", 0, "el martes, 5 de marzo de 2019"),
        ("italian: il 1º ottobre 1997", 0, "il 5 marzo 2019"),
        ("figures: 01.10.97", 0, "05.03.19"),
        ("figures: 10/01/1997", 0, "03/05/2019"),
        ("figures: 1997-10-01", 0, "2019-03-05"),
    ],
)
def test_formats(form: str, case: int, text: str) -> None:
    assert written(date(2019, 3, 5), form, case).text == text


def test_one_date_in_full() -> None:
    sample = written(date(1997, 5, 3), "english: the 1st of October 1997")
    assert sample.text == "the 3rd of May 1997"
    assert sample.iso == "1997-05-03"
    assert sample.tokens == ("the", "3", "rd", "of", "May", "1997")
    assert sample.tags == ("OTHER", "DAY", "DAY", "OTHER", "MONTH", "YEAR")


MESSAGES = [
    (
        lambda: dates(0, "tset", 1),
        OptionError,
        "unknown part 'tset': did you mean 'test'? Known: test, train, validation",
    ),
    (
        lambda: dates(0, "test", 0),
        OptionError,
        "expected first ≥ 0 and count ≥ 1, got 0 and 0",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), MESSAGES)
def test_messages(call, kind: type[EnsueError], message: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == message

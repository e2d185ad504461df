"""The words of five languages for days and months."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FormalLanguage:
    """Months from January, weekdays from Monday, days from the first."""

    months: tuple[str, ...]
    short_months: tuple[str, ...]
    weekdays: tuple[str, ...]
    short_weekdays: tuple[str, ...]
    days: tuple[str, ...]  # in words
    ordinals: tuple[str, ...] = ()  # in figures, where they differ from plain ones


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

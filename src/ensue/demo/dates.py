"""The dates that the demo learns from, and those that try it: none is in two parts.

Beside plain dates it is tried on two kinds that it has not seen: some formats stand in capitals
nowhere in the training part, and words may be typed wrong."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from itertools import islice
from random import Random

from ensue.data.tasks.dates import CASES, FORMATS, Date, dates, written

CAPITALS = CASES.index(str.upper)
# Formats that are learned in all but capitals.
NEVER_IN_CAPITALS = frozenset(
    [name for name, form in FORMATS.items() if form.language != "figures"][::6]
)
SHORTEST = 4  # letters of a word that is typed wrong
AT_ONCE = 1000


def learned(date: Date) -> bool:
    """Whether the training part may have dates like this one."""
    return not (date.format in NEVER_IN_CAPITALS and date.text.isupper())


def rows(part: str, count: int, seed: int) -> list[Date]:
    """Dates of a part, as they are learned."""
    found = (
        one
        for first in range(0, 10 * count, AT_ONCE)
        for one in dates(seed, part, AT_ONCE, first=first)
        if learned(one)
    )
    return list(islice(found, count))


def unseen(count: int, seed: int) -> list[Date]:
    """Dates of the test part, in formats and capitals that do not meet in the training part."""
    forms = sorted(NEVER_IN_CAPITALS)
    days = [date.fromisoformat(one.iso) for one in dates(seed, "test", count)]
    return [written(day, forms[k % len(forms)], CAPITALS) for k, day in enumerate(days)]


def mistyped(given: list[Date], seed: int) -> list[Date]:
    """The same dates, of those that have a long word, with one mistake in it: two letters
    exchanged, one left out, or one twice. The first letter stays."""
    found = []
    for k, one in enumerate(given):
        chance = Random(f"{seed} {k}")
        long = [w for w in one.text.split(" ") if len(w) >= SHORTEST and w.isalpha()]
        if not long:
            continue
        word = chance.choice(long)
        at = chance.randrange(1, len(word) - 1)
        here, next_one = word[at], word[at + 1]
        letters = chance.choice((next_one + here, next_one, here * 2 + next_one))
        wrong = word[:at] + letters + word[at + 2 :]
        found.append(replace(one, text=one.text.replace(word, wrong, 1), character_tags=()))
    return found

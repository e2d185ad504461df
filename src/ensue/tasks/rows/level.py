"""The level of tokens, where it follows from the texts."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

LOOKED_AT = 5_000  # texts
FEW_WORDS = 4.0  # a text has on average, between spaces
NEW = 0.5  # share of the words in the second half of the texts that the first half does not have
AUTO = "auto"


class Level(NamedTuple):
    """name: of a row of TOKENISERS; why: for the person who reads it."""

    name: str
    why: str


def level_of(values: Iterable[Any]) -> Level:
    """Characters where texts are short and most of their words are new: names, codes, and scripts
    without spaces; else words.

    >>> level_of(["Anna", "Bertrand", "Chen", "Dimitrova"]).name
    'characters'
    """
    texts = [value.lower().split() for value in islice(values, LOOKED_AT) if isinstance(value, str)]
    texts = [words for words in texts if words]
    half = len(texts) // 2
    known = {word for words in texts[:half] for word in words}
    later = [word for words in texts[half:] for word in words]
    if not known or not later:
        return Level("words", "")
    many = sum(map(len, texts)) / len(texts)
    new = sum(word not in known for word in later) / len(later)
    if many > FEW_WORDS or new < NEW:
        return Level("words", f"{many:.3g} words a text, {new:.0%} of them new")
    words = "a word or two" if many < 2 else f"{many:.2g} words"
    return Level("characters", f"texts of {words}, {new:.0%} of the words new to the texts before")

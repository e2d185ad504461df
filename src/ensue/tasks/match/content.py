"""Rows of matching: two texts or sequences, and what they are to each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ensue.data.rows import Place, Row
from ensue.data.settings import DataSettings
from ensue.errors import DataError
from ensue.tasks.rows.collect import IN_MEMORY, Example, pairs_of, sequence_of
from ensue.tasks.rows.content import Content, named, sequence, written

# Names that the two columns of well-known data sets have.
SIDES = (
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("sentence_a", "sentence_b"),
    ("question1", "question2"),
    ("text1", "text2"),
    ("first", "second"),
    ("query", "document"),
    ("question", "answer"),
)
BETWEEN = "\t"


class MatchContent(Content):
    """The column of `data.text` is matched with that of `data.second`."""

    def second(self, row: Row, data: DataSettings) -> Any:
        return named(data.second, lambda own: sequence(own.fields.get(data.second)), row)

    def hashed(self, example: Example) -> str:
        return f"{written(example.value)}\n{written(example.second)}"


def pairs_in_memory(rows: Iterable[Any]) -> Iterator[Example]:
    """((first, second), label) each."""
    for line, (pair, label) in enumerate(pairs_of(rows), 1):
        yield _example(pair, label, Place(IN_MEMORY, line))


def asked_in_memory(pairs: Iterable[Any]) -> Iterator[Example]:
    """(first, second) each."""
    for line, pair in enumerate(pairs, 1):
        yield _example(pair, None, Place(IN_MEMORY, line))


def _example(pair: Any, label: Any, place: Place) -> Example:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise DataError(
            f"{place}: expected two texts or sequences, (first, second), got {repr(pair)[:60]}"
        )
    first, second = (sequence_of(side, place) for side in pair)
    return Example(first, label, place, second)


def pair_of_line(line: str) -> tuple[str, str]:
    """A line of the standard input: both texts with a tab between."""
    first, tab, second = line.partition(BETWEEN)
    if not tab or BETWEEN in second:
        raise DataError(
            f"standard input: expected two texts with a tab between them, got {line[:60]!r}"
        )
    return first, second

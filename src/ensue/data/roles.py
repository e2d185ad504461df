"""The roles of fields: which is the text (or the sequence), and which is the label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ensue.data.options import require
from ensue.data.recognise.columns import VALUES, WRITTEN, Column, Kind, column_of
from ensue.data.rows import Row
from ensue.drawing.layout import cut

TEXTS = ("form", "tokens", "text", "features", "review", "sentence", "source")
TEXT_NAMES = ("comment", "body", "message", "content", "question", "tweet", "document", "title")
LABELS = ("label", "upos", "tag", "tags", "class", "category", "sentiment", "stars", "rating")
# Names of targets in well-known tables.
TARGETS = ("target", "y", "outcome", "response", "churn", "species", "survived", "fraud")
SAMPLE = 200  # number of rows examined for a guess
MANY_WORDS = 8  # more words than any column name has
NAME_WIDTH = 30
FAR_LONGER = 2.0  # the likeliest text has this many times the words of every other


class Roles(NamedTuple):
    """The roles of columns. texts, labels: candidate columns, likeliest first (if several, they are
    equally plausible); inputs: the columns of several inputs that are read together, texts first;
    image: the column among them that names pictures."""

    text: str
    label: str | None
    guessed: bool
    texts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    image: str = ""

    @property
    def read(self) -> bool:
        """Whether rows have texts, or inputs that are read with texts; words are then counted."""
        return bool(self.text or self.inputs)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in (*(self.inputs or (self.text,)), self.label) if name)


def guess_roles(rows: Sequence[Row], text: str | None, label: str | None) -> Roles:
    """The named fields, or else guesses from the first rows: by name, then by content. Dates and
    identifiers are neither texts nor labels."""
    names = columns_of(rows)
    require([name for name in (text, label) if name is not None], names, rows[0].place)
    names = [name for name in names if 2 * len(_values(rows, name)) >= len(rows)] or names
    columns = {name: column_of(rows, name) for name in names}
    others = [column for column in columns.values() if column.name != label]
    texts = [text] if text else _texts(others, label is not None)
    text_column = texts[0] if texts else _longest(rows, [name for name in names if name != label])
    left = [other for other in others if other.name not in (text_column, *texts)]
    labels = [label] if label else _labels(left, len(rows))
    first = labels[0] if labels else None
    return Roles(text_column, first, text is None or label is None, tuple(texts), tuple(labels))


def _texts(columns: Sequence[Column], labelled: bool) -> list[str]:
    """The text column, or several equally plausible ones. labelled: the label is another column."""
    named = {column.name: column.kind for column in columns}
    for name in TEXTS:
        if name in named and named[name] in (*WRITTEN, Kind.CATEGORY, Kind.CONSTANT):
            return [name]
    for kinds in ((Kind.TEXT, Kind.STEPS), (Kind.TOKENS,), (Kind.NAME,)):
        readable = sorted(
            (column for column in columns if column.kind in kinds), key=lambda column: -column.words
        )
        if len(readable) > 1 and readable[0].words >= FAR_LONGER * readable[1].words:
            readable = readable[:1]
        if kinds == (Kind.TOKENS,):  # of tokens and tags, the one with more kinds is the text
            readable = sorted(readable, key=lambda column: -column.different)[:1]
        known = [column for column in readable if column.name.lower() in (*TEXTS, *TEXT_NAMES)]
        if readable:
            return [column.name for column in (known if len(known) == 1 else readable)]
    words = [column for column in columns if column.kind is Kind.CATEGORY and column.words]
    return [words[0].name] if len(words) == 1 and len(columns) <= (1 if labelled else 2) else []


def _longest(rows: Sequence[Row], names: Sequence[str]) -> str:
    lengths = {name: sum(map(_size, _values(rows, name))) for name in names}
    return max(lengths, key=lengths.__getitem__, default=next(iter(rows[0].fields)))


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str | list | np.ndarray) else 0


def _labels(columns: Sequence[Column], rows: int) -> list[str]:
    """The label column, or several that are equally plausible. A file may be sorted by its label,
    so a column with the name of a label may be constant in the first rows."""
    known = {
        column.name: column
        for column in columns
        if column.kind is not Kind.OTHER and not column.bare
    }
    named = [name for name in LABELS if name in known]
    if named:
        return sorted(named, key=lambda name: known[name].different == 1)[:1]
    likely = [column for column in columns if column.kind in (*VALUES, Kind.NAME, Kind.TOKENS)]
    few = [
        column.name
        for column in likely
        if column.different > 1
        and (column.kind is Kind.TOKENS or column.different <= max(2, rows // 2))
    ]
    if few:
        return sorted(few, key=lambda name: known[name].different)
    return [column.name for column in likely if column.kind is Kind.NUMBER]


def columns_of(rows: Sequence[Row]) -> list[str]:
    """All columns that occur in a row; JSON objects may lack some."""
    return list(dict.fromkeys(name for row in rows for name in row.fields))


def _values(rows: Sequence[Row], name: str) -> list[Any]:
    """The values that are not missing."""
    return [value for row in rows if (value := row.fields.get(name)) is not None]


def header_is_data(rows: Sequence[Row]) -> bool:
    """Whether the names of the columns look like a row: one is also a value of its column, or as
    long as a text."""
    for name in columns_of(rows):
        values = (value for value in _values(rows, name) if isinstance(value, str))
        if len(name.split()) >= MANY_WORDS or name in values:
            return True
    return False


def header_hint(names: Sequence[str]) -> str:
    listed = ", ".join(cut(name, NAME_WIDTH) for name in names)
    return (
        f"the first line is taken as names of columns: {listed}; if it is data, use --header a,b,…"
    )

"""Which field of a row is the text (or the sequence), and which is its label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ensue.data.layout import cut
from ensue.data.options import require
from ensue.data.rows import Row

TEXTS = ("form", "tokens", "text", "features", "review", "sentence", "source")
LABELS = ("label", "upos", "tag", "tags", "class", "category", "sentiment", "stars", "rating")
SAMPLE = 200  # rows that a guess looks at
MANY_WORDS = 8  # no name of a column has as many
NAME_WIDTH = 30


class Roles(NamedTuple):
    text: str
    label: str | None
    guessed: bool

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in (self.text, self.label) if name)


def guess_roles(rows: Sequence[Row], text: str | None, label: str | None) -> Roles:
    """The fields named, or else those that look like it among the first rows: by name, then the
    longest values as text and the fewest different ones, two or more, as label."""
    names = columns_of(rows)
    require([name for name in (text, label) if name is not None], names, rows[0].place)
    names = [name for name in names if 2 * len(_values(rows, name)) >= len(rows)] or names
    found = text or _text_of(rows, [name for name in names if name != label])
    others = [name for name in names if name != found]
    return Roles(found, label or _label_of(rows, others), text is None or label is None)


def columns_of(rows: Sequence[Row]) -> list[str]:
    """All that some row has; objects of JSON may lack some."""
    return list(dict.fromkeys(name for row in rows for name in row.fields))


def _values(rows: Sequence[Row], name: str) -> list[Any]:
    """Those that are there."""
    return [value for row in rows if (value := row.fields.get(name)) is not None]


def _text_of(rows: Sequence[Row], names: Sequence[str]) -> str:
    for name in TEXTS:
        if name in names:
            return name
    lengths = {name: sum(map(_size, _values(rows, name))) for name in names}
    return max(lengths, key=lengths.__getitem__, default=next(iter(rows[0].fields)))


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str | list | np.ndarray) else 0


def _label_of(rows: Sequence[Row], names: Sequence[str]) -> str | None:
    kinds = {}
    for name in names:
        values = _values(rows, name)
        if values and all(isinstance(value, str | int | float) for value in values):
            kinds[name] = len(set(values))
    # A file may be sorted by its label: one with such a name may be the same in the first rows.
    named = sorted((name for name in LABELS if name in names), key=lambda n: kinds.get(n) == 1)
    if named:
        return named[0]
    most = max(2, len(rows) // 2)  # beyond that, values hardly repeat
    few = {name: count for name, count in kinds.items() if 1 < count <= most}
    return min(few, key=few.__getitem__) if few else None


def header_is_data(rows: Sequence[Row]) -> bool:
    """Whether the names of the columns look like a row: one of them is a value of its column as
    well, or as long as a text."""
    for name in columns_of(rows):
        values = (value for value in _values(rows, name) if isinstance(value, str))
        if len(name.split()) >= MANY_WORDS or name in values:
            return True
    return False


def header_hint(names: Sequence[str]) -> str:
    shown = ", ".join(cut(name, NAME_WIDTH) for name in names)
    return (
        f"the first line is taken as names of columns: {shown}; if it is data, use --header a,b,…"
    )

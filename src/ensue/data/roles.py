"""Which field of a row is the text (or the sequence), and which is its label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ensue.data.options import require
from ensue.data.rows import Row

TEXTS = ("form", "tokens", "text", "features", "review", "sentence", "source")
LABELS = ("label", "upos", "tag", "tags", "class", "category", "sentiment", "stars", "rating")
SAMPLE = 200  # rows that a guess looks at


class Roles(NamedTuple):
    text: str
    label: str | None
    guessed: bool


def guess_roles(rows: Sequence[Row], text: str | None, label: str | None) -> Roles:
    """The fields named, or else those that look like it among the first rows: by name, then the
    longest values as text and the fewest different ones as label."""
    names = list(rows[0].fields)
    require([name for name in (text, label) if name is not None], names, rows[0].place)
    found = text or _text_of(rows, [name for name in names if name != label])
    others = [name for name in names if name != found]
    return Roles(found, label or _label_of(rows, others), text is None or label is None)


def _values(rows: Sequence[Row], name: str) -> list[Any]:
    return [row.fields[name] for row in rows if name in row.fields]


def _text_of(rows: Sequence[Row], names: Sequence[str]) -> str:
    for name in TEXTS:
        if name in names:
            return name
    lengths = {name: sum(map(_size, _values(rows, name))) for name in names}
    return max(lengths, key=lengths.__getitem__, default=next(iter(rows[0].fields)))


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str | list | np.ndarray) else 0


def _label_of(rows: Sequence[Row], names: Sequence[str]) -> str | None:
    for name in LABELS:
        if name in names:
            return name
    kinds = {}
    for name in names:
        values = _values(rows, name)
        if all(isinstance(value, str | int | float) for value in values):
            kinds[name] = len(set(values))
    few = {name: count for name, count in kinds.items() if count <= max(2, len(rows) // 2)}
    return min(few, key=few.__getitem__) if few else None

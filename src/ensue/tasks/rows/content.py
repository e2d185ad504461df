"""What of a row is learned from, and what is learned: the value, the label, by kind of row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.data.rows import Row
from ensue.data.settings import DataSettings
from ensue.data.values import NO_LABEL, Unfit
from ensue.errors import DataError
from ensue.tasks.columns.cells import cells_of
from ensue.tasks.rows.collect import Example

EMPTY = "expected a text on both sides, got an empty one: fill it in, or leave the row out"
Input = str | list[str] | NDArray[np.float32]


class Content:
    """A text, tokens or vectors, with one label or several."""

    by_step = False  # whether each step has a label
    all_columns = False  # whether every column of a row is learned from

    def example(self, row: Row, data: DataSettings) -> Example:
        """`Unfit`, with the column's name, where the row has none."""
        name = "features" if data.sequence else data.text
        value = named(name, self.value, row, data)
        label = named(data.label, self.label, row, data, value) if data.label else None
        return Example(value, label, row.place, self.second(row, data), cells_beside(row, data))

    def value(self, row: Row, data: DataSettings) -> Any:
        return sequence(row.fields.get("features" if data.sequence else data.text))

    def second(self, row: Row, data: DataSettings) -> Any:
        """What the value is matched with; None where there is no such thing."""
        return None

    def label(self, row: Row, data: DataSettings, value: Any) -> Any:
        return label_of(row.fields.get(data.label), data.separator)

    def hashed(self, example: Example) -> str:
        """What decides the part of a row."""
        return written(example.value)

    def looked_up(self, example: Example, data: DataSettings) -> Example:
        """With what the value stands for, such as the picture of a file's name: only rows of the
        part at hand are looked up."""
        return example


def cells_beside(row: Row, data: DataSettings) -> list[str] | None:
    """Those of the columns that are read beside the text; None where there are none."""
    if not data.columns:
        return None
    if missing := [name for name in data.columns if name not in row.fields]:
        raise Unfit(f"expected a column {missing[0]!r} beside the text, got none")
    try:
        return cells_of({name: row.fields[name] for name in data.columns}, "")
    except DataError as error:
        raise Unfit(str(error).removeprefix(": ")) from None


def named(column: str, find: Any, row: Row, *rest: Any) -> Any:
    """What `find` gives; a fault begins with the name of the column."""
    try:
        return find(row, *rest)
    except Unfit as unfit:
        raise Unfit(f"{column}: {unfit}") from None


def sequence(value: Any) -> Input:
    """A text, tokens, or vectors (steps, n); `Unfit` for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, np.ndarray):
        found = np.asarray(value, np.float32)
        return found[:, None] if found.ndim == 1 else found
    if isinstance(value, list):
        return value
    raise Unfit(f"expected a text or a sequence, got {shown(value)}")


def label_of(value: Any, separator: str) -> str | list[str]:
    """A label, or the list of all where a row may have several; `Unfit` where there is none.
    Numbers are the names of classes."""
    if isinstance(value, list):
        return value
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return [f"{own:g}" for own in value.tolist()]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if value is None:
        raise Unfit(NO_LABEL)
    if not isinstance(value, str):
        raise Unfit(f"expected a label, got {shown(value)}")
    text = value.strip()
    if separator:
        return [own.strip() for own in text.split(separator) if own.strip()]
    if not text:
        raise Unfit(NO_LABEL)
    return text


class PairContent(Content):
    """A text, and the text that it is to become; neither is empty."""

    def value(self, row: Row, data: DataSettings) -> Any:
        """A list of numbers alone is one vector, not steps of a number each."""
        value = super().value(row, data)
        given = row.fields.get(data.text)
        if isinstance(value, np.ndarray) and isinstance(given, np.ndarray) and given.ndim == 1:
            value = value.T
        if not written(value).strip():
            raise Unfit(EMPTY)
        return value

    def label(self, row: Row, data: DataSettings, value: Any) -> Any:
        label = row.fields.get(data.label)
        if label is None or (isinstance(label, str | list) and not written(label).strip()):
            raise Unfit(EMPTY)
        return label_of(label, "")


def written(value: Input) -> str:
    """An input as one text."""
    if isinstance(value, np.ndarray):
        return value.tobytes().hex()
    return value if isinstance(value, str) else " ".join(value)


def shown(value: Any) -> str:
    return "nothing" if value is None else repr(value)

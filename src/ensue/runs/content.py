"""Rows as tasks take them: what a row is learned from, and its label."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.data.rows import Row
from ensue.data.values import NO_LABEL, Unfit
from ensue.errors import DataError
from ensue.models.table_cells import cells_of

EMPTY = "expected a text on both sides, got an empty one: fill it in, or leave the row out"
Input = str | list[str] | NDArray[np.float32]


def input_of(value: Any, steps: bool) -> Input:
    """A text, tokens, or vectors (steps, n); `Unfit` for anything else. Where each step has a
    label, a text is cut at its spaces."""
    if isinstance(value, str):
        return value.split() if steps else value
    if isinstance(value, np.ndarray):
        found = np.asarray(value, np.float32)
        return found[:, None] if found.ndim == 1 else found
    if isinstance(value, list):
        return value
    raise Unfit(f"expected a text or a sequence, got {_shown(value)}")


def row_cells(row: Row, without: Collection[str]) -> list[str]:
    """The cells of a row, but for some columns; `Unfit` where one is no text and no number."""
    try:
        return cells_of(row.fields, "", without)
    except DataError as error:
        raise Unfit(str(error).removeprefix(": ")) from None


def label_of(value: Any, steps: bool, separator: str) -> str | list[str]:
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
        raise Unfit(f"expected a label, got {_shown(value)}")
    text = value.strip()
    if separator:
        return [own.strip() for own in text.split(separator) if own.strip()]
    if steps:
        return text.split()
    if not text:
        raise Unfit(NO_LABEL)
    return text


def target_of(value: Any) -> str | list[str]:
    """What a text is to become; `Unfit` where there is nothing."""
    if value is None or (isinstance(value, str | list) and not hashed(value).strip()):
        raise Unfit(EMPTY)
    return label_of(value, steps=False, separator="")


def check_steps(value: Input, label: str | list[str]) -> None:
    """Every step has its label."""
    if isinstance(label, str):
        raise Unfit(f"expected a label for each of the {len(value)} steps, got one, {label!r}")
    if len(label) != len(value):
        raise Unfit(f"expected a label for each of the {len(value)} steps, got {len(label)}")


def hashed(value: Input) -> str:
    """What decides the part of a row."""
    if isinstance(value, np.ndarray):
        return value.tobytes().hex()
    return value if isinstance(value, str) else " ".join(value)


def _shown(value: Any) -> str:
    return "nothing" if value is None else repr(value)

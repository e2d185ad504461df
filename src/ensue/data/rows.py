"""What reading gives: rows, each with its place in a file, and what was wrong with the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Place(NamedTuple):
    """Where a row begins: lines count from 1 (rows, in files without lines)."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Row(NamedTuple):
    """One example as read. Values are texts, numbers, lists of tokens, or arrays of numbers."""

    place: Place
    fields: dict[str, Any]


class Problem(NamedTuple):
    """A fault and its place. `rejects` is how many rows it takes away: none where it is the
    second fault of a row, or where it stands for the file as a whole."""

    place: Place
    reason: str
    rejects: int = 1

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


Tell = Callable[[Problem], None]  # who hears of problems


class Broken(Exception):
    """A file that cannot be read any further. Caught by the readers, never seen outside."""

    def __init__(self, place: Place, reason: str) -> None:
        super().__init__(reason)
        self.problem = Problem(place, reason, rejects=0)

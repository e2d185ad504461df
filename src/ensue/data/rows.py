"""The results of reading: valid rows with their places in files, problems of the others, and
progress callbacks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ensue.errors import DataError
from ensue.escape import short_line

MOST_LISTED, MOST_ALIKE = 20, 3
NUMBER = re.compile(r"0x[0-9A-F]+|\d+")


class Place(NamedTuple):
    """The place where a row begins: lines count from 1 (rows, in files without lines).

    >>> str(Place("news.tsv", 3))
    'news.tsv:3'
    """

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Row(NamedTuple):
    """An example from a file. Values are texts, numbers, lists of tokens, or arrays of numbers.

    >>> Row(Place("news.tsv", 3), {"text": "a fine film"}).fields["text"]
    'a fine film'
    """

    place: Place
    fields: dict[str, Any]


class Problem(NamedTuple):
    """A fault and its place. rejects: number of rows that it removes; 0 for the second fault of a
    row and for faults of the whole file.

    >>> print(Problem(Place("news.tsv", 3), "expected 2 columns, got 3"))
    news.tsv:3: expected 2 columns, got 3
    """

    place: Place
    reason: str
    rejects: int = 1

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


class FileProblems:
    """The faults of one file, raised together; the first of them are listed."""

    def __init__(self, path: Path) -> None:
        self.path, self.count = path, 0
        self._listed: list[str] = []

    def add(self, line: int, reason: str) -> None:
        self.count += 1
        if len(self._listed) < MOST_LISTED:
            self._listed.append(f"{self.path}:{line}: {reason}")

    def raise_any(self) -> None:
        if self.count:
            head = f"{self.count} problem{'s' * (self.count > 1)} in {self.path}"
            more = self.count - len(self._listed)
            rest = [f"and {more} more"] * (more > 0)
            raise DataError("\n  ".join([head, *self._listed, *rest]))


class Tally:
    """Collects problems for a list: the first of each kind, and the number of further ones. Reasons
    of one kind differ only in their numbers."""

    def __init__(self, problems: Iterable[Problem] = ()) -> None:
        self.count = 0
        self._alike: Counter[str] = Counter()
        self._listed: list[tuple[str, Problem]] = []
        self._reasons: set[str] = set()  # the first two, to see whether there are several
        for problem in problems:
            self.add(problem)

    def add(self, problem: Problem) -> None:
        self.count += 1
        if len(self._reasons) < 2:
            self._reasons.add(problem.reason)
        kind = NUMBER.sub("0", problem.reason)
        if len(self._listed) < MOST_LISTED or kind in self._alike:
            self._alike[kind] += 1
            if self._alike[kind] <= MOST_ALIKE and len(self._listed) < MOST_LISTED:
                self._listed.append((kind, problem))

    @property
    def same(self) -> Problem | None:
        """The first problem, if all problems reject a row for the same reason."""
        alone = len(self._reasons) == 1
        return self._listed[0][1] if alone and self._listed[0][1].rejects else None

    def lines(self, count: int | None = None) -> list[str]:
        """The lines of the list. count: the number of all problems, if some were not added."""
        listed, last = [], {kind: at for at, (kind, _) in enumerate(self._listed)}
        counts = Counter(kind for kind, _ in self._listed)
        for at, (kind, problem) in enumerate(self._listed):
            listed.append(short_line(str(problem)))
            more = self._alike[kind] - counts[kind]
            if more and last[kind] == at:
                listed.append(f"  and {more:,} more like it")
        left = (self.count if count is None else count) - self._alike.total()
        return [*listed, *([f"and {left:,} more"] if left else [])]


ProblemCallback = Callable[[Problem], None]  # callback for rejected rows and other faults


class Broken(Exception):
    """A file that cannot be read any further. Caught by the readers, never seen outside."""

    def __init__(self, place: Place, reason: str) -> None:
        super().__init__(reason)
        self.problem = Problem(place, reason, rejects=0)


# --- how far it is ------------------------------------------------------------------------


class ReadingWatch(Protocol):
    """Called while files are read, row by row."""

    def began(self, name: str) -> None:
        """The rows of a file, a folder or two parallel files come next."""

    def row(self) -> None:
        """Called for each row."""

    def at(self, path: str, position: int, size: int) -> None:
        """Called with the position in a file and its size, in (compressed) bytes."""

    def ended(self) -> None:
        """Called after the last row, or when reading stops."""


_WATCH: ContextVar[ReadingWatch | None] = ContextVar("ensue_reading_watch", default=None)


@contextmanager
def watch_reading(watch: ReadingWatch | None) -> Iterator[None]:
    """Reports reading inside the block to this progress callback; None disables it."""
    before = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(before)


def reading_watch() -> ReadingWatch | None:
    """The progress callback for reading; None unless `watch_reading` has set one."""
    return _WATCH.get()


def watched_rows(rows: Iterator[Row], name: str) -> Iterator[Row]:
    """The same rows, each reported to the progress callback."""
    watch = _WATCH.get()
    if watch is None:
        yield from rows
        return
    watch.began(name)
    try:
        for row in rows:
            watch.row()
            yield row
    finally:
        watch.ended()

"""A line on the standard error that says how far the reading of files is."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TextIO

from ensue.data.rows import watch_reading
from ensue.escape import printable

FIRST = 1.0  # seconds until something is shown
LINE_SECONDS, DRAWN_SECONDS = 5.0, 0.1  # between two lines, and two drawings on a terminal
AT_ONCE = 0.5  # seconds between two files that are read one after the other
MOST_FILES = 2  # of a folder with more, bytes tell nothing
MB = 1e6


class ReadingLine:
    """Progress of reading: rows, and bytes if the size of a file is known. On a terminal the line
    is updated in place and removed at the end; elsewhere one line follows another."""

    def __init__(
        self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream, self._clock = stream or sys.stderr, clock
        self._terminal = self._stream.isatty()
        self._name, self._rows = "", 0
        self._positions: dict[str, tuple[int, int]] = {}  # by file: bytes taken, and all of them
        self._due = self._ended = float("-inf")
        self._drawn = False

    def began(self, name: str) -> None:
        now = self._clock()
        if now - self._ended > AT_ONCE:
            self._due = now + FIRST
        self._name, self._rows, self._positions = printable(Path(name).name), 0, {}

    def row(self) -> None:
        self._rows += 1
        now = self._clock()
        if now >= self._due:
            self._show(now)

    def at(self, path: str, position: int, size: int) -> None:
        self._positions[path] = position, size

    def ended(self) -> None:
        self._ended = self._clock()
        if self._drawn:
            self._stream.write(f"\r{' ' * _columns()}\r")
            self._stream.flush()
            self._drawn = False

    def _show(self, now: float) -> None:
        self._due = now + (DRAWN_SECONDS if self._terminal else LINE_SECONDS)
        text = self._text()
        if self._terminal:
            self._stream.write(f"\r{text[: _columns()].ljust(_columns())}")
            self._drawn = True
        else:
            self._stream.write(f"{text}\n")
        self._stream.flush()

    def _text(self) -> str:
        text = f"reading {self._name}: {self._rows:,} row{'s' * (self._rows != 1)}"
        count = sum(position for position, _ in self._positions.values())
        total = sum(size for _, size in self._positions.values())
        if total and len(self._positions) <= MOST_FILES:
            text += f", {count / MB:,.1f} of {total / MB:,.1f} MB ({100 * count / total:.0f} %)"
        return text


@contextmanager
def shown_while(text: str) -> Iterator[None]:
    """Shows a text on a terminal until the block ends."""
    if not sys.stderr.isatty():
        yield
        return
    print(f"{text} …", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print(f"\r{' ' * (len(text) + 2)}\r", end="", file=sys.stderr, flush=True)


def _columns() -> int:
    return shutil.get_terminal_size().columns - 1


def reading_shown(quiet: bool) -> AbstractContextManager[None]:
    """Shows the progress of reading files inside the block. quiet: shows nothing; of several
    processes, only the first shows progress."""
    first = os.environ.get("RANK", "0") == "0"
    return watch_reading(ReadingLine() if first and not quiet else None)

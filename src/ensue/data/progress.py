"""Who is told how far the reading of files is: nobody, unless `watch_reading` says so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import BinaryIO, Protocol

from ensue.data.rows import Row


class ReadingWatch(Protocol):
    """Called while files are read, row by row."""

    def began(self, name: str) -> None:
        """The rows of a file, a folder or two parallel files come next."""

    def row(self) -> None:
        """One more was read."""

    def at(self, path: str, position: int, size: int) -> None:
        """How many bytes of a file were taken, packed as they are, and how many it has."""

    def ended(self) -> None:
        """The last row was read, or no more are wanted."""


_WATCH: ContextVar[ReadingWatch | None] = ContextVar("ensue_reading_watch", default=None)


@contextmanager
def watch_reading(watch: ReadingWatch | None) -> Iterator[None]:
    """Whatever is read inside of it is told to the watch; None tells nobody."""
    before = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(before)


def watched_rows(rows: Iterator[Row], name: str) -> Iterator[Row]:
    """The same rows, each told to who watches."""
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


def watched_pieces(pieces: Iterator[bytes], path: str, file: BinaryIO) -> Iterator[bytes]:
    """The same pieces of a file; who watches is told how far it was read for each."""
    if _WATCH.get() is None or not file.seekable():
        yield from pieces
        return
    size = os.fstat(file.fileno()).st_size
    for piece in pieces:
        if (watch := _WATCH.get()) is not None:
            watch.at(path, file.tell(), size)
        yield piece

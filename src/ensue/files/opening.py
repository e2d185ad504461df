"""Opens the files of a run: only plain files, never through a link, never larger than expected.

A run folder may come from another person. A link in it would lead reads and writes elsewhere, and a
FIFO would block forever."""

from __future__ import annotations

import errno
import os
import stat
from io import FileIO
from pathlib import Path

from ensue.errors import RunError

RUN_FILE = 64 << 20  # bytes of a configuration, a manifest or a list, which are read completely
HISTORY_FILE = 4 << 30  # bytes of the stored rows of a training
PICTURE_FILE = 1 << 30  # bytes
PICTURE_PIXELS = 1 << 26
PICTURE_SIDE = 1 << 15  # pixels
PICTURE_HEADER = 4096  # bytes of a PGM or PPM header, comments included
IDX_FILE = 1 << 30  # bytes, unpacked
VECTOR_LINE = 1 << 20  # bytes of a line of word vectors
VECTOR_WIDTH = 1 << 16  # numbers of a word vector
HELD_FILES = 64  # data files that a command keeps open
COLUMNS = 100_000  # columns of a table, keys of a JSON object
TREE_LENGTH = 1 << 20  # characters of a tree in brackets
TREE_DEPTH = 500  # brackets inside of each other: a network takes a step for each
TYPED_LINE = 1 << 24  # bytes of a line of the standard input
VECTOR_NUMBER = 1e15  # largest number of a word vector: sums of squares are finite in float32
COMPILER_SECONDS = 300.0
LAYER_WIDTH, LAYERS = 1 << 15, 1000  # units; no machine has memory for more
DRAWS = 1 << 20  # futures of a forecast that are sampled at once
SEASON = 1 << 20  # steps: twice as many as minutes in a year
NUMBERS = 1 << 28  # numbers of a forecast in memory at once
LARGEST_NUMBER = 1e30  # largest number of a data file: sums of squares are finite


KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_plain(path: Path, flags: int = os.O_RDONLY) -> FileIO:
    """The opened file, with the flags of os.open; raises RunError if the path is not a plain
    file."""
    try:
        handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise not_plain(path) from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise not_plain(path)
    writes = flags & (os.O_WRONLY | os.O_RDWR)
    return FileIO(handle, "r+" if writes else "r")


def append_to(path: Path) -> FileIO:
    """A file opened for appending, created if missing; every write is passed to the system at
    once."""
    return open_plain(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)


def write_all(file: FileIO, data: bytes) -> None:
    """Writes all data, or raises the system's error: on a nearly full disk, a single write may be
    partial."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def read_plain(path: Path, most: int = RUN_FILE) -> bytes:
    """The whole content of a file; raises RunError above `most` bytes."""
    with open_plain(path) as file:
        data = bytearray()
        while len(data) <= most and (piece := file.read(min(most + 1 - len(data), 1 << 24))):
            data += piece
    if len(data) > most:
        raise RunError(f"{path}: expected at most {most:,} bytes, got more; nothing was read")
    return bytes(data)


def refuse_strange(paths: dict[Path, int]) -> None:
    """Raises RunError if an existing path does not have its expected type, S_IFREG or S_IFDIR."""
    for path, kind in paths.items():
        try:
            mode = stat.S_IFMT(os.lstat(path).st_mode)
        except OSError:
            continue
        if mode != kind:
            raise not_plain(path, "a folder" if kind == stat.S_IFDIR else "a plain file")


def not_plain(path: Path, expected: str = "a plain file") -> RunError:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        mode = 0
    got = KINDS.get(stat.S_IFMT(mode), "a plain file")
    if stat.S_ISLNK(mode):
        got += f" to {os.readlink(path)}"
    return RunError(
        f"{path}: expected {expected}, got {got}; nothing was read or written through it. "
        "Remove it, or name another run folder"
    )

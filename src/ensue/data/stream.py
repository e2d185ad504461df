"""The bytes of a file, piece by piece, unpacked where it is gzip."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import BinaryIO

from ensue.data.rows import reading_watch
from ensue.errors import DataError

STREAMS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
PIECE = 1 << 18
NEAR = 0.75  # likeness of two names, from 0 to 1
MAGIC = b"\x1f\x8b"


class DamagedStream(Exception):
    """Gzip data that cannot be unpacked any further."""


def open_file(path: Path) -> BinaryIO:
    """The file, or an error that tells what to do."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
        if kind in STREAMS:
            raise DataError(
                f"{path}: expected a file, got {STREAMS[kind]}, which can be read only once; "
                "write it to a file first"
            )
        return path.open("rb")
    except FileNotFoundError:
        near = _near_name(path)
        guess = "check the name." if near is None else f"did you mean {near}?"
        raise DataError(f"{path}: no such file: {guess}") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder, not a file; use --format folder") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be opened ({error.strerror})") from None


def _near_name(path: Path) -> Path | None:
    """A file beside whose name is nearly this one; endings make no two names alike."""
    names = [own.name for own in path.parent.iterdir()] if path.parent.is_dir() else []
    stems: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda own: Path(own).suffix != path.suffix):
        stems.setdefault(Path(name).stem, []).append(name)
    near = get_close_matches(path.stem, stems, n=1, cutoff=NEAR)
    return path.with_name(stems[near[0]][0]) if near else None


def pieces(path: Path) -> Iterator[bytes]:
    """The file's content. Gzip is known by its first two bytes, whatever the name."""
    with open_file(path) as file:
        try:
            yield from _watched(_content(path, file), str(path), file)
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def _watched(pieces: Iterator[bytes], path: str, file: BinaryIO) -> Iterator[bytes]:
    """The same pieces; who watches is told how far the file was read for each."""
    if reading_watch() is None or not file.seekable():
        yield from pieces
        return
    size = os.fstat(file.fileno()).st_size
    for piece in pieces:
        if (watch := reading_watch()) is not None:
            watch.at(path, file.tell(), size)
        yield piece


def _content(path: Path, file: BinaryIO) -> Iterator[bytes]:
    first = file.read(PIECE)
    if first.startswith(MAGIC):
        yield from _unpacked(file, first)
        return
    if path.suffix == ".gz" and first:
        raise DamagedStream(
            f"the name ends in .gz, but the bytes {first[:2].hex(' ').upper()} are no "
            "gzip: take .gz off the name, or pack the file"
        )
    while first:
        yield first
        first = file.read(PIECE)


def _unpacked(file: BinaryIO, packed: bytes) -> Iterator[bytes]:
    """One gzip member after another, never more than PIECE at a time."""
    end = len(packed)  # of what was read so far, in the packed file
    while packed:
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            try:
                piece = member.decompress(packed, PIECE)
            except zlib.error as error:
                at = end - len(packed)
                what = str(error).rpartition(": ")[2]
                raise DamagedStream(
                    f"the gzip data is damaged at or after byte {at} ({what}): copy the file again"
                ) from None
            if piece:
                yield piece
            packed = member.unconsumed_tail
            if not packed and not member.eof:
                packed = file.read(PIECE)
                end += len(packed)
                if not packed and not piece:
                    raise DamagedStream(
                        f"the gzip data is cut off at byte {end}: the file is not whole, "
                        "copy it again"
                    )
        packed = member.unused_data.lstrip(b"\0")  # some tools pad with zeros
        while len(packed) < len(MAGIC) and (more := file.read(PIECE)):
            packed = (packed + more).lstrip(b"\0")
            end += len(more)
        if packed and not packed.startswith(MAGIC):
            at = end - len(packed)
            raise DamagedStream(f"bytes that are no gzip follow the gzip data at byte {at}")

"""The bytes of data files: each file is opened once in a command and read piece by piece; gzip is
unpacked."""

from __future__ import annotations

import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from ensue.data.pictures.endings import is_image
from ensue.data.rows import reading_watch
from ensue.errors import DataError
from ensue.files.opening import HELD_FILES

STREAMS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
PIECE = 1 << 18
NEAR = 0.75  # minimum similarity of two names, from 0 to 1
MAGIC = b"\x1f\x8b"


class DamagedStream(Exception):
    """Gzip data that cannot be unpacked any further."""


def open_file(path: Path) -> BinaryIO:
    """Opens the file at its beginning, or raises an error with advice. Inside `opened_once` all
    reads of a file use the same descriptor."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
        if kind in STREAMS:
            raise DataError(
                f"{path}: expected a file, got {STREAMS[kind]}, which can be read only once; "
                "write it to a file first"
            )
        opened = _FILES.get()
        file = None if opened is None else opened.file(path)
        return path.open("rb") if file is None else file.reading()
    except FileNotFoundError as error:
        near = _near_name(path)
        guess = "check the name." if near is None else f"did you mean {near}?"
        raise DataError(f"{path}: no such file: {guess}") from error
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder, not a file; use --format folder") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be opened ({error.strerror})") from error


def _near_name(path: Path) -> Path | None:
    """A file in the same folder with a similar name; endings are not compared, except that pictures
    are not tables."""
    names = [sibling.name for sibling in path.parent.iterdir()] if path.parent.is_dir() else []
    names = [name for name in names if is_image(Path(name)) == is_image(path)]
    stems: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: Path(name).suffix != path.suffix):
        stems.setdefault(Path(name).stem, []).append(name)
    near = get_close_matches(path.stem, stems, n=1, cutoff=NEAR)
    return path.with_name(stems[near[0]][0]) if near else None


# --- one file, many readings ---------------------------------------------------------------


class DataFile:
    """A data file during one command, which may read it several times: to recognise it, to learn
    from it, to validate, to record its digest. The file is opened once, and each reading starts at
    its beginning. All readings must see the same bytes; a difference is an error."""

    def __init__(self, path: Path) -> None:
        self.path, self._file = path, path.open("rb", buffering=0)
        self._state = self._state_now()
        self.digest = ""  # sha256 of its bytes, known after a complete reading

    def reading(self) -> BinaryIO:
        self._refuse_change(self.path.stat())
        return io.BufferedReader(_Reading(self))

    def read_at(self, position: int, buffer: memoryview) -> int:
        return os.preadv(self._file.fileno(), [buffer], position)

    def read_whole(self, digest: str) -> None:
        """Records the digest of a complete reading."""
        self._refuse_change(os.fstat(self._file.fileno()))
        if self.digest not in ("", digest):
            raise self._changed()
        self.digest = digest

    def close(self) -> None:
        self._file.close()

    def fileno(self) -> int:
        return self._file.fileno()

    def _state_now(self) -> tuple[int, ...]:
        return _state(os.fstat(self._file.fileno()))

    def _refuse_change(self, now: os.stat_result) -> None:
        if _state(now) != self._state:
            raise self._changed()

    def _changed(self) -> DataError:
        return DataError(
            f"{self.path}: expected the same bytes at every reading, but the file was changed or "
            "replaced during this command. Next: run the same command again"
        )


def _state(facts: os.stat_result) -> tuple[int, ...]:
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns


class _Reading(io.RawIOBase):
    """One reading of a file's bytes from its beginning; several may run at the same time."""

    def __init__(self, file: DataFile) -> None:
        super().__init__()
        self._file, self._at = file, 0
        self._digest, self._digested = sha256(), 0  # and the number of bytes covered

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._file.fileno()

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        size = self._file.read_at(self._at, buffer)
        if self._at == self._digested:
            self._digest.update(memoryview(buffer)[:size])
            self._digested += size
            if not size and len(buffer):
                self._file.read_whole(self._digest.hexdigest())
        self._at += size
        return size

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        size = os.fstat(self.fileno()).st_size
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at


class _DataFiles:
    """The data files of a command, by their paths; the first ones stay open."""

    def __init__(self) -> None:
        self._files: dict[str, DataFile] = {}

    def file(self, path: Path) -> DataFile | None:
        """The file of a path; None if too many files are open, as in a folder of texts."""
        name = os.path.abspath(path)
        if name not in self._files:
            if len(self._files) >= HELD_FILES:
                return None
            self._files[name] = DataFile(path)
        return self._files[name]

    def known(self, path: Path) -> DataFile | None:
        return self._files.get(os.path.abspath(path))

    def close(self) -> None:
        for file in self._files.values():
            file.close()


_FILES: ContextVar[_DataFiles | None] = ContextVar("ensue_data_files", default=None)


@contextmanager
def opened_once() -> Iterator[None]:
    """Marks a command: each data file is opened only once inside the block."""
    if _FILES.get() is not None:
        yield
        return
    files = _DataFiles()
    before = _FILES.set(files)
    try:
        yield
    finally:
        _FILES.reset(before)
        files.close()


def known_digest(path: Path) -> str:
    """sha256 of a file that this command has read completely; "" for others."""
    files = _FILES.get()
    file = None if files is None else files.known(path)
    return "" if file is None else file.digest


# --- its content ---------------------------------------------------------------------------


def pieces(path: Path) -> Iterator[bytes]:
    """The file's content in pieces. Gzip is recognised by its first two bytes, whatever the
    name."""
    with open_file(path) as file:
        try:
            yield from _watched(_content(path, file), str(path), file)
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror})") from error


def _watched(pieces: Iterator[bytes], path: str, file: BinaryIO) -> Iterator[bytes]:
    """The same pieces; each one reports the position in the file to the progress callback."""
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
    """Unpacks one gzip member after another, at most PIECE at a time."""
    end = len(packed)  # position of the data read so far in the packed file
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
                        f"the gzip data is cut off at byte {end}: the file is incomplete, "
                        "copy it again"
                    )
        packed = member.unused_data.lstrip(b"\0")  # some tools pad with zeros
        while len(packed) < len(MAGIC) and (more := file.read(PIECE)):
            packed = (packed + more).lstrip(b"\0")
            end += len(more)
        if packed and not packed.startswith(MAGIC):
            at = end - len(packed)
            raise DamagedStream(f"the gzip data is followed by other bytes at byte {at}")

"""Strict decoding of bytes to lines of text; invalid bytes are reported.

A line ends at LF or CRLF and nowhere else: U+2028, U+0085 and form feeds stay in the text.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain, count, repeat
from pathlib import Path

from ensue.data.options import ReadOptions
from ensue.data.rows import Broken, Place
from ensue.data.stream import DamagedStream, pieces

# Line number, text, and its fault ("" for none). In the text of a faulty line, U+FFFD replaces
# unreadable bytes; it only shows quotes and columns, and never becomes part of a row.
Line = tuple[int, str, str]

# UTF-32's mark begins with that of UTF-16, so the longer comes first.
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: "utf-8",
}
ASCII = bytes(range(128))
BOM = "\ufeff"
EMPTY = "the line is empty"


def lines(path: Path, options: ReadOptions) -> Iterator[Line]:
    """The lines of a file; raises `Broken` where it cannot be read any further."""
    name = codecs.lookup(options.encoding).name
    encoding = {"utf-8-sig": "utf-8"}.get(name, name)
    number = 1
    try:
        content, offset = _looked_at(pieces(path), encoding, Place(str(path), 1))
        if not _extends_ascii(encoding):
            content, encoding = _as_utf8(content, encoding, str(path)), "utf-8"
        for block, too_long in _blocks(content, options.longest_line):
            if too_long:
                yield number, "", _too_long(options.longest_line)
                number, offset = number + 1, offset + too_long
                continue
            yield from _decoded(block, encoding, number, offset)
            number, offset = number + block.count(b"\n"), offset + len(block)
    except DamagedStream as damage:
        raise Broken(Place(str(path), number), str(damage)) from None


def filled(source: Iterable[Line]) -> Iterator[Line]:
    """The lines of a format with one row per line. An empty line is a fault, unless only empty
    lines follow."""
    empty: int | None = None  # first of the empty lines that may end the file
    for number, text, fault in source:
        if not fault and not text.strip(" \t\r"):
            empty = empty or number
            continue
        yield from ((line, "", EMPTY) for line in range(empty or number, number))
        empty = None
        yield number, text, fault


def _extends_ascii(encoding: str) -> bool:
    """Whether LF is always a single byte in this encoding, so that lines can be split before
    decoding."""
    try:
        return ASCII.decode(encoding) == ASCII.decode("ascii")
    except UnicodeError:
        return False


def _too_long(limit: int) -> str:
    size = f"{limit >> 20} MB" if limit >= 1 << 20 else f"{limit} bytes"
    return f"the line is longer than {size} and was not read: split it, or raise longest_line"


def _blocks(content: Iterator[bytes], limit: int) -> Iterator[tuple[bytes, int]]:
    """Yields blocks of complete lines that end with LF (except the file's last) with the number 0.
    For a line above the limit it yields b"" and the line's size, and drops the line."""
    pending: list[bytes] = []  # beginning of an incomplete line
    size = 0
    for piece in content:
        end, start = piece.find(b"\n"), 0
        if end >= 0 and size + end > limit:
            start = end + 1
            yield b"", size + start
            pending, size = [], 0
        cut = max(piece.rfind(b"\n") + 1, start)
        if cut > start:
            yield b"".join([*pending, piece[start:cut]]), 0
            pending, size = [], 0
        pending.append(piece[cut:])
        size += len(pending[-1])
        if size > limit:
            pending.clear()
    if size > limit:
        yield b"", size
    elif size:
        yield b"".join(pending), 0


def _decoded(block: bytes, encoding: str, number: int, offset: int) -> Iterator[Line]:
    try:
        text = block.decode(encoding)
    except UnicodeDecodeError:
        yield from _one_by_one(block, encoding, number, offset)
        return
    if "\0" in text or BOM in text:
        yield from _one_by_one(block, encoding, number, offset)
        return
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    yield from zip(count(number), lines, repeat(""))


def _one_by_one(block: bytes, encoding: str, number: int, offset: int) -> Iterator[Line]:
    for raw in _at_lf(block):
        line = raw.removesuffix(b"\n").removesuffix(b"\r")
        fault = ""
        try:
            text = line.decode(encoding)
            if "\0" in text:
                fault = f"a NUL byte at byte {offset + line.find(0)}: the line is not text"
            elif BOM in text:
                at = offset + len(text[: text.index(BOM)].encode(encoding))
                fault = f"a byte order mark at byte {at}: were files joined? Remove it"
        except UnicodeDecodeError as error:
            fault = _undecodable(line, encoding, error, offset)
            text = line.decode(encoding, "replace")
        yield number, text, fault
        number, offset = number + 1, offset + len(raw)


def _at_lf(block: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in block.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


# --- what the bytes are instead ----------------------------------------------------------


def _undecodable(line: bytes, encoding: str, error: UnicodeDecodeError, offset: int) -> str:
    """A message: byte offset, the bytes, their likely encoding, a remedy."""
    bad = line[error.start : error.end]
    listed = " ".join(f"0x{byte:02X}" for byte in bad)
    what = f"{listed} at byte {offset + error.start} is not {encoding}"
    if encoding != "utf-8":
        return f"{what}: use another --encoding"
    if any(ord(letter) > 127 for letter in line.decode("utf-8", "ignore")):
        return f"{what}, other letters of the line are: the bytes are damaged"
    for guess in ("cp1252", "latin-1"):
        try:
            letters = line.decode(guess)[error.start : error.end]
        except UnicodeDecodeError:
            continue
        return f"{what}; {guess} reads {letters!r}: use --encoding {guess} if that is right"
    raise AssertionError("latin-1 decodes every byte")


def _looked_at(
    content: Iterator[bytes], encoding: str, place: Place
) -> tuple[Iterator[bytes], int]:
    """The content after a UTF-8 byte order mark, and the size of that mark; raises `Broken` if the
    beginning shows another encoding, or line ends of old Macs."""
    first, skipped = next(content, b""), 0
    mark = next((mark for mark in MARKS if first.startswith(mark)), b"")
    if not mark:
        _refuse_wide(first, encoding, place)
    elif MARKS[mark] == encoding == "utf-8":
        first, skipped = first[len(mark) :], len(mark)
    elif not encoding.startswith(MARKS[mark]):
        raise Broken(
            place,
            f"the file begins with the byte order mark {mark.hex(' ').upper()} of {MARKS[mark]}, "
            f"not of {encoding}: use --encoding {MARKS[mark]}",
        )
    if _extends_ascii(encoding) and b"\r" in first and b"\n" not in first:
        raise Broken(
            place,
            "the lines end with CR alone, as on old Macs: convert them to LF (tr '\\r' '\\n')",
        )
    return chain([first], content), skipped


def _refuse_wide(first: bytes, encoding: str, place: Place) -> None:
    """Raises `Broken` for UTF-16 without a mark: in Western text every other byte is NUL."""
    sample = first[:4096]
    if not _extends_ascii(encoding) or len(sample) < 4:
        return
    for start, kind in ((1, "utf-16-le"), (0, "utf-16-be")):
        half, other = sample[start::2], sample[1 - start :: 2]
        if half.count(0) > 0.7 * len(half) and other.count(0) < 0.1 * len(other):
            raise Broken(
                place,
                f"every other byte is NUL: the file is {kind}, not {encoding}: "
                f"use --encoding {kind}",
            )


def _as_utf8(content: Iterator[bytes], encoding: str, file: str) -> Iterator[bytes]:
    """The text re-encoded as UTF-8, for encodings in which LF cannot be found among the bytes."""
    decoder = codecs.getincrementaldecoder(encoding)()
    length, line, at_start = 0, 1, True
    while True:
        piece = next(content, b"")
        pending = decoder.getstate()[0]
        try:
            text = decoder.decode(piece, final=not piece)
        except UnicodeDecodeError as error:
            bad = error.object[error.start : error.end].hex(" ").upper()
            sound = error.object[: error.start].decode(encoding, "ignore")
            raise Broken(
                Place(file, line + sound.count("\n")),
                f"the bytes {bad} at byte {length - len(pending) + error.start} are not "
                f"{encoding}; "
                "nothing after them is read",
            ) from None
        except UnicodeError:  # no bytes to name: UTF-16 and UTF-32 begin with a mark
            raise Broken(
                Place(file, 1),
                f"the file does not begin with the byte order mark of {encoding}: use another "
                f"--encoding, or {encoding}-le if it is left out",
            ) from None
        length += len(piece)
        line += text.count("\n")
        if at_start and text:
            text, at_start = text.removeprefix("\ufeff"), False
        if text:
            yield text.encode()
        if not piece:
            return

"""How many rows a data file has, counted without Ensue's readers. The rows that a reader gives and
those that it rejects must be as many: no row is lost without a word."""

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from collections.abc import Callable

Count = Callable[[bytes], int | None]


def uncounted(data: bytes) -> int | None:
    """Nothing else counts the rows of such a file."""
    return None


BOM = b"\xef\xbb\xbf"


def _lines(data: bytes) -> list[bytes]:
    """The lines, without a mark of UTF-8 and without the end of the last line."""
    lines = data.removeprefix(BOM).split(b"\n")
    return [line.removesuffix(b"\r") for line in (lines if lines[-1] else lines[:-1])]


def _without_last(lines: list[bytes], spaces: bytes = b"") -> list[bytes]:
    """The lines without the empty ones that end the file. spaces: that make no line."""
    while lines and not (lines[-1].strip(spaces) if spaces else lines[-1]):
        lines = lines[:-1]
    return lines


def every_line(data: bytes) -> int | None:
    """A row on each line, empty ones too."""
    return len(_lines(data))


def filled_lines(data: bytes) -> int | None:
    """A row on each line up to the last one that is not empty."""
    return len(_without_last(_lines(data), b" \t\r"))


def table_lines(data: bytes) -> int | None:
    """The lines below a header, of a table without quotes and of more than one column."""
    lines = _without_last(_lines(data))
    return len(lines) - 1 if lines and b"\t" in lines[0] else None


def quoted_lines(delimiter: str = ",", encoding: str = "utf-8") -> Count:
    """The records below a header, by Python's own reader; None where quotes are not in order, or
    the table may have one column, in which an empty line is a row."""

    def count(data: bytes) -> int | None:
        lines = _without_last(_lines(data))
        try:
            plain = [line.replace(b"\r", b" ").replace(b"\0", b" ") for line in lines]
            texts = [line.decode(encoding, "replace") + "\n" for line in plain]
            records = list(csv.reader(texts, delimiter=delimiter, strict=True))
        except csv.Error:
            return None
        if not records or len(records[0]) < 2 or not _in_order(records, texts, delimiter):
            return None
        return len(records) - 1

    return count


def _in_order(records: list[list[str]], texts: list[str], delimiter: str) -> bool:
    """Whether every quoted field is closed before its delimiter: written again, the text is the
    same up to quotes that were not needed."""
    field = f'(?:"(?:[^"]|"")*"|[^"{re.escape(delimiter)}\n]*)'
    record = re.compile(f"{field}(?:{re.escape(delimiter)}{field})*\n")
    text, at, count = "".join(texts), 0, 0
    while at < len(text):
        match = record.match(text, at)
        if match is None:
            return False
        at, count = match.end(), count + 1
    return count == len(records)


def listed(data: bytes) -> int | None:
    """The entries of a list in JSON."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return len(value) if isinstance(value, list) else None


def sentences(data: bytes) -> int | None:
    """Groups of lines between empty ones; None where remarks may be groups of their own."""
    if b"#" in data or b"-DOCSTART-" in data:
        return None
    groups, inside = 0, False
    for line in _lines(data):
        empty = not line.strip(b" \t")
        groups += not empty and not inside
        inside = not empty
    return groups


def unpacked(count: Count) -> Count:
    """The same of a file in gzip."""

    def inner(data: bytes) -> int | None:
        try:
            return count(gzip.decompress(data))
        except (OSError, EOFError, zlib.error):
            return None

    return inner

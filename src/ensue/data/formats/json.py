"""JSON: a list of objects, in any layout. A file with an object on each line is read as JSON lines.

The text of the file is held in memory, but not its objects. Very large files should be JSON lines.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from json import JSONDecodeError, JSONDecoder
from pathlib import Path
from typing import Any

from ensue.data.decode import Line, filled, lines
from ensue.data.formats import jsonl
from ensue.data.options import ReadOptions
from ensue.data.rows import Broken, Place, ProblemCallback, Row
from ensue.data.values import FieldReader, Unfit

ENDINGS = (".json",)
EXPECTED = "expected a list of objects, [{…}, …], or an object on each line"
SPACE = re.compile(r"[ \t\r\n]*")
# Matches any value, valid or not.
WHERE_IT_ENDS = JSONDecoder(parse_int=str, parse_float=str, strict=False)


def read(path: Path, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
    """The fields of each object, as in JSON lines. A place has the number of the row, not of the
    line, because all rows may be on one line; messages about a fault add the line, unless it is the
    first."""
    first = list(islice(filled(lines(path, options)), 2))
    if not first:
        return
    if first[0][1].lstrip(" \t").startswith("{"):
        _refuse_one_object(first, path, options)
        yield from jsonl.read(path, options, on_bad_row)
        return
    file, reader = JsonList(path, options), FieldReader(options, on_bad_row, unit="in row")
    for number, (begin, end) in enumerate(file.elements(), 1):
        place, line = Place(str(path), number), file.line_at(begin)
        where = f" (line {line})" if line > 1 else ""
        try:
            if fault := file.fault_between(begin, end):
                raise Unfit(fault)
            fields = jsonl.parsed(file.text[begin:end])
        except Unfit as unfit:
            reader.reject(place, [f"{unfit}{where}"])
        else:
            yield from reader.row(place, fields, where)


def _refuse_one_object(first: list[Line], path: Path, options: ReadOptions) -> None:
    """Raises an error if the file is one object, which may contain the rows."""
    place = Place(str(path), 1)
    try:
        fields = jsonl.parsed(first[0][1])
    except Unfit:
        if len(first) > 1 and not first[1][1].lstrip(" \t").startswith("{"):
            message = f"{EXPECTED}, got one object over several lines"
            raise Broken(place, message + _list_inside(_one_object(path, options))) from None
        return  # one faulty line among others
    if len(first) == 1 and (inside := _list_inside(fields)):
        raise Broken(place, f"{EXPECTED}, got one object{inside}")


def _one_object(path: Path, options: ReadOptions) -> dict[str, Any]:
    """The object of a file; {} for other content."""
    try:
        return jsonl.parsed(JsonList(path, options).text)
    except Unfit:
        return {}


def _list_inside(fields: dict[str, Any]) -> str:
    """The path, such as data.items, of a list of objects inside an object."""
    waiting = list(fields.items())
    for name, inside in waiting:
        if isinstance(inside, list) and inside and all(isinstance(row, dict) for row in inside):
            return f": write its list {name!r} alone"
        if isinstance(inside, dict):
            waiting += [(f"{name}.{inner}", value) for inner, value in inside.items()]
    return ""


class JsonList:
    """The text of a file with a list. Raises `Broken` if it is not a list, or cannot be parsed
    further."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self._file = str(path)
        self._starts: list[int] = []  # where each line begins in the text
        self._faults: dict[int, str] = {}  # by the line's number
        pieces, size = [], 0
        for number, text, fault in lines(path, options):
            if fault:
                self._faults[number] = fault
            self._starts.append(size)
            pieces.append(text)
            size += len(text) + 1
        self.text = "\n".join(pieces)

    def line_at(self, position: int) -> int:
        return bisect_right(self._starts, position)

    def fault_between(self, begin: int, end: int) -> str:
        """The fault of the first faulty line in a part of the text; "" if there is none."""
        if not self._faults:
            return ""
        numbers = range(self.line_at(begin), self.line_at(end - 1) + 1)
        return next((self._faults[n] for n in numbers if n in self._faults), "")

    def elements(self) -> Iterator[tuple[int, int]]:
        """The begin and end of each element of the list in the text."""
        at, row = self._filled(0), 1
        if not self.text.startswith("[", at):
            reason = next(iter(self._faults.values()), "") or "got neither"
            raise Broken(Place(self._file, row), f"{EXPECTED}, {reason}")
        at = self._filled(at + 1)
        more = not self.text.startswith("]", at)
        while more:
            end = self._end(at, row)
            yield at, end
            at = self._filled(end)
            if more := self.text.startswith(",", at):
                at, row = self._filled(at + 1), row + 1
        if not self.text.startswith("]", at):
            raise self._invalid(row + 1, at, "expected , or ]")
        if (rest := self._filled(at + 1)) < len(self.text):
            raise self._invalid(row + 1, rest, "text after the end of the list")

    def _filled(self, at: int) -> int:
        """The next position without white space."""
        match = SPACE.match(self.text, at)
        return at if match is None else match.end()

    def _end(self, at: int, row: int) -> int:
        """The end of the value that begins here."""
        try:
            return WHERE_IT_ENDS.raw_decode(self.text, at)[1]
        except JSONDecodeError as error:
            raise self._invalid(row, error.pos, jsonl.error_text(error)) from None
        except RecursionError:
            raise self._invalid(row, at, "nested too deeply") from None

    def _invalid(self, row: int, at: int, reason: str) -> Broken:
        line = self.line_at(at)
        character = at - self._starts[line - 1] + 1
        message = f"invalid JSON on line {line}, character {character}: {reason}"
        return Broken(Place(self._file, row), f"{message}; nothing after it is read")

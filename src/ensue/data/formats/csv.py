"""CSV and TSV, strictly by RFC 4180: quotes around fields with delimiters, line ends or quotes,
which are then doubled.

An unclosed quote would swallow all rows after it. So the lines of an open quote are stored until it
closes. If they do not form a valid row, reading continues at the first of these lines that is a
row, or begins one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ensue.data.decode import EMPTY, Line, lines
from ensue.data.formats.text import INNER_CR
from ensue.data.options import ReadOptions, faults_of_names, needed_columns, require
from ensue.data.rows import Broken, Place, Problem, ProblemCallback, Row
from ensue.data.series import as_decimal_point
from ensue.drawing.layout import cut
from ensue.errors import DataError
from ensue.files.opening import COLUMNS

ENDINGS = (".csv",)
HEADER = True
DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar", " ": "space"}
OTHERS = (";", "\t", "|")  # delimiters found instead of a comma
SHOWN = 60  # characters of a line
MOST_UNCLOSED = 100  # each may require reading to the end of the file
LINE_COST = 100  # bytes that a stored line takes in addition to its text


class Record(NamedTuple):
    """The fields of a row; or its fault, the line of the fault, and the lines that it removes, each
    counted as a row."""

    line: int
    fields: list[str]
    fault: str
    fault_line: int
    lost: int = 1


def read(path: Path, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
    """{column: text} for each row."""
    file, first = str(path), Place(str(path), 1)
    tabs = options.format == "tsv"
    records = Records(
        file,
        lines(path, options),
        options.delimiter or ("\t" if tabs else ","),
        options.quote if options.quote is not None else not tabs,
        options.longest_line,
    )
    if options.header is True:
        head = next(iter(records), None)
        if head is None:
            return
        names = head.fields
        if len(names) == 1 and options.delimiter is None:
            _refuse_delimiter(names[0], records.delimiter, first)
        hint = "A file without a header line needs the names of its columns: --header a,b,…"
        if head.fault:
            raise Broken(first, f"the header cannot be used: {head.fault}")
        if faults := faults_of_names(names):
            raise Broken(first, f"the header cannot be used: {'; '.join(faults)}. {hint}")
    else:
        names, hint = list(options.header or ()), ""
    records.width = len(names)
    require(needed_columns(options), names, first, hint)
    for number, (line, fields, fault, fault_line, lost) in enumerate(records):
        if not number and options.header is not True:
            _refuse_header(fields, names, Place(file, line))
            if len(fields) == 1 < len(names) and options.delimiter is None:
                _refuse_delimiter(fields[0], records.delimiter, Place(file, line))
        if fault:
            on_bad_row(Problem(Place(file, fault_line), fault, lost))
        else:
            if options.decimal == ",":
                fields = list(map(as_decimal_point, fields))
            yield Row(Place(file, line), dict(zip(names, fields, strict=True)))


def _refuse_delimiter(line: str, delimiter: str, place: Place) -> None:
    """Raises an error if the first line has one column and contains the delimiters of another kind
    of table."""
    other = max((character for character in OTHERS if character != delimiter), key=line.count)
    if other in line:
        name, quoted = DELIMITERS[delimiter], "$'\\t'" if delimiter == "\t" else f"'{delimiter}'"
        raise DataError(
            f"{place}: with a {name} as the delimiter there is one column, {cut(line, SHOWN)!r}, "
            f"with a {DELIMITERS[other]} in it: use {_option(other)} (--delimiter {quoted} if it "
            "really is one)"
        )


def _refuse_header(fields: list[str], names: list[str], place: Place) -> None:
    """Raises an error if column names were given but are also in the first line."""
    folded = [[field.strip().casefold() for field in row] for row in (fields, names)]
    if folded[0] == folded[1]:
        raise DataError(
            f"{place}: the file has a header line already, {', '.join(fields)}: "
            "leave --header out, or remove the line"
        )


def _too_many(count: int) -> str:
    return (
        f"expected a table of at most {COLUMNS:,} columns, found {count:,} or more: is the "
        "delimiter right?"
    )


def _option(delimiter: str) -> str:
    return "--format tsv" if delimiter == "\t" else f"--delimiter '{delimiter}'"


class Records:
    """The records of lines. Iterating continues where the last iteration stopped."""

    def __init__(
        self, file: str, source: Iterator[Line], delimiter: str, quote: bool, limit: int
    ) -> None:
        self.file, self.delimiter, self.quote, self.limit = file, delimiter, quote, limit
        self.width: int | None = None  # number of fields of a valid record; None: any
        self._source = source
        self._again: deque[Line] = deque()  # lines given back by a record that did not close
        self._unclosed = 0  # records that did not close
        self._empty: int | None = None  # the first of empty lines that may end the file

    def __iter__(self) -> Iterator[Record]:
        while (line := self._next()) is not None:
            number, text, fault = line
            if not text and not fault and self.width != 1:
                self._empty = self._empty or number
                continue
            for empty in range(self._empty or number, number):
                yield Record(empty, [], EMPTY, empty)
            self._empty = None
            if self.quote and '"' in text:
                yield self._quoted(line)
                continue
            if len(text) >= COLUMNS and (count := text.count(self.delimiter)) >= COLUMNS:
                yield Record(number, [], _too_many(count + 1), number)
                continue
            fields = text.split(self.delimiter)
            if not fault:
                if len(fields) != self.width is not None:
                    fault = self._miscount(fields)
                elif "\r" in text:
                    fault = INNER_CR
            yield Record(number, fields, fault, number)

    def _next(self) -> Line | None:
        return self._again.popleft() if self._again else next(self._source, None)

    def _miscount(self, fields: list[str]) -> str:
        """The message on a wrong number of fields."""
        count, name = len(fields), DELIMITERS.get(self.delimiter, "delimiter")
        more = count > (self.width or 0)
        if self.quote:
            guess = f" (unquoted {name}?)" if more else f" (missing {name}?)"
        else:
            guess = f" (a {name} inside a field?)" if more else f" (missing {name}?)"
        return f"expected {self.width} columns, found {count}{guess}"

    def _quoted(self, first: Line) -> Record:
        """The record that begins with this line, which has a quote."""
        scan, raw_lines = Scan(self.delimiter), [first]
        scan.feed(first[1])
        column = scan.column  # the open quote after the first line
        size = len(first[1])
        while scan.open and size <= self.limit and (line := self._next()) is not None:
            raw_lines.append(line)
            scan.feed(line[1])
            size += len(line[1]) + LINE_COST
        if len(scan.fields) > COLUMNS:
            return Record(first[0], [], _too_many(len(scan.fields)), first[0])
        unread = next((line for line in raw_lines if line[2]), None)
        if scan.open or (scan.fault and len(raw_lines) > 1 and not unread):
            last = self._give_back(raw_lines)
            lines = f" (lines {first[0]} to {last} are left out)" if last > first[0] else ""
            fault = f"the quote that opens column {column} is never closed{lines}"
            return Record(first[0], [], fault, first[0], last - first[0] + 1)
        if unread:
            return Record(first[0], [], unread[2], unread[0])
        if not scan.fault and len(scan.fields) != self.width is not None:
            scan.fault = self._miscount(scan.fields)
            if len(raw_lines) > 1:
                scan.fault += f" in lines {first[0]} to {raw_lines[-1][0]}"
        return Record(first[0], scan.fields, scan.fault, first[0])

    def _give_back(self, lines: list[Line]) -> int:
        """Returns lines to the input, from the first that is a row or begins one; returns the
        number of the line before it. If there is none, all these lines are rejected."""
        self._unclosed += 1
        if self._unclosed > MOST_UNCLOSED:
            raise Broken(
                Place(self.file, lines[0][0]),
                f"more than {MOST_UNCLOSED} quotes are never closed: if quotes have no meaning "
                "in this file, use --no-quote",
            )
        for k, (_, text, _) in enumerate(lines[1:], 1):
            scan = Scan(self.delimiter)
            scan.feed(text)
            whole = not scan.open and len(scan.fields) == self.width
            begun = scan.open and scan.column <= (self.width or 0)
            if not scan.fault and (whole or begun):
                self._again.extendleft(reversed(lines[k:]))
                return lines[k - 1][0]
        return lines[-1][0]


class Scan:
    """The fields of a record, fed line by line until no quote is open."""

    def __init__(self, delimiter: str) -> None:
        self.delimiter = delimiter
        self.fields: list[str] = []
        self.fault = ""
        self._inside: list[str] | None = None  # the lines so far of a quoted field

    @property
    def open(self) -> bool:
        return self._inside is not None

    @property
    def column(self) -> int:
        return len(self.fields) + 1

    def feed(self, text: str) -> None:
        at: int | None = 0
        long = len(text) > COLUMNS
        while at is not None and not (long and len(self.fields) > COLUMNS):
            if self._inside is not None:
                at = self._close(text, at)
            elif text.startswith('"', at):
                self._inside, at = [], at + 1
            else:
                at = self._unquoted(text, at)

    def _unquoted(self, text: str, at: int) -> int | None:
        """Reads the field that begins at `at`; returns where the next one begins."""
        end = text.find(self.delimiter, at)
        field = text[at:] if end < 0 else text[at:end]
        if '"' in field:
            self.fault = f"a quote inside column {self.column}, which does not begin with one"
            return None
        if "\r" in field:
            self.fault = INNER_CR
            return None
        self.fields.append(field)
        return None if end < 0 else end + 1

    def _close(self, text: str, at: int) -> int | None:
        """Continues inside quotes; returns where the next field begins."""
        assert self._inside is not None
        end = text.find('"', at)
        while end >= 0 and text.startswith('""', end):
            end = text.find('"', end + 2)
        if end < 0:
            self._inside.append(text[at:])
            return None
        self._inside.append(text[at:end])
        self.fields.append("\n".join(self._inside).replace('""', '"'))
        self._inside = None
        if end + 1 == len(text):
            return None
        if not text.startswith(self.delimiter, end + 1):
            column = len(self.fields)
            after = text[end + 1]
            guess = f"use {_option(after)}?" if after in OTHERS else "a quote not doubled?"
            self.fault = f"text after the closing quote of column {column} ({guess})"
            return None
        return end + 2

"""Options for reading a file."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass

from ensue.data.formats import format_names
from ensue.data.rows import Place
from ensue.data.stream import PIECE
from ensue.errors import DataError, OptionError, unknown

ALL = ("*",)
DECIMALS = (".", ",")
# Encodings of names and of Python's own source, not of texts.
NO_FILES = ("idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape")


@dataclass(frozen=True)
class ReadOptions:
    """format: "auto" (by the file's name), or the name of a file in `formats`; "whole" reads a file
    as one row.

    delimiter, quote: the marks between and around the cells of tables; None: commas and quotes for
    CSV, tabs and no quotes for TSV. decimal: the decimal mark of numbers in tables, "." or ",";
    with a comma, points separate thousands. marked: columns of numbers with currency or percent
    signs or thousands separators, which are removed. header: True if the first line names the
    columns, otherwise their names. columns: columns that every row must have. empty: columns whose
    cells may be empty (null in JSON). used: further columns whose values are checked, if a row has
    them. others: whether to keep fields that no option names. Without named fields, all are kept;
    tables always keep all columns. conll: names of the columns of a CoNLL file; () names the first
    "form", the last "tag". numbers: columns of finite numbers; ALL for every column except `time`.
    time: a column that must increase from row to row if it holds numbers or dates. sequence: the
    column whose equal values make one row of many lines (a long table), with `numbers` as its
    features (steps, n), `columns` equal on all its lines and `step_columns` as lists. longest_line:
    maximum length in bytes; longer lines are problems and are not held in memory.

    >>> ReadOptions(format="csv", delimiter=";", columns=("text", "label")).encoding
    'utf-8'
    """

    format: str = "auto"
    encoding: str = "utf-8"
    delimiter: str | None = None
    quote: bool | None = None
    decimal: str = "."
    marked: tuple[str, ...] = ()
    header: bool | tuple[str, ...] = True
    columns: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    used: tuple[str, ...] = ()
    others: bool = False
    conll: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    time: str | None = None
    sequence: str | None = None
    step_columns: tuple[str, ...] = ()
    longest_line: int = 64 << 20

    def __post_init__(self) -> None:
        known = ["auto", *format_names()]
        if self.format not in known:
            raise unknown("format", self.format, known)
        problems = [*self._wrong_names(), *self._wrong_values()]
        if problems:
            raise OptionError("\n".join(problems))

    def _wrong_values(self) -> list[str]:
        faults = []
        if not _is_encoding(self.encoding):
            faults.append(
                f"encoding: {self.encoding!r} is not known; expected utf-8, cp1252, utf-16 "
                "or another name that Python knows"
            )
        if self.delimiter is not None and (
            len(self.delimiter) != 1 or self.delimiter in '"\r\n\0\ufeff'
        ):
            faults.append(
                "delimiter: expected one character, not a quote or a line end, "
                f"got {self.delimiter!r}"
            )
        if self.decimal not in DECIMALS:
            faults.append(f"decimal: expected {' or '.join(DECIMALS)}, got {self.decimal!r}")
        if self.longest_line < PIECE:
            faults.append(
                f"longest_line: expected a number of bytes ≥ {PIECE}, got {self.longest_line}"
            )
        if self.sequence is not None and not self.numbers:
            faults.append("sequence: expected `numbers` with it, the columns of its features")
        return faults

    def _wrong_names(self) -> list[str]:
        lists = {"conll": self.conll, "header": self.header if self.header is not True else ()}
        faults = []
        for option, names in lists.items():
            if isinstance(names, bool):
                faults.append(f"{option}: expected True or the names of the columns, got {names}")
            else:
                faults += [f"{option}: {fault}" for fault in faults_of_names(names)]
        return faults


def _is_encoding(name: str) -> bool:
    """Whether a codec is a text encoding; Python's codecs include others, such as zlib."""
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError):  # a name with NUL in it
        return False
    return codec.name not in NO_FILES and codec._is_text_encoding


def faults_of_names(names: Sequence[str]) -> list[str]:
    """Faults in the names of columns: empty or duplicate names."""
    faults = [f"column {k} has no name" for k, name in enumerate(names, 1) if not name.strip()]
    places: dict[str, list[int]] = {}
    for k, name in enumerate(names, 1):
        places.setdefault(name, []).append(k)
    for name, where in places.items():
        if name.strip() and len(where) > 1:
            listed = " and ".join(map(str, where))
            faults.append(f"columns {listed} have the same name {name!r}")
    return faults


def require(
    needed: Sequence[str], names: Sequence[str], place: Place | str, hint: str = ""
) -> None:
    """Raises an error that lists all missing columns, if any."""
    missing = [name for name in dict.fromkeys(needed) if name not in names]
    if missing:
        lines = [f"{place}: {unknown('column', name, names)}" for name in missing]
        raise DataError("\n".join([*lines, hint] if hint else lines))


def needed_columns(options: ReadOptions) -> list[str]:
    """All columns that the options name."""
    numbers = () if options.numbers == ALL else options.numbers
    single = [name for name in (options.sequence, options.time) if name is not None]
    return [*single, *options.columns, *numbers, *options.step_columns]

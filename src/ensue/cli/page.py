"""Text for a terminal: headings, paragraphs, and lists of names with what they mean."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TextIO

WIDEST = 100  # a longer line is hard to read
NARROWEST = 40
NAMES = 26  # most signs of a name that stands beside its meaning
INDENT = "  "
BOUND, HELD = re.compile(r"([≥≤<>]) (?=\d)"), "\xa0"  # "≥ 1" stays on one line


def has_colour(stream: TextIO) -> bool:
    """Whether the stream is a terminal that may be coloured."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not plain


def widest(rows: Iterable[tuple[str, str]], most: int = NAMES) -> int:
    """The width of a column for the names, those aside that are wider than most."""
    return max((len(name) for name, _ in rows if len(name) <= most), default=0)


class Page:
    """Lines of text, as wide as the terminal, with headings in bold where it has colours."""

    def __init__(self, stream: TextIO | None = None) -> None:
        columns = shutil.get_terminal_size().columns
        self.width = max(NARROWEST, min(columns, WIDEST))
        self._bold = has_colour(stream or sys.stdout)
        self._lines: list[str] = []

    def heading(self, text: str, rest: str = "") -> None:
        """After an empty line. rest: stands beside it, not in bold."""
        if self._lines:
            self._lines.append("")
        bold = f"\x1b[1m{text}\x1b[0m" if self._bold else text
        first, *more = self._wrapped(f"{text} {rest}".rstrip(), "")
        self._lines += [bold + first.removeprefix(text), *more]

    def paragraphs(self, text: str, indent: str = "") -> None:
        """Paragraphs, filled; lines that begin with a space stay as they are."""
        for block in text.split("\n\n"):
            if self._lines:
                self._lines.append("")
            if block.startswith(" "):
                self._lines += block.split("\n")
            else:
                self._lines += self._wrapped(" ".join(block.split()), indent)

    def entries(self, rows: Sequence[tuple[str, str]], column: int | None = None) -> None:
        """Names, and beside each what it means. column: the width of the names; a longer name has
        a line to itself."""
        start = len(INDENT) + (widest(rows) if column is None else column) + 2
        for name, text in rows:
            lines = self._wrapped(text, " " * start) or [""]
            if len(INDENT + name) + 2 <= start:
                lines[0] = f"{INDENT}{name}".ljust(start) + lines[0].lstrip()
            else:
                self._lines.append(INDENT + name)
            self._lines += [line.rstrip() for line in lines if line.strip()]

    def _wrapped(self, text: str, indent: str) -> list[str]:
        lines = wrap(
            BOUND.sub(rf"\1{HELD}", text),
            self.width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return [line.replace(HELD, " ") for line in lines]

    def __str__(self) -> str:
        return "\n".join(self._lines)

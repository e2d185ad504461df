"""Tables of text for a terminal: aligned, cut to a width, nothing that could drive the terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def width_of(text: str) -> int:
    """How many cells of a terminal the text takes."""
    if text.isascii():
        return len(text)
    marks = sum(unicodedata.combining(c) > 0 for c in text)
    return len(text) - marks + sum(unicodedata.east_asian_width(c) in "WF" for c in text)


def cut(text: str, width: int) -> str:
    """The text, or its beginning and … within the width."""
    if width_of(text) <= width:
        return text
    text = text[:width]
    while width_of(text) > width - 1:
        text = text[:-1]
    return text + "…"


def aligned(table: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """The rows of a table as lines: the first `left` columns to the left, the others to the
    right, two spaces between them."""
    widths = [max(map(width_of, column)) for column in zip(*table, strict=True)]
    found = []
    for row in table:
        cells = []
        for k, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - width_of(cell))
            cells.append(cell + space if k < left else space + cell)
        found.append("  ".join(cells).rstrip())
    return found

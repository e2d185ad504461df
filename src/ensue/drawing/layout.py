"""Tables of text for a terminal: aligned, cut to a width, with control characters escaped."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Collection, Sequence
from datetime import datetime

from ensue.escape import printable


def width_of(text: str) -> int:
    """The width of a text in terminal cells."""
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


def downwards(names: Sequence[str]) -> list[str]:
    """Vertical names above columns of two cells each. All names end on the last line.

    >>> downwards(["to", "sea"])
    ['  s', 't e', 'o a']
    """
    height = max(map(len, names), default=0)
    places = []
    for line in range(height):
        letters = [
            name[line - height + len(name)] if line >= height - len(name) else " " for name in names
        ]
        cells = (letter + " " * (2 - width_of(letter)) for letter in letters)
        places.append("".join(cells).rstrip())
    return places


def aligned(
    table: Sequence[Sequence[str]], left: int = 1, right: Collection[int] = ()
) -> list[str]:
    """The rows of a table as lines, with two spaces between columns. The first `left` columns are
    aligned left, except those in `right`; the others are aligned right. Control characters are
    escaped."""
    table = [[printable(cell) for cell in row] for row in table]
    widths = [max(map(width_of, column)) for column in zip(*table, strict=True)]
    lines = []
    for row in table:
        cells = []
        for k, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - width_of(cell))
            cells.append(cell + space if k < left and k not in right else space + cell)
        lines.append("  ".join(cells).rstrip())
    return lines


# --- numbers as words ----------------------------------------------------------------------


def clock(seconds: float) -> str:
    """
    >>> clock(75), clock(7265)
    ('1:15', '2:01:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def score_text(score: float | None) -> str:
    """
    >>> score_text(113.4567), score_text(0.91234)
    ('113.46', '0.9123')
    """
    if score is None:
        return "–"
    return f"{score:.2f}" if abs(score) >= 2 else f"{score:.4f}"


def size_text(size: float) -> str:
    """
    >>> size_text(18_600_000), size_text(4_000)
    ('18.6 MB', '4 kB')
    """
    for bound, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= bound:
            return f"{size / bound:.3g} {unit}"
    return f"{size:.0f} B"


def time_text(seconds: float) -> str:
    """
    >>> time_text(4.26), time_text(75)
    ('4.3 s', '1:15')
    """
    return f"{seconds:.1f} s" if seconds < 59.95 else clock(seconds)


def local_time(clock: str) -> str:
    """A stored UTC time in local time: 2026-05-04 13:07."""
    return datetime.fromisoformat(clock).astimezone().strftime("%Y-%m-%d %H:%M")


def figures(value: float) -> str:
    """A number with about four figures: 0.8750, 35.20, 1,734; very small and large ones with powers
    of ten."""
    size = abs(value)
    if not math.isfinite(value) or 0 < size < 1e-4 or size >= 1e9:
        return f"{value:.3g}"
    return f"{value:,.{3 - math.floor(math.log10(size)) if 1 < size < 1e4 else 4 * (size <= 1)}f}"


def between(low: float, high: float) -> str:
    """An interval as text."""
    return f"{figures(low)} … {figures(high)}"

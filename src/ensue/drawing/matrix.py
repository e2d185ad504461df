"""A matrix as shades: in a terminal, and as squares of a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ensue.drawing.layout import aligned, cut, downwards, width_of
from ensue.drawing.svg import BLUE, INK, QUIET, STATES, Drawing, Point, text_width
from ensue.drawing.theme import PAPER, mixed
from ensue.escape import printable

ABOVE, BELOW = BLUE.line, STATES[1].line
PALE, DEEP = "#f1f5f9", "#1e40af"  # colours of weights 0 and 1
FAINTEST = 0.04
TURN = -50  # angle in degrees of names above narrow columns
SLANT_UP, SLANT_RIGHT = 0.77, 0.64  # share of a name's length that its height then takes
KEY = 9  # squares of the key
Weights = Sequence[Sequence[float]]  # (rows, columns)


def short_name(token: str, longest: int) -> str:
    """
    >>> short_name(" ", 9), short_name("a long word", 6)
    ('␣', 'a lon…')
    """
    return cut(printable(token), longest) if token.strip() else "␣"


def short_names(tokens: Sequence[str], longest: int) -> list[str]:
    return [short_name(token, longest) for token in tokens]


# --- in a terminal --------------------------------------------------------------------------------


def matrix_text(
    rows: Sequence[Sequence[str]],
    columns: Sequence[str],
    weights: Weights,
    cell: Callable[[float], str],
    width: int,
) -> str:
    """A matrix as text. rows: labels of each row, the first one at the left. A column is two cells
    wide, with its name written downwards above it. Columns that exceed the width follow in further
    blocks. cell: two characters for a weight."""
    names = aligned(rows)
    left = max(map(width_of, names)) + 2
    room = max(1, (width - left) // 2)
    blocks = []
    for first in range(0, len(columns), room):
        part = slice(first, first + room)
        lines = [" " * left + line for line in downwards(columns[part])]
        for name, row in zip(names, weights, strict=True):
            lines.append(name + " " * (left - width_of(name)) + "".join(map(cell, row[part])))
        blocks.append("\n".join(line.rstrip() for line in lines))
    return "\n\n".join(blocks)


# --- as a picture ---------------------------------------------------------------------------------


def diverging(value: float, strongest: float = 0.9) -> str:
    """A colour for −1 (orange) through 0 (paper) to 1 (blue); smaller values are paler."""
    share = FAINTEST + (strongest - FAINTEST) * min(abs(value), 1.0)
    return mixed(PAPER, ABOVE if value >= 0 else BELOW, share)


def shade(weight: float) -> str:
    """A colour for 0 to 1; larger weights are stronger."""
    return mixed(PALE, DEEP, weight)


def column_height(names: Sequence[str]) -> float:
    return SLANT_UP * max(text_width(name, 13) for name in names)


def column_names(drawing: Drawing, names: Sequence[str], at: Point, cell: float) -> float:
    """Draws names above columns that begin at a point: upright if all are narrow, else slanted.
    Returns how far they exceed the columns at the right."""
    longest = max(text_width(name, 13) for name in names)
    upright = longest <= cell
    for k, name in enumerate(names):
        place = (at[0] + (k + 0.5) * cell, at[1] - 10)
        how: dict[str, Any] = {} if upright else {"anchor": "start", "turn": TURN}
        drawing.words(place, name, 13, INK, **how)
    return 8.0 if upright else SLANT_RIGHT * longest


def squares(
    drawing: Drawing,
    weights: Weights,
    at: Point,
    cell: float,
    colour: Callable[[float], str],
    tip: Callable[[int, int], str],
) -> None:
    """Draws a square for each weight that has a colour; tip: the tooltip, followed by the
    weight."""
    side = cell - (2.0 if cell > 12 else 1.0)
    for row, values in enumerate(weights):
        for column, weight in enumerate(values):
            if ground := colour(weight):
                drawing.begin(f"{tip(row, column)}: {weight:.4g}")
                corner = at[0] + column * cell, at[1] + row * cell
                drawing.bar(*corner, side, side, ground, cell / 9)
                drawing.end()


def colour_key(drawing: Drawing, at: Point, words: tuple[str, str], colours: Sequence[str]) -> None:
    """Draws the key of the colours between two words."""
    drawing.words(at, words[0], 11, QUIET, "start")
    left = at[0] + text_width(words[0], 11) + 6
    for k, colour in enumerate(colours):
        drawing.bar(left + 16 * k, at[1] - 6, 14, 12, colour)
    drawing.words((left + 16 * len(colours) + 4, at[1]), words[1], 11, QUIET, "start")


def weight_key(drawing: Drawing, at: Point, what: str = "") -> None:
    shades = [shade(k / (KEY - 1)) for k in range(KEY)]
    colour_key(drawing, at, (f"{what} 0".strip(), "1"), shades)


def sign_key(
    drawing: Drawing, at: Point, words: tuple[str, str] = ("−1", "1"), strongest: float = 0.9
) -> None:
    tones = [diverging(2 * k / (KEY - 1) - 1, strongest) for k in range(KEY)]
    colour_key(drawing, at, words, tones)

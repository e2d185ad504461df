"""Sinusoidal position encodings of the Transformer, and the similarity of positions.

PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos of the same

Since sin·sin + cos·cos is the cosine of a difference, PE(p)·PE(q) = Σ_i cos((p − q)/10000^(2i/d)):
it depends only on the distance.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ensue.drawing.chart import MARGIN, Axis, Panel, colour_of, heading
from ensue.drawing.matrix import diverging, sign_key
from ensue.drawing.svg import FAINT, QUIET, Drawing, Point
from ensue.drawing.theme import SHADES, tinted
from ensue.errors import OptionError
from ensue.layers.transformer import sinusoids

MOST_CELLS = 40_000
FIELD, HIGH, BESIDE = 560.0, 380.0, 380.0  # of the heat map, and the curve to its right
LEVELS = 40  # shades of either colour


@dataclass(frozen=True)
class Positions:
    """table (positions, width): PE; closeness: PE(p) · PE(p + k) / PE(p) · PE(p), for each distance
    k."""

    width: int
    table: tuple[tuple[float, ...], ...]
    closeness: tuple[float, ...]


def positions(steps: int, width: int) -> Positions:
    """The encodings of the positions 0 … steps − 1, in float64."""
    if steps < 1 or width < 2 or width % 2:
        raise OptionError(f"expected steps ≥ 1 and an even width ≥ 2, got {steps} and {width}")
    if steps * width > MOST_CELLS:
        raise OptionError(
            f"expected at most {MOST_CELLS:,} numbers, steps × width, got {steps * width:,}"
        )
    table = sinusoids(torch.arange(steps), width, torch.float64)
    products = table @ table[0]
    closeness = (products / products[0]).tolist()
    return Positions(width, tuple(tuple(row) for row in table.tolist()), tuple(closeness))


# --- in the terminal -----------------------------------------------------------------------------


def as_text(positions: Positions, width: int, colour: bool) -> str:
    """A line for each position, a cell for each number of its vector, as many as fit."""
    digits = len(str(len(positions.table) - 1))
    room = min(positions.width, max(1, width - digits - 2))
    columns = (
        f"the first {room} of {positions.width}"
        if room < positions.width
        else f"all {positions.width}"
    )
    key = "orange below zero, blue above" if colour else "from −1, empty, to 1, full"
    lines = [f"sinusoidal positions: {columns} numbers of each vector; {key}", ""]
    for place, row in enumerate(positions.table):
        cells = "".join(_cell(value, colour) for value in row[:room])
        lines.append(f"{place:>{digits}}  {cells}".rstrip())
    lines += ["", "distance   closeness PE(p)·PE(p + k), 1 at distance 0"]
    for k in (0, 1, 2, 5, 10, 20, 50, 100, 200, 500):
        if k < len(positions.closeness):
            lines.append(f"{k:>8}   {positions.closeness[k]:.4f}".replace("-", "−"))
    return "\n".join(lines)


def _cell(value: float, colour: bool) -> str:
    if colour:
        return tinted(" ", value)
    return SHADES[round((value + 1) / 2 * (len(SHADES) - 1))]


# --- as a picture --------------------------------------------------------------------------------


def draw(positions: Positions) -> str:
    """The table as a heat map, positions downwards; to its right the similarity of positions."""
    drawing = Drawing()
    count = len(positions.table)
    top = heading(
        drawing,
        "Sinusoidal positions",
        "PE(p, 2i) = sin(p / 10000^(2i/d)),  PE(p, 2i+1) = cos(p / 10000^(2i/d))",
    )
    left, begin = MARGIN + 40, top + 34
    wide, high = max(1, round(FIELD / positions.width)), max(1, round(HIGH / count))
    across, down = wide * positions.width, high * count
    by_level: dict[int, list[Point]] = {}
    for place, row in enumerate(positions.table):
        for k, value in enumerate(row):
            corner = left + k * wide, begin + place * high
            by_level.setdefault(round(LEVELS * value), []).append(corner)
    for level, corners in sorted(by_level.items()):
        drawing.cells(corners, wide, high, diverging(level / LEVELS))
    drawing.words((left, begin - 16), "position p, downwards", 12, QUIET, "start")
    for place in sorted({0, count // 4, count // 2, 3 * count // 4, count - 1}):
        drawing.words((left - 8, begin + (place + 0.5) * high), str(place), 11, QUIET, "end")
    for k in sorted(
        {
            0,
            positions.width // 4,
            positions.width // 2,
            3 * positions.width // 4,
            positions.width - 1,
        }
    ):
        drawing.words((left + (k + 0.5) * wide, begin + down + 14), str(k), 11, QUIET)
    drawing.words(
        (left + across / 2, begin + down + 36), f"number of the vector, d = {positions.width}"
    )
    sign_key(drawing, (left, begin + down + 66))
    right = left + across + 84
    x = Axis(0, max(count - 1, 1), right, right + BESIDE)
    y = Axis(min(0.0, *positions.closeness), 1.0, begin + down, begin + 4)
    panel = Panel(drawing, x, y)
    panel.axes("distance k", "closeness PE(p)·PE(p + k), the same for every p")
    drawing.line([panel.at(0, 0), panel.at(x.high, 0)], FAINT)
    panel.curve(list(enumerate(positions.closeness)), colour_of(0))
    return drawing.svg(right + BESIDE + MARGIN, begin + down + 92, "Sinusoidal positions")
